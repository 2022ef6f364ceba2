//! OpenAPI documents: v3 per group version, and v2 for all. They are built on request from the schema table and the registry,
//! and cached. The ETag depends on their input, so that an unchanged document need not be built for a client that has it.

mod cache;
mod custom;
mod document;
mod parameters;
mod paths;
mod protobuf;
mod schemas;

use std::sync::LazyLock;

use bytes::Bytes;
use descriptions::Descriptions;
use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH, LOCATION, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use kinds::schema;
use model::error::Error;
use ring::digest::{Context, SHA256, digest};
use serde_json::{Map, Value, json};

pub(crate) use self::cache::DocumentCache;
use self::document::{Document, DocumentFormat};
use self::paths::Paths;
use self::schemas::{Dialect, SchemaDefinitions};
use crate::api::ApiServer;
use crate::body::Body;
use crate::registry::{Registry, ResourceType};
use crate::render::respond;
use crate::request::negotiate::{JSON, clauses};
use crate::request::query::Query;

/// The protobuf media types: of responses, and an alias in requests.
const V2_PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
];
const V3_PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
];

/// Serves a path below `/openapi`.
pub(crate) fn answer(
    api: &ApiServer,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, Error> {
    let registry = api.registry();
    match path.strip_prefix("/openapi/").unwrap_or_default() {
        "v2" => {
            let mut response = whole(api, &registry, headers)?;
            response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
            response.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
            Ok(response)
        }
        "v3" => Ok(respond(JSON, api.documents.index(&registry, || index(&registry).to_string()))),
        rest => {
            let below = rest.strip_prefix("v3/").ok_or(Error::NoSuchPage)?;
            let Some((group, version)) = group_version(below) else { return Ok(no_document()) };
            let types: Vec<&ResourceType> = registry.of_version(group, version).collect();
            if types.is_empty() {
                return Ok(no_document());
            }
            let Some(media_type) = chosen(headers, &V3_PROTOBUF) else { return Ok(not_acceptable()) };
            let tag = tag(types.iter().copied());
            let keep = match query.text("hash") {
                "" => "no-cache, private",
                hash if hash == tag => "public, immutable",
                _ => return moved(&format!("{path}?hash={tag}")),
            };
            let form = DocumentFormat { dialect: Dialect::V3, is_protobuf: media_type != JSON };
            let made = || api.documents.of(&tag, media_type, || made(form, types.iter().copied()));
            tagged(media_type, &tag, keep, headers, made)
        }
    }
}

/// The v2 document.
fn whole(api: &ApiServer, registry: &Registry, headers: &HeaderMap) -> Result<Response<Body>, Error> {
    let Some(media_type) = chosen(headers, &V2_PROTOBUF) else { return Ok(not_acceptable()) };
    let form = DocumentFormat { dialect: Dialect::V2, is_protobuf: media_type != JSON };
    let types = || registry.types().map(|served| &***served);
    let tag = tag(types());
    let made = || api.documents.of(&tag, media_type, || made(form, types()));
    tagged(media_type, &tag, "no-cache, private", headers, made)
}

/// An empty response that must not be cached.
fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

fn not_acceptable() -> Response<Body> {
    let mut response = empty(StatusCode::NOT_ACCEPTABLE);
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    response
}

/// Redirects from the address of an older document.
fn moved(address: &str) -> Result<Response<Body>, Error> {
    let mut response = empty(StatusCode::MOVED_PERMANENTLY);
    response.headers_mut().insert(LOCATION, header(address)?);
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}

fn header(text: &str) -> Result<HeaderValue, Error> {
    HeaderValue::try_from(text)
        .map_err(|_| Error::Internal { message: format!("{text:?} is no header value") })
}

/// The 404 of a group version without types.
fn no_document() -> Response<Body> {
    empty(StatusCode::NOT_FOUND)
}

/// Group and version of `api/v1` or `apis/apps/v1`.
fn group_version(path: &str) -> Option<(&str, &str)> {
    match *path.split('/').collect::<Vec<_>>() {
        ["api", version] => Some(("", version)),
        ["apis", group, version] => Some((group, version)),
        _ => None,
    }
}

/// The media type of the response: the first accepted one of JSON and protobuf.
fn chosen(headers: &HeaderMap, protobuf: &[&'static str; 2]) -> Option<&'static str> {
    clauses(headers).into_iter().find_map(|clause| match clause.media_type {
        "" | "*/*" | "application/*" | JSON => Some(JSON),
        other => protobuf.contains(&other).then_some(protobuf[0]),
    })
}

/// The index of group versions. A hash in the address lets clients cache a document for ever.
fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let path =
                if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
            let tag = tag(registry.of_version(group, version));
            let address = format!("/openapi/v3/{path}?hash={tag}");
            paths.insert(path, json!({"serverRelativeURL": address}));
        }
    }
    json!({"paths": paths})
}

/// Builds the document of these types.
fn made<'a>(form: DocumentFormat, types: impl Iterator<Item = &'a ResourceType>) -> Vec<u8> {
    let descriptions = Descriptions::unpack();
    let mut definitions = SchemaDefinitions::new(form, schema::builtin(), &descriptions);
    let mut paths = Paths::new(&mut definitions);
    let mut is_custom = form.dialect == Dialect::V3;
    for of in types {
        is_custom &= of.custom.is_some();
        paths.add(of);
    }
    let token = json!({
        "type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header",
    });
    let (title, version) =
        if is_custom { ("Kubernetes CRD Swagger", "v0.1.0") } else { ("Kubernetes", "1.35") };
    let security = (!is_custom).then_some(("BearerToken", token));
    let paths = paths.finish();
    Document { title, version, paths, schemas: definitions.finish(), security }.written(form)
}

/// A digest of the schema table, which every tag depends on.
static TABLE_DIGEST: LazyLock<String> =
    LazyLock::new(|| format!("{:?}", digest(&SHA256, schema::TABLE.as_bytes())));

/// A tag that changes with the document of these types.
fn tag<'a>(types: impl Iterator<Item = &'a ResourceType>) -> String {
    let mut context = Context::new(&SHA256);
    let mut add = |text: &str| context.update(text.as_bytes());
    add(env!("CARGO_PKG_VERSION"));
    add(&TABLE_DIGEST);
    for of in types {
        add(&format!("{}/{}/{} {:?} {:?}\n", of.group, of.version, of.plural, of.verbs, of.subresources));
        if let Some(view) = &of.custom {
            let version = view.version();
            let fields: Vec<&str> = version.selectable.names().collect();
            add(&format!("{} {} {} {fields:?}\n", of.kind, of.namespaced, of.list_kind()));
            add(version.schema.digest());
        }
    }
    context.finish().as_ref().iter().map(|byte| format!("{byte:02X}")).collect()
}

/// The document, or 304 if the client has it.
fn tagged(
    media_type: &'static str,
    tag: &str,
    keep: &'static str,
    headers: &HeaderMap,
    made: impl FnOnce() -> Bytes,
) -> Result<Response<Body>, Error> {
    let quoted = format!("\"{tag}\"");
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = known.flat_map(|value| value.split(',')).any(|value| value.trim() == quoted);
    let mut response = if is_known {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        respond(media_type, made())
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, header(&quoted)?);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}
