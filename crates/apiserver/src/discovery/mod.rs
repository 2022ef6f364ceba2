//! Discovery: what the server serves, in the old form (one document per group version) and the aggregated one.

mod aggregated;
mod legacy;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use model::error::Error;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::api::ApiServer;
use crate::body::Body;
use crate::endpoints;
use crate::registry::Registry;
use crate::request::query::Query;

/// Answers `/api`, `/apis` and what is below them.
pub(crate) fn answer(
    api: &ApiServer,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, Error> {
    let registry = api.registry();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let aggregated = aggregated::wanted(headers);
    let document = match segments.as_slice() {
        ["api"] if aggregated => return aggregate(&registry, true, headers),
        ["apis"] if aggregated => return aggregate(&registry, false, headers),
        ["api"] => Some(legacy::core_versions()),
        ["apis"] => Some(legacy::groups(&registry)),
        ["api", version] => legacy::resources(&registry, "", version),
        ["apis", group] => legacy::group(&registry, group),
        ["apis", group, version] => legacy::resources(&registry, group, version),
        _ => None,
    };
    let known = match segments.as_slice() {
        ["api", ..] => true,
        ["apis", group, ..] => registry.has_group(group),
        _ => false,
    };
    let absent = if known { Error::PathNotFound } else { Error::NoSuchPage };
    endpoints::value(&document.ok_or(absent)?, query, headers)
}

/// Every path below which there is something.
pub(crate) fn paths(registry: &Registry) -> Vec<String> {
    let mut paths: Vec<String> = ["/api", "/apis", "/healthz", "/livez", "/metrics", "/readyz", "/version"]
        .map(str::to_owned)
        .to_vec();
    for (group, versions) in registry.groups() {
        let base = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        paths.extend(versions.iter().map(|version| format!("{base}/{version}")));
        paths.push(base);
    }
    paths.sort();
    paths.dedup();
    paths
}

/// The aggregated document, which clients keep until its tag changes.
fn aggregate(registry: &Registry, core: bool, headers: &HeaderMap) -> Result<Response<Body>, Error> {
    let document = Value::to_string(&aggregated::document(registry, core));
    let tag: String =
        digest(&SHA256, document.as_bytes()).as_ref().iter().map(|b| format!("{b:02X}")).collect();
    let tag = format!("\"{tag}\"");
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let unchanged = known.flat_map(|value| value.split(',')).any(|value| value.trim() == tag);
    let mut response = Response::new(if unchanged { Body::empty() } else { Body::from(document) });
    if unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let tag = HeaderValue::try_from(tag)
        .map_err(|_| Error::Internal { message: "the tag of a document is no header value".to_owned() })?;
    let headers = response.headers_mut();
    headers.insert(ETAG, tag);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(aggregated::CONTENT_TYPE));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}

/// A number by which clients see that objects are stored in another version than before.
fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    let sum = digest(&SHA256, format!("{group}/{version}/{kind}").as_bytes());
    STANDARD.encode(&sum.as_ref()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_storage_version_hash_is_that_of_kubernetes() {
        assert_eq!(storage_version_hash("", "v1", "ConfigMap"), "qFsyl6wFWjQ=");
        assert_eq!(storage_version_hash("coordination.k8s.io", "v1", "Lease"), "gqkMMb/YqFM=");
    }
}
