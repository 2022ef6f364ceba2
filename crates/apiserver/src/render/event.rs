//! Encoding of watch events. An event is encoded once per form, for all watchers.

use std::sync::Arc;

use bytes::Bytes;
use kinds::{protobuf, schema};
use model::Revision;
use model::error::Error;
use serde_json::{Value, json};
use store::{Event, EventKind};

use super::message::Messages;
use super::view::{self, Include};
use super::{not_encoded, parse};
use crate::registry::{Served, custom};
use crate::request::negotiate::{Encoding, Form, Representation};
use crate::verbs::Call;

/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The size of an event beside its object, for buffers.
const FRAME: usize = 128;

/// The `type` of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventName {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

impl EventName {
    fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// The encoder of one watch.
pub(crate) struct EventFrame {
    resource_type: Arc<Served>,
    form: Form,
    include: Include,
    /// Only the first table of a watch has columns.
    columns_sent: bool,
}

impl EventFrame {
    /// The encoder for a request.
    pub fn new(call: &Call) -> Result<Self, Error> {
        // Watches are JSON or protobuf; there is no YAML stream.
        if call.form.encoding == Encoding::Yaml {
            return Err(Error::NotAcceptable {
                accepted: vec![
                    "application/json;stream=watch".to_owned(),
                    "application/vnd.kubernetes.protobuf;stream=watch".to_owned(),
                ],
            });
        }
        let form = Form { pretty: false, ..call.form };
        let include =
            if call.form.view == Representation::Table { Include::of(call)? } else { Include::Metadata };
        Ok(Self { resource_type: call.resource_type.clone(), form, include, columns_sent: false })
    }

    /// The content type of the stream.
    pub fn content_type(&self) -> &'static str {
        match self.form.encoding {
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            Encoding::Json | Encoding::Yaml => "application/json",
        }
    }

    /// Encodes an event, or takes it from the shared cache.
    pub async fn shared(&mut self, event: &Event) -> Result<Bytes, Error> {
        let name = match event.kind {
            EventKind::Added => EventName::Added,
            EventKind::Modified => EventName::Modified,
            EventKind::Deleted => EventName::Deleted,
        };
        let value = event.value();
        let fits = |view: &custom::CrdVersion| view.fits(&value, event.change.revision);
        let fits = self.resource_type.custom.as_ref().is_none_or(fits);
        if self.form.view == Representation::Table || !fits {
            let value = self.resource_type.of_version(value, event.change.revision).await?;
            let mut out = Vec::new();
            self.write_stored(&mut out, name, &value)?;
            return Ok(out.into());
        }
        Ok(event.change.frame(self.slot(name), |_| {
            let mut out = Vec::with_capacity(value.len() + FRAME);
            match self.write(&mut out, name, &value) {
                Ok(()) => out.into(),
                Err(error) => self.error(&error),
            }
        }))
    }

    /// Encodes a stored object as an event.
    pub fn write_stored(&mut self, out: &mut Vec<u8>, name: EventName, stored: &[u8]) -> Result<(), Error> {
        if self.form.view != Representation::Table {
            return self.write(out, name, stored);
        }
        let object = parse(stored)?;
        let row = view::row_of(&self.resource_type, self.include, &object);
        let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or("");
        let mut table = view::table(&self.resource_type, version, vec![row]);
        if std::mem::replace(&mut self.columns_sent, true) {
            table["columnDefinitions"] = Value::Null;
        }
        self.write_value(out, name, &table)
    }

    /// A bookmark: everything up to this revision has been sent.
    pub fn write_bookmark(
        &mut self,
        out: &mut Vec<u8>,
        revision: Revision,
        initial: bool,
    ) -> Result<(), Error> {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        let stored = json!({ "metadata": metadata });
        let stored = serde_json::to_vec(&stored).expect("a JSON value always encodes");
        self.write_stored(out, EventName::Bookmark, &stored)
    }

    /// The error event that ends a watch.
    pub fn error(&self, error: &Error) -> Bytes {
        let mut out = Vec::new();
        if let Err(failed) = self.write_value(&mut out, EventName::Error, &error.status()) {
            tracing::error!(%failed, "cannot encode an error event");
        }
        out.into()
    }

    /// Encodes an object, whole or its metadata.
    fn write(&self, out: &mut Vec<u8>, name: EventName, stored: &[u8]) -> Result<(), Error> {
        if self.form.encoding == Encoding::Protobuf {
            return Messages::new(&self.resource_type, self.form.view).event(name.as_str(), stored, out);
        }
        write_json(out, name, |out| {
            if self.form.view == Representation::Metadata {
                return view::write_metadata(out, stored);
            }
            view::write_whole(out, &self.resource_type, &self.resource_type.shown(stored)?);
            Ok(())
        })
    }

    fn write_value(&self, out: &mut Vec<u8>, name: EventName, object: &Value) -> Result<(), Error> {
        if self.form.encoding == Encoding::Protobuf {
            let frame = protobuf::watch_event(schema::builtin(), name.as_str(), object);
            out.extend_from_slice(&frame.map_err(not_encoded)?);
            return Ok(());
        }
        write_json(out, name, |out| serde_json::to_writer(out, object).map_err(not_encoded))
    }

    /// The cache slot; forms with the same bytes share one.
    fn slot(&self, name: EventName) -> u32 {
        let encoding = match self.form.encoding {
            Encoding::Json | Encoding::Yaml => 0,
            Encoding::Protobuf => 1,
        };
        let view = match self.form.view {
            Representation::Whole => 0,
            Representation::Metadata => 1,
            Representation::Table => 2,
        };
        ((self.resource_type.view * 2 + encoding) * 3 + view) * 3 + name as u32
    }
}

fn write_json(
    out: &mut Vec<u8>,
    name: EventName,
    object: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    object(out)?;
    out.extend_from_slice(b"}\n");
    Ok(())
}
