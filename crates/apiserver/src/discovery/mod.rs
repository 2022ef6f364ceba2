//! Discovery: the served APIs, in the legacy form (a document per group version) and the aggregated one.

mod aggregated;
mod legacy;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use model::error::Error;
use ring::digest::{SHA256, digest};

use crate::api::ApiServer;
use crate::body::Body;
use crate::endpoints;
use crate::registry::{Registry, ResourceType};
use crate::render::{not_encoded, to_json};
use crate::request::negotiate::{Encoding, Form};
use crate::request::query::Query;
use crate::request::verb::{Verb, Verbs};

/// Serves `/api`, `/apis` and the paths below them.
pub(crate) fn answer(
    api: &ApiServer,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, Error> {
    let registry = api.registry();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let found = match (segments.as_slice(), aggregated::wanted(headers)) {
        (["api"], Some(encoding)) => return aggregate(&registry, true, encoding, headers),
        (["apis"], Some(encoding)) => return aggregate(&registry, false, encoding, headers),
        _ => legacy(&registry, &segments, query, headers),
    };
    let known = match segments.as_slice() {
        ["api", ..] => true,
        ["apis", group, ..] => registry.has_group(group),
        _ => false,
    };
    found.unwrap_or(Err(if known { Error::PathNotFound } else { Error::NoSuchPage }))
}

/// The legacy document, if the path has one.
fn legacy(
    registry: &Registry,
    segments: &[&str],
    query: &Query,
    headers: &HeaderMap,
) -> Option<Result<Response<Body>, Error>> {
    match segments {
        ["api"] => Some(endpoints::kind(&legacy::core_versions(), query, headers)),
        ["apis"] => Some(endpoints::kind(&legacy::groups(registry), query, headers).map_err(unacceptable)),
        ["apis", group] => {
            let group = legacy::group(registry, group)?;
            Some(endpoints::kind(&group, query, headers).map_err(unacceptable))
        }
        ["api", version] => resources(registry, "", version, query, headers),
        ["apis", group, version] => resources(registry, group, version, query, headers),
        _ => None,
    }
}

fn resources(
    registry: &Registry,
    group: &str,
    version: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Option<Result<Response<Body>, Error>> {
    let resources = legacy::resources(registry, group, version)?;
    Some(endpoints::kind(&resources, query, headers))
}

/// Kubernetes words this error differently for discovery documents.
fn unacceptable(error: Error) -> Error {
    match error {
        Error::NoRepresentation { available } => Error::NotAcceptable { accepted: available },
        other => other,
    }
}

/// The names of verbs.
fn verbs(verbs: Verbs) -> Vec<&'static str> {
    verbs.iter().map(Verb::as_str).collect()
}

/// The verbs of a type; for types of CRDs Kubernetes has another order.
fn verbs_of(of: &ResourceType) -> Vec<&'static str> {
    use Verb::{Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch};
    const DEFINED: [Verb; 8] = [Delete, DeleteCollection, Get, List, Patch, Create, Update, Watch];
    if of.custom.is_none() {
        return verbs(of.verbs);
    }
    DEFINED.into_iter().filter(|verb| of.verbs.contains(*verb)).map(Verb::as_str).collect()
}

/// The paths for the index at `/`.
pub(crate) fn paths<'a>(registry: &Registry, mounted: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut paths: Vec<String> = [
        "/.well-known/openid-configuration",
        "/api",
        "/apis",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.extend(mounted.map(str::to_owned));
    for (group, versions) in registry.groups() {
        let base = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        paths.extend(versions.iter().map(|version| format!("{base}/{version}")));
        paths.push(base);
    }
    paths.sort();
    paths.dedup();
    paths
}

/// The aggregated document, with an ETag.
fn aggregate(
    registry: &Registry,
    core: bool,
    encoding: Encoding,
    headers: &HeaderMap,
) -> Result<Response<Body>, Error> {
    let document = aggregated::document(registry, core);
    let text = to_json(Form::STORED, &document)?;
    let tag: String = digest(&SHA256, &text).as_ref().iter().map(|b| format!("{b:02X}")).collect();
    let tag = format!("\"{tag}\"");
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut response = if known.flat_map(|value| value.split(',')).any(|value| value.trim() == tag) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else if encoding == Encoding::Json {
        Response::new(Body::from(text))
    } else {
        Response::new(Body::from(endpoints::written(Form { encoding, ..Form::STORED }, &document)?))
    };
    let value = |text: String| HeaderValue::try_from(text).map_err(not_encoded);
    let headers = response.headers_mut();
    headers.insert(ETAG, value(tag)?);
    headers.insert(CONTENT_TYPE, value(aggregated::content_type(encoding))?);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}

/// A hash that changes with the storage version.
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
