//! OpenAPI documents: v3 per group version, and v2 for all. They are made when somebody asks, from the schema table and the
//! registry, and kept for a while; their tag comes from what they are made of, so that a client that has a document need not have it made again.

mod custom;
mod kept;
mod paths;
mod protobuf;
mod schemas;

use std::sync::LazyLock;

use bytes::Bytes;
use descriptions::Descriptions;
use http::header::{ACCEPT, CACHE_CONTROL, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use model::error::Error;
use model::schema;
use ring::digest::{Context, SHA256, digest};
use serde_json::{Map, Value, json};

pub(crate) use self::kept::Documents;
use self::paths::Paths;
use self::schemas::{Definitions, Dialect};
use crate::api::ApiServer;
use crate::body::Body;
use crate::registry::{Registry, ResourceType};
use crate::render::respond;
use crate::request::negotiate::JSON;
use crate::request::query::Query;

const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const V2_PROTOBUF_ASKED: [&str; 2] =
    ["application/com.github.proto-openapi.spec.v2@v1.0+protobuf", V2_PROTOBUF];

/// Answers a path below `/openapi`.
pub(crate) fn answer(
    api: &ApiServer,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, Error> {
    let registry = api.registry();
    match path.strip_prefix("/openapi/").unwrap_or_default() {
        "v2" => {
            let tag = tag(registry.types().map(|served| &***served));
            let is_protobuf = accepts(headers, &V2_PROTOBUF_ASKED);
            let made = || {
                let document = v2(&registry);
                if is_protobuf { protobuf::document(&document).into() } else { document.to_string().into() }
            };
            tagged(if is_protobuf { V2_PROTOBUF } else { JSON }, &tag, query, headers, made)
        }
        "v3" => Ok(respond(JSON, api.documents.index(&registry, || index(&registry).to_string()))),
        rest => {
            let place = rest.strip_prefix("v3/").and_then(group_version);
            let (group, version) = place.ok_or(Error::NoSuchPage)?;
            let types: Vec<&ResourceType> = registry.of_version(group, version).collect();
            if types.is_empty() {
                return Ok(no_document());
            }
            let tag = tag(types.iter().copied());
            let made = || api.documents.of(&tag, || v3(&types).to_string().into_bytes());
            tagged(JSON, &tag, query, headers, made)
        }
    }
}

/// The answer for a version that is not there says no more than that.
fn no_document() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// The group and version of `api/v1` or `apis/apps/v1`.
fn group_version(path: &str) -> Option<(&str, &str)> {
    match *path.split('/').collect::<Vec<_>>() {
        ["api", version] => Some(("", version)),
        ["apis", group, version] => Some((group, version)),
        _ => None,
    }
}

fn accepts(headers: &HeaderMap, media_types: &[&str]) -> bool {
    let asked = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // The first clause counts, as clients that can read both name what they prefer first.
    let first = asked.split([',', ';']).next().unwrap_or_default().trim();
    media_types.contains(&first)
}

/// Where the documents of the group versions are. A hash in the address lets clients keep a document for good.
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

fn v3(types: &[&ResourceType]) -> Value {
    let descriptions = Descriptions::unpack();
    let mut definitions = Definitions::new(Dialect::V3, schema::builtin(), &descriptions);
    let mut paths = Paths::new(Dialect::V3, &mut definitions);
    types.iter().for_each(|of| paths.add(of));
    let paths = paths.finish();
    let mut components = json!({"schemas": definitions.finish()});
    let mut info = info();
    if types.iter().all(|of| of.custom.is_some()) {
        info = json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"});
    } else {
        let token = json!({
            "type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header",
        });
        components["securitySchemes"] = json!({"BearerToken": token});
    }
    json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": components})
}

fn v2(registry: &Registry) -> Value {
    let descriptions = Descriptions::unpack();
    let mut definitions = Definitions::new(Dialect::V2, schema::builtin(), &descriptions);
    let mut paths = Paths::new(Dialect::V2, &mut definitions);
    registry.types().for_each(|of| paths.add(of));
    let paths = paths.finish();
    json!({
        "swagger": "2.0",
        "info": info(),
        "paths": paths,
        "definitions": definitions.finish(),
        "securityDefinitions": {"BearerToken": {
            "type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header",
        }},
        "security": [{"BearerToken": []}],
    })
}

fn info() -> Value {
    json!({"title": "Kubernetes", "version": "1.35"})
}

/// Stands for the text of the schema table, which every tag depends on and which is long.
static TABLE_DIGEST: LazyLock<String> =
    LazyLock::new(|| format!("{:?}", digest(&SHA256, schema::TABLE.as_bytes())));

/// Changes when a document of these types would change.
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

/// A document, or the news that the client has it already.
fn tagged(
    media_type: &'static str,
    tag: &str,
    query: &Query,
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
    let etag = HeaderValue::try_from(quoted)
        .map_err(|_| Error::Internal { message: "the tag of a document is no header value".to_owned() })?;
    let keep = if query.text("hash") == tag { "public, immutable" } else { "no-cache, private" };
    let headers = response.headers_mut();
    headers.insert(ETAG, etag);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}
