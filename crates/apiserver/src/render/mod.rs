//! From stored bytes to the form that a client asked for. Whole JSON objects are spliced, never parsed.

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

/// An answer with one object.
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

/// An answer with a `Status` that is no error.
pub(crate) fn status(call: &Call, status: &Value) -> Result<Response<Body>, Error> {
    // There is no table of a Status.
    let form = Form { view: Representation::Whole, ..call.form };
    Ok(respond(form.encoding.media_type(), encode(form, status)?))
}

/// The answer to what makes no object: it is done.
pub(crate) fn done(call: &Call) -> Result<Response<Body>, Error> {
    let code = StatusCode::CREATED;
    let done = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code.as_u16(),
    });
    let mut response = status(call, &done)?;
    *response.status_mut() = code;
    Ok(response)
}

/// An answer with a list of which all objects are at hand.
pub(crate) fn list(call: &Call, metadata: &ListMetadata, items: Vec<Bytes>) -> Result<Response<Body>, Error> {
    let frame = ListFrame::new(call);
    let mut collected = frame.collect();
    collected.add(&items)?;
    collected.finish(metadata)
}

/// An object that was never written, for dry runs: it has no resourceVersion.
pub(crate) fn without_version(object: &Object, tracked: &Tracked) -> Bytes {
    let mut object = object.clone();
    crate::verbs::forget_version(&mut object);
    crate::verbs::set_managers(&mut object, tracked);
    serde_json::to_vec(&object).expect("a JSON value always encodes").into()
}

/// A value in the encoding that the client asked for.
pub(crate) fn encode(form: Form, value: &Value) -> Result<Bytes, Error> {
    Ok(match form.encoding {
        Encoding::Json => to_json(form, value)?,
        Encoding::Yaml => to_yaml(value).map_err(not_encoded)?.into(),
        Encoding::Protobuf => protobuf::encode(schema::builtin(), value).map_err(not_encoded)?.into(),
    })
}

/// A value as JSON, its fields in their order.
pub(crate) fn to_json(form: Form, value: &impl Serialize) -> Result<Bytes, Error> {
    let encoded = if form.pretty { serde_json::to_vec_pretty(value) } else { serde_json::to_vec(value) };
    encoded.map(Bytes::from).map_err(not_encoded)
}

/// "This cannot be written."
pub(crate) fn not_encoded(reason: impl Display) -> Error {
    Error::Internal { message: format!("the answer cannot be encoded: {reason}") }
}

/// An answer of these bytes.
pub(crate) fn respond(media_type: &'static str, bytes: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(bytes.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// People with curl or a browser get indented JSON, as from Kubernetes.
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
    tracing::error!(%error, "a stored object cannot be read");
    Error::Internal { message: "a stored object cannot be read".to_owned() }
}
