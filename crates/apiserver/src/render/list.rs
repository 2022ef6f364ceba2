//! Encoding of lists.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::Response;
use kinds::protobuf::{ENVELOPE_END, Encoder, TypeMeta};
use kinds::schema;
use model::Revision;
use model::error::Error;
use serde_json::{Map, Value, json};

use super::message::{METADATA, Messages};
use super::view::{self, Include};
use super::{encode, not_encoded, parse, respond};
use crate::body::{Aborted, Body};
use crate::registry::Served;
use crate::request::negotiate::{Encoding, Form, Representation};
use crate::verbs::{Call, ListMetadata};

/// The encoder of a list.
#[derive(Clone)]
pub(crate) struct ListFrame {
    resource_type: Arc<Served>,
    form: Form,
    include: Result<Include, Error>,
}

impl ListFrame {
    /// The encoder for a request.
    pub fn new(call: &Call) -> Self {
        Self { resource_type: call.resource_type.clone(), form: call.form, include: Include::of(call) }
    }

    /// Whether the list can be streamed. Other encodings need the whole list first.
    pub fn streams(&self) -> bool {
        self.form.encoding == Encoding::Json && !self.form.pretty && self.include.is_ok()
    }

    /// A response with this body.
    pub fn response(&self, body: Body) -> Response<Body> {
        respond(self.form.encoding.media_type(), body)
    }

    /// The bytes before the first item.
    pub fn opening(&self) -> Bytes {
        let (kind, version) = self.kind();
        let (columns, items) = match self.form.view {
            Representation::Table => {
                let columns = Value::from(self.resource_type.table.columns());
                (format!("\"columnDefinitions\":{columns},"), "rows")
            }
            Representation::Whole | Representation::Metadata => (String::new(), "items"),
        };
        format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",{columns}\"{items}\":[").into()
    }

    /// Encodes one item.
    pub fn write_item(&self, out: &mut BytesMut, stored: &[u8]) -> Result<(), Error> {
        if self.form.view == Representation::Metadata {
            return view::write_metadata(out, stored);
        }
        if self.form.view == Representation::Whole {
            let shown = self.resource_type.shown(stored)?;
            // Items of built-in types omit kind and apiVersion; custom objects have them.
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

    /// The bytes after the last item.
    pub fn closing(&self, metadata: &ListMetadata) -> Bytes {
        format!("],\"metadata\":{}}}", Value::from(self.metadata(metadata))).into()
    }

    /// A list that is read completely before it is encoded.
    pub fn collect(&self) -> Collected<'_> {
        let is_message = self.form.encoding == Encoding::Protobuf && self.form.view != Representation::Table;
        let items = if is_message {
            Items::Messages(Messages::new(&self.resource_type, self.form.view), Vec::new())
        } else {
            Items::Values(Vec::new())
        };
        Collected { frame: self, items }
    }

    fn of_trees(&self, values: Vec<Value>, metadata: Map<String, Value>) -> Result<Response<Body>, Error> {
        let (kind, version) = self.kind();
        let mut list = json!({"kind": kind, "apiVersion": version, "metadata": metadata});
        if self.form.view == Representation::Table {
            list["columnDefinitions"] = self.resource_type.table.columns().into();
            list["rows"] = values.into();
        } else {
            list["items"] = values.into();
        }
        Ok(self.response(Body::from(encode(self.form, &list)?)))
    }

    /// A protobuf list is prefixed by its length, so it is sent after all items are encoded.
    fn of_messages(
        &self,
        mut pieces: Vec<Vec<u8>>,
        metadata: Map<String, Value>,
    ) -> Result<Response<Body>, Error> {
        let (kind, version) = self.kind();
        let length = pieces.iter().map(Vec::len).sum();
        let mut encoder = Encoder::new(schema::builtin());
        let opening = encoder
            .list_opening(TypeMeta::new(&version, &kind), &metadata.into(), length)
            .map_err(not_encoded)?;
        match pieces.first_mut() {
            Some(first) => drop(first.splice(0..0, opening)),
            None => pieces.push(opening),
        }
        if let Some(last) = pieces.last_mut() {
            last.extend_from_slice(ENVELOPE_END);
        }
        if pieces.len() == 1 {
            return Ok(self.response(Body::from(pieces.remove(0))));
        }
        let chunks = pieces.into_iter().map(|piece| Ok::<_, Aborted>(Bytes::from(piece)));
        Ok(self.response(Body::stream(futures::stream::iter(chunks))))
    }

    fn item(&self, stored: &[u8]) -> Result<Value, Error> {
        match self.form.view {
            Representation::Whole if self.resource_type.protobuf => parse(&self.resource_type.shown(stored)?),
            Representation::Whole => {
                parse(&view::whole(&self.resource_type, &self.resource_type.shown(stored)?))
            }
            Representation::Metadata => parse(&view::metadata_of(stored)?),
            Representation::Table => {
                Ok(view::row_of(&self.resource_type, self.include.clone()?, &parse(stored)?))
            }
        }
    }

    fn metadata(&self, metadata: &ListMetadata) -> Map<String, Value> {
        let mut out = Map::new();
        // A list of unstored objects has no resourceVersion.
        if metadata.revision != Revision::ZERO {
            out.insert("resourceVersion".to_owned(), metadata.revision.to_string().into());
        }
        // Lists of custom objects have a continue field even if it is empty.
        let is_custom = self.resource_type.custom.is_some() && self.form.view == Representation::Whole;
        if let Some(token) = metadata.continue_token.as_deref().or(is_custom.then_some("")) {
            out.insert("continue".to_owned(), token.into());
        }
        if let Some(remaining) = metadata.remaining {
            out.insert("remainingItemCount".to_owned(), remaining.into());
        }
        out
    }

    fn kind(&self) -> (String, String) {
        let of_meta = |kind: &str| (kind.to_owned(), METADATA.0.to_owned());
        match self.form.view {
            Representation::Whole => (self.resource_type.list_kind(), self.resource_type.api_version()),
            Representation::Metadata => of_meta("PartialObjectMetadataList"),
            Representation::Table => of_meta("Table"),
        }
    }
}

/// A list that is read completely before it is encoded.
pub(crate) struct Collected<'f> {
    frame: &'f ListFrame,
    items: Items<'f>,
}

enum Items<'f> {
    Values(Vec<Value>),
    /// One chunk per call of `add`.
    Messages(Messages<'f>, Vec<Vec<u8>>),
}

impl Collected<'_> {
    /// Adds stored objects.
    pub fn add<'b>(&mut self, stored: impl IntoIterator<Item = &'b Bytes>) -> Result<(), Error> {
        match &mut self.items {
            Items::Values(values) => {
                for stored in stored {
                    values.push(self.frame.item(stored)?);
                }
            }
            Items::Messages(messages, pieces) => {
                let mut piece = Vec::new();
                for stored in stored {
                    messages.item(stored, &mut piece)?;
                }
                pieces.push(piece);
            }
        }
        Ok(())
    }

    /// The response.
    pub fn finish(self, metadata: &ListMetadata) -> Result<Response<Body>, Error> {
        let metadata = self.frame.metadata(metadata);
        match self.items {
            Items::Values(values) => self.frame.of_trees(values, metadata),
            Items::Messages(_, pieces) => self.frame.of_messages(pieces, metadata),
        }
    }
}
