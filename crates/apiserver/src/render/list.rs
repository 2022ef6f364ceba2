//! The frame around the objects of a list, in each form.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::Response;
use model::Revision;
use model::error::Error;
use serde_json::{Map, Value, json};
use store::Stored;

use super::view::{self, Include};
use super::{encode, parse, respond};
use crate::body::Body;
use crate::registry::Served;
use crate::request::negotiate::{Encoding, Form, View};
use crate::verbs::{Call, ListMetadata};

/// How a list is written.
#[derive(Clone)]
pub(crate) struct ListFrame {
    resource_type: Arc<Served>,
    form: Form,
    include: Result<Include, Error>,
}

impl ListFrame {
    /// The frame that a call asks for.
    pub fn new(call: &Call) -> Self {
        Self { resource_type: call.resource_type.clone(), form: call.form, include: Include::of(call) }
    }

    /// Whether it can be written piece by piece. The other encodings need the whole list first.
    pub fn streams(&self) -> bool {
        self.form.encoding == Encoding::Json && !self.form.pretty && self.include.is_ok()
    }

    /// An answer with this body.
    pub fn response(&self, body: Body) -> Response<Body> {
        respond(self.form.encoding.media_type(), body)
    }

    /// What stands before the first object.
    pub fn opening(&self) -> Bytes {
        let (kind, version) = self.kind();
        let (columns, items) = match self.form.view {
            View::Table => {
                let columns = Value::from(self.resource_type.table.columns());
                (format!("\"columnDefinitions\":{columns},"), "rows")
            }
            View::Whole | View::Metadata => (String::new(), "items"),
        };
        format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",{columns}\"{items}\":[").into()
    }

    /// One object.
    pub fn write_item(&self, out: &mut BytesMut, stored: &[u8]) -> Result<(), Error> {
        if self.form.view == View::Whole {
            let shown = self.resource_type.shown(stored)?;
            // Built-in lists leave kind and version out of their items; custom resources have them.
            if self.resource_type.protobuf {
                out.extend_from_slice(&shown);
            } else {
                view::write_whole(out, &self.resource_type, &shown);
            }
            return Ok(());
        }
        let item = serde_json::to_vec(&self.item(stored)?).expect("a JSON value always encodes");
        out.extend_from_slice(&item);
        Ok(())
    }

    /// What stands behind the last object.
    pub fn closing(&self, metadata: &ListMetadata) -> Bytes {
        format!("],\"metadata\":{}}}", Value::from(self.metadata(metadata))).into()
    }

    /// An answer with a list that was read as a whole.
    pub fn collected(&self, items: Vec<Stored>, metadata: &ListMetadata) -> Result<Response<Body>, Error> {
        let values: Result<Vec<Value>, Error> = items.iter().map(|item| self.item(&item.value)).collect();
        self.finished(values?, self.metadata(metadata))
    }

    /// An answer with a list of these objects.
    pub fn of_values(&self, items: Vec<Bytes>, revision: Revision) -> Result<Response<Body>, Error> {
        let values: Result<Vec<Value>, Error> = items.iter().map(|item| self.item(item)).collect();
        let metadata = ListMetadata { revision, continue_token: None, remaining: None };
        self.finished(values?, self.metadata(&metadata))
    }

    fn finished(&self, values: Vec<Value>, metadata: Map<String, Value>) -> Result<Response<Body>, Error> {
        let (kind, version) = self.kind();
        let mut list = json!({"kind": kind, "apiVersion": version, "metadata": metadata});
        if self.form.view == View::Table {
            list["columnDefinitions"] = self.resource_type.table.columns().into();
            list["rows"] = values.into();
        } else {
            list["items"] = values.into();
        }
        Ok(self.response(Body::from(encode(self.form, &list)?)))
    }

    fn item(&self, stored: &[u8]) -> Result<Value, Error> {
        match self.form.view {
            View::Whole if self.resource_type.protobuf => parse(&self.resource_type.shown(stored)?),
            View::Whole => parse(&view::whole(&self.resource_type, &self.resource_type.shown(stored)?)),
            View::Metadata => Ok(view::metadata(&parse(stored)?)),
            View::Table => Ok(view::row_of(&self.resource_type, self.include.clone()?, &parse(stored)?)),
        }
    }

    fn metadata(&self, metadata: &ListMetadata) -> Map<String, Value> {
        let mut out = Map::new();
        // What is not stored has no version.
        if metadata.revision != Revision::ZERO {
            out.insert("resourceVersion".to_owned(), metadata.revision.to_string().into());
        }
        // Lists of custom objects have a token even if it is empty.
        let is_custom = self.resource_type.custom.is_some() && self.form.view == View::Whole;
        if let Some(token) = metadata.continue_token.as_deref().or(is_custom.then_some("")) {
            out.insert("continue".to_owned(), token.into());
        }
        if let Some(remaining) = metadata.remaining {
            out.insert("remainingItemCount".to_owned(), remaining.into());
        }
        out
    }

    fn kind(&self) -> (String, String) {
        let of_meta = |kind: &str| (kind.to_owned(), "meta.k8s.io/v1".to_owned());
        match self.form.view {
            View::Whole => (self.resource_type.list_kind(), self.resource_type.api_version()),
            View::Metadata => of_meta("PartialObjectMetadataList"),
            View::Table => of_meta("Table"),
        }
    }
}
