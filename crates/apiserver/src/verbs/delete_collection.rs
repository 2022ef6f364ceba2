//! deletecollection: deletes all selected objects, page by page.

use bytes::Bytes;
use futures::StreamExt;
use http::Response;
use model::error::Error;
use store::Stored;

use super::Call;
use super::delete::{delete_found, warn};
use super::list::{ListMetadata, Reader};
use super::options::DeleteOptions;
use super::selection::selection;
use crate::body::Body;
use crate::crds::selectable_fields::has_fields;
use crate::render;
use crate::request::list_options::ListOptions;

/// Concurrent deletions; they share commits.
const CONCURRENCY: usize = 100;

pub async fn delete_collection(call: Call) -> Result<Response<Body>, Error> {
    let options = DeleteOptions::read(&call)?;
    let (metadata, deleted) = delete_all(&call, &options).await?;
    render::list(&call, &metadata, deleted)
}

/// Deletes the selected objects. Returns their last states and the metadata of the list.
pub async fn delete_all(call: &Call, options: &DeleteOptions) -> Result<(ListMetadata, Vec<Bytes>), Error> {
    let wanted = ListOptions::from_query(&call.query)?;
    let selection = selection(call)?;
    has_fields(call, &selection.selector).await?;
    warn(call, options);
    let mut reader = Reader::open(call, &selection, &wanted).await?;
    let mut deleted = Vec::new();
    while !reader.done() {
        let items = reader.next_stored().await?;
        let delete = |item: &Stored| {
            let found = options.is_unconditional().then(|| item.clone());
            delete_found(call, item.key.clone(), found, options)
        };
        let deletions: Vec<_> = items.iter().map(delete).collect();
        let outcomes: Vec<_> = futures::stream::iter(deletions).buffered(CONCURRENCY).collect().await;
        for (item, outcome) in items.iter().zip(outcomes) {
            match outcome {
                // The response has the objects as they were listed.
                Ok(_) => {
                    let found = call.resource_type.of_version(item.value.clone(), item.revision);
                    deleted.push(found.await?);
                }
                // Another client deleted it already.
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok((reader.metadata(), deleted))
}
