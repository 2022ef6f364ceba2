//! Non-resource endpoints: discovery, OpenAPI, version, health, metrics.

pub(crate) mod backup;
mod health;

use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderValue, Response};
use kinds::protobuf::{Encoder, TypeMeta};
use kinds::schema;
use model::error::Error;
use mount::Mount;
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::ApiServer;
use crate::body::Body;
use crate::gate::{FlowDistinguisher, Slot};
use crate::render::{encode, not_encoded, respond, to_json, wants_pretty};
use crate::request::negotiate::{self, Clause, Encoding, Form, JSON, Offer};
use crate::request::query::Query;
use crate::{discovery, openapi};

/// The emulated version of Kubernetes.
const KUBERNETES: (&str, &str, &str) = ("1", "35", "v1.35.4");

/// Serves a non-resource path.
pub(crate) async fn answer(
    api: &ApiServer,
    method: &str,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
    flow: FlowDistinguisher<'_>,
) -> Result<Response<Body>, Error> {
    let path = route(path);
    if !matches!(method, "get" | "head") {
        if !is_own(path) {
            // A path that does not exist is 404 for every method.
            discovery::answer(api, path, query, headers)?;
        }
        return Err(Error::MethodNotAllowed {
            group: String::new(),
            resource: String::new(),
            verb: String::new(),
        });
    }
    if let Some((endpoint, check)) = health::endpoint(path) {
        return Ok(health::answer(api, endpoint, check, query).await);
    }
    match path {
        _ if path.starts_with("/openapi/") => {
            let slot = api.gate.enter(flow)?;
            document(api, path, query, headers, slot).await
        }
        "/version" => json_only(&version(), query, headers),
        "/metrics" => metrics(api),
        backup::PATH => backup::answer(api, method).await,
        "/openid/v1/jwks" => Ok(published("application/jwk-set+json", &api.accounts().key_set())),
        "/.well-known/openid-configuration" => Ok(published(JSON, &api.accounts().discovery())),
        "/" => {
            let mounted = api.mounts.iter().map(Mount::prefix);
            let paths = json!({ "paths": discovery::paths(&api.registry(), mounted) });
            Ok(respond(JSON, to_json(json_form(query, headers), &paths)?))
        }
        _ => discovery::answer(api, path, query, headers),
    }
}

/// The endpoint of a path. Discovery and the other documents of Kubernetes' REST containers accept trailing slashes; every
/// other endpoint has exactly one path.
fn route(path: &str) -> &str {
    let is_document = |path: &str| {
        matches!(
            path,
            "/version" | "/api" | "/apis" | "/openid/v1/jwks" | "/.well-known/openid-configuration"
        ) || path.starts_with("/api/")
            || path.starts_with("/apis/")
    };
    Some(path.trim_end_matches('/')).filter(|path| is_document(path)).unwrap_or(path)
}

/// Whether an endpoint other than discovery serves the path.
fn is_own(path: &str) -> bool {
    let is_page = matches!(
        path,
        "/" | "/version"
            | "/metrics"
            | backup::PATH
            | "/openid/v1/jwks"
            | "/.well-known/openid-configuration"
    );
    is_page || path.starts_with("/openapi/") || health::endpoint(path).is_some()
}

/// Builds an OpenAPI document on a blocking thread, bounded by a slot. The slot is released when the document is built, even
/// if the client is gone.
async fn document(
    api: &ApiServer,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
    slot: Slot,
) -> Result<Response<Body>, Error> {
    let (api, path, query, headers) = (api.clone(), path.to_owned(), query.clone(), headers.clone());
    let made = move || {
        let _slot = slot;
        openapi::answer(&api, &path, &query, &headers)
    };
    let made = tokio::task::spawn_blocking(made).await;
    made.map_err(|_| Error::internal("cannot build the OpenAPI document"))?
}

/// A response that exists as JSON only. The requested representation is ignored.
fn json_only(value: &Value, query: &Query, headers: &HeaderMap) -> Result<Response<Body>, Error> {
    let takes_it = |clause: &Clause<'_>| matches!(clause.media_type, "" | "*/*" | JSON);
    if !negotiate::clauses(headers).iter().any(takes_it) {
        return Err(Error::NoRepresentation { available: vec![JSON.to_owned()] });
    }
    Ok(respond(JSON, to_json(json_form(query, headers), value)?))
}

fn json_form(query: &Query, headers: &HeaderMap) -> Form {
    Form { pretty: wants_pretty(query, headers), ..Form::STORED }
}

/// A response of a kind in the schema table, in the negotiated form.
pub(crate) fn kind(
    value: &impl Serialize,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, Error> {
    let pretty = wants_pretty(query, headers);
    let form = negotiate::accepted(headers, Offer::WHOLE, false, pretty)?;
    Ok(respond(form.encoding.media_type(), written(form, value)?))
}

/// Encodes a value; JSON keeps the field order.
pub(crate) fn written(form: Form, value: &impl Serialize) -> Result<Bytes, Error> {
    let tree = || serde_json::to_value(value).map_err(not_encoded);
    match form.encoding {
        Encoding::Json => to_json(form, value),
        // YAML sorts the keys.
        Encoding::Yaml => encode(form, &tree()?),
        Encoding::Protobuf => {
            let tree = tree()?;
            let text = |key: &str| tree[key].as_str().unwrap_or_default();
            let (version, kind) = (text("apiVersion"), text("kind"));
            // Documents of the core group omit their apiVersion.
            let of = TypeMeta::new(if version.is_empty() { "v1" } else { version }, kind);
            let mut out = Vec::new();
            let json = to_json(form, &tree)?;
            Encoder::new(schema::builtin())
                .named(TypeMeta::new(version, kind), of, &json, &mut out)
                .map_err(not_encoded)?;
            Ok(out.into())
        }
    }
}

/// A response that clients may cache.
fn published(media_type: &'static str, value: &Value) -> Response<Body> {
    let mut response = respond(media_type, value.to_string());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

fn version() -> Value {
    let (major, minor, full) = KUBERNETES;
    json!({
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": "34",
        "gitVersion": full,
        "gitCommit": concat!("orlop-", env!("CARGO_PKG_VERSION")),
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

/// The architecture under Go's names.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn metrics(api: &ApiServer) -> Result<Response<Body>, Error> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &api.metrics_registry)
        .map_err(|error| Error::Internal { message: format!("the metrics cannot be written: {error}") })?;
    Ok(respond("application/openmetrics-text; version=1.0.0; charset=utf-8", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_documents_of_rest_containers_are_served_with_slashes_at_the_end() {
        for (path, expected) in [
            ("/", "/"),
            ("/version/", "/version"),
            ("/apis/apps/v1/", "/apis/apps/v1"),
            ("/apis/apps/v1//", "/apis/apps/v1"),
            ("/metrics/", "/metrics/"),
            ("/healthz/", "/healthz/"),
            ("/openapi/v2/", "/openapi/v2/"),
            ("//", "//"),
        ] {
            assert_eq!(route(path), expected);
        }
    }
}
