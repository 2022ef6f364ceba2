//! Encoding of responses in the negotiated form. Whole JSON objects are spliced from stored bytes, never parsed.

mod event;
mod list;
mod message;
mod view;

use std::fmt::Display;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use kinds::apply::Tracked;
use kinds::{protobuf, schema};
use model::error::Error;
use model::json::to_yaml;
use serde::Serialize;
use serde_json::{Value, json};

pub(crate) use event::{EventFrame, EventName};
pub(crate) use list::ListFrame;

use self::message::Messages;
use crate::body::Body;
use crate::registry::Object;
use crate::request::negotiate::{Encoding, Form, Representation};
use crate::request::query::Query;
use crate::verbs::{Call, ListMetadata};

/// A response with one object.
pub(crate) fn object(call: &Call, status: StatusCode, stored: &Bytes) -> Result<Response<Body>, Error> {
    let resource_type = &call.resource_type;
    let bytes = match (call.form.view, call.form.encoding) {
        (Representation::Table, _) => {
            let rows = vec![view::row(call, &parse(stored)?)?];
            encode(call.form, &view::table(resource_type, &view::version_of(stored)?, rows))?
        }
        (view, Encoding::Protobuf) => Messages::new(resource_type, view).object(stored)?.into(),
        (view, encoding) => {
            let text = match view {
                Representation::Metadata => view::metadata_of(stored)?,
                Representation::Whole | Representation::Table => {
                    view::whole(resource_type, &resource_type.shown(stored)?)
                }
            };
            let is_done = encoding == Encoding::Json && !call.form.pretty;
            if is_done { text } else { encode(call.form, &parse(&text)?)? }
        }
    };
    let mut response = respond(call.form.encoding.media_type(), bytes);
    *response.status_mut() = status;
    Ok(response)
}

/// A response with a successful `Status`.
pub(crate) fn status(call: &Call, status: &Value) -> Result<Response<Body>, Error> {
    // A Status has no table.
    let form = Form { view: Representation::Whole, ..call.form };
    Ok(respond(form.encoding.media_type(), encode(form, status)?))
}

/// The success `Status` of requests without an object.
pub(crate) fn done(call: &Call) -> Result<Response<Body>, Error> {
    let code = StatusCode::CREATED;
    let done = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code.as_u16(),
    });
    let mut response = status(call, &done)?;
    *response.status_mut() = code;
    Ok(response)
}

/// A response with a list in memory.
pub(crate) fn list(call: &Call, metadata: &ListMetadata, items: Vec<Bytes>) -> Result<Response<Body>, Error> {
    let frame = ListFrame::new(call);
    let mut collected = frame.collect();
    collected.add(&items)?;
    collected.finish(metadata)
}

/// An unstored object, for dry runs: it has no resourceVersion.
pub(crate) fn without_version(object: &Object, tracked: &Tracked) -> Bytes {
    let mut object = object.clone();
    crate::verbs::forget_version(&mut object);
    crate::verbs::set_managers(&mut object, tracked);
    serde_json::to_vec(&object).expect("a JSON value always encodes").into()
}

/// Encodes a value in the negotiated form.
pub(crate) fn encode(form: Form, value: &Value) -> Result<Bytes, Error> {
    Ok(match form.encoding {
        Encoding::Json => to_json(form, value)?,
        Encoding::Yaml => to_yaml(value).map_err(not_encoded)?.into(),
        Encoding::Protobuf => protobuf::encode(schema::builtin(), value).map_err(not_encoded)?.into(),
    })
}

/// Encodes a value as JSON, in its field order.
pub(crate) fn to_json(form: Form, value: &impl Serialize) -> Result<Bytes, Error> {
    let encoded = if form.pretty { serde_json::to_vec_pretty(value) } else { serde_json::to_vec(value) };
    encoded.map(Bytes::from).map_err(not_encoded)
}

/// An encoding failure as 500.
pub(crate) fn not_encoded(reason: impl Display) -> Error {
    Error::Internal { message: format!("the answer cannot be encoded: {reason}") }
}

/// A response with these bytes.
pub(crate) fn respond(media_type: &'static str, bytes: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(bytes.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// curl and browsers get indented JSON, as in Kubernetes.
pub(crate) fn wants_pretty(query: &Query, headers: &HeaderMap) -> bool {
    query.optional_flag("pretty").unwrap_or_else(|| {
        let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or("");
        ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix))
    })
}

fn parse(bytes: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(bytes).map_err(unreadable)
}

fn unreadable(error: impl Display) -> Error {
    tracing::error!(%error, "cannot parse a stored object");
    Error::Internal { message: "cannot parse a stored object".to_owned() }
}
