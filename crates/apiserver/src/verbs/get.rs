//! get: reads one object.

use http::{Response, StatusCode};
use model::error::Error;

use super::{Call, component_status, store_error};
use crate::body::Body;
use crate::render;
use crate::request::list_options::parse_revision;

pub async fn get(call: Call) -> Result<Response<Body>, Error> {
    if call.resource_type.is_component_status() {
        return component_status::get(&call).await;
    }
    let version = call.query.text("resourceVersion");
    if !version.is_empty() {
        let requested = parse_revision(version).map_err(|message| Error::BadRequest { message })?;
        let current = call.api.store.clock().await.map_err(store_error)?.current;
        if requested > current {
            return Err(Error::FutureRevision { requested, current });
        }
    }
    let key = call.key();
    match call.api.store.get(&key, None).await.map_err(store_error)? {
        Some(found) => {
            if let Some(catalog) = call.crd_catalog() {
                catalog.wait_for(found.revision).await;
            }
            let value = call.resource_type.of_version(found.value, found.revision).await?;
            render::object(&call, StatusCode::OK, &value)
        }
        None => Err(call.resource_type.not_found(&key.name)),
    }
}
