//! Everything that is no object: discovery, OpenAPI, version, health, metrics.

mod health;

use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderValue, Response};
use model::error::Error;
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::ApiServer;
use crate::body::Body;
use crate::render::{encode, not_encoded, respond, to_json, wants_pretty};
use crate::request::negotiate::{self, Encoding, Form, JSON, Offer};
use crate::request::query::Query;
use crate::{discovery, openapi};

/// The version of Kubernetes whose behaviour is served.
const KUBERNETES: (&str, &str, &str) = ("1", "35", "v1.35.4");

/// Answers a plain path.
pub(crate) async fn answer(
    api: &ApiServer,
    method: &str,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, Error> {
    if !matches!(method, "get" | "head") {
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
        _ if path.starts_with("/openapi/") => document(api, path, query, headers).await,
        "/version" => value(&version(), query, headers),
        "/metrics" => metrics(api),
        "/openid/v1/jwks" => Ok(published("application/jwk-set+json", &api.accounts().key_set())),
        "/.well-known/openid-configuration" => Ok(published(JSON, &api.accounts().discovery())),
        "" => value(&json!({ "paths": discovery::paths(&api.registry()) }), query, headers),
        _ => discovery::answer(api, path, query, headers),
    }
}

/// A document takes long to make: that is not done where other requests would wait for it, and not for many at once. The slot
/// is given back when it is made, also if nobody waits for it any more.
async fn document(
    api: &ApiServer,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, Error> {
    let slot = api.gate.enter(false, &api.limits)?;
    let (api, path, query, headers) = (api.clone(), path.to_owned(), query.clone(), headers.clone());
    let made = move || {
        let _slot = slot;
        openapi::answer(&api, &path, &query, &headers)
    };
    let made = tokio::task::spawn_blocking(made).await;
    made.map_err(|_| Error::internal("a document could not be made"))?
}

/// A value in the form that the client asked for; its fields keep their order in JSON.
pub(crate) fn value(
    value: &impl Serialize,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, Error> {
    let pretty = wants_pretty(query, headers);
    let form = negotiate::accepted(headers, Offer { protobuf: false }, false, pretty)?;
    let form = Form { view: negotiate::View::Whole, ..form };
    let bytes = match form.encoding {
        Encoding::Json => to_json(form, value)?,
        // Keys are sorted here.
        Encoding::Yaml | Encoding::Protobuf => {
            encode(form, &serde_json::to_value(value).map_err(not_encoded)?)?
        }
    };
    Ok(respond(form.encoding.media_type(), bytes))
}

/// What everybody may keep for a while.
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

/// Architectures by the names that Go programs compare.
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
