//! deletecollection: every object of a selection deleted, page by page.

use bytes::Bytes;
use futures::StreamExt;
use http::Response;
use model::Revision;
use model::error::Error;
use store::Stored;

use super::delete::delete_found;
use super::options::DeleteOptions;
use super::scope::scope;
use super::{Call, store_error};
use crate::body::Body;
use crate::definitions::indexing::has_fields;
use crate::pages::Pages;
use crate::render;

/// Objects read at once; they are deleted side by side, so that they share commits.
const PAGE: usize = 500;
/// Deletions in flight at once.
const SIDE_BY_SIDE: usize = 100;

pub async fn delete_collection(call: Call) -> Result<Response<Body>, Error> {
    let options = DeleteOptions::read(&call)?;
    let (revision, deleted) = delete_all(&call, &options).await?;
    render::list(&call, revision, deleted)
}

/// Deletes all objects of a selection; what they were last, as of which revision.
pub async fn delete_all(call: &Call, options: &DeleteOptions) -> Result<(Revision, Vec<Bytes>), Error> {
    let scope = scope(call)?;
    has_fields(call, &scope.selector).await?;
    let mut pages = Pages::pinned(&call.api.store, scope.query(call, PAGE));
    let (mut revision, mut deleted) = (Revision::ZERO, Vec::new());
    while let Some(page) = pages.next().await.map_err(store_error)? {
        revision = page.revision;
        let delete = |item: &Stored| {
            let found = options.is_unconditional().then(|| item.clone());
            delete_found(call, item.key.clone(), found, options)
        };
        let deletions: Vec<_> = page.items.iter().map(delete).collect();
        let outcomes: Vec<_> = futures::stream::iter(deletions).buffered(SIDE_BY_SIDE).collect().await;
        for (item, outcome) in page.items.iter().zip(outcomes) {
            match outcome {
                // As it was found: what it has become since is not shown.
                Ok(_) => {
                    let found = call.resource_type.of_version(item.value.clone(), item.revision);
                    deleted.push(found.await?);
                }
                // Somebody else was faster: it is gone, as was asked.
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok((revision, deleted))
}
