//! Representations of an object: whole, metadata, table row.

use bytes::{BufMut, Bytes, BytesMut};
use model::encoded::split_version;
use model::error::{Error, quote};
use model::json::outline::{Json, Outline};
use serde_json::{Value, json};

use super::message::METADATA;
use super::unreadable;
use crate::registry::{ResourceType, Served};
use crate::verbs::Call;

/// The whole object: kind and apiVersion before the bytes of [`Served::shown`].
pub fn whole(served: &Served, shown: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(served.opening.len() + shown.len());
    write_whole(&mut out, served, shown);
    out.freeze()
}

/// Like [`whole`], into a buffer.
pub fn write_whole(out: &mut impl BufMut, served: &Served, shown: &[u8]) {
    out.put_slice(&served.opening);
    out.put_slice(split_version(shown).1);
}

/// The metadata of a stored object, as JSON.
pub fn metadata_of(stored: &[u8]) -> Result<Bytes, Error> {
    let mut out = BytesMut::new();
    write_metadata(&mut out, stored)?;
    Ok(out.freeze())
}

/// Like [`metadata_of`], into a buffer.
pub fn write_metadata(out: &mut impl BufMut, stored: &[u8]) -> Result<(), Error> {
    let mut outline = Outline::default();
    let object = outline.read(stored).map_err(unreadable)?;
    let (api_version, kind) = METADATA;
    out.put_slice(format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":"#).as_bytes());
    out.put_slice(object.member("metadata").map_or(b"{}", Json::raw));
    out.put_slice(b"}");
    Ok(())
}

/// The metadata of an object.
pub fn metadata(object: &Value) -> Value {
    let (api_version, kind) = METADATA;
    json!({
        "kind": kind,
        "apiVersion": api_version,
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

/// The object that a row includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
}

impl Include {
    /// Parses `includeObject`.
    pub fn of(call: &Call) -> Result<Self, Error> {
        match call.query.text("includeObject") {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => {
                let problem = "must be 'Metadata', 'Object', 'None', or empty";
                let message = format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {}: {problem}",
                    quote(other)
                );
                Err(Error::BadRequest { message })
            }
        }
    }
}

/// One object as a table row.
pub fn row(call: &Call, object: &Value) -> Result<Value, Error> {
    Ok(row_of(&call.resource_type, Include::of(call)?, object))
}

/// Like [`row`], without a call.
pub fn row_of(resource_type: &ResourceType, include: Include, object: &Value) -> Value {
    let empty = serde_json::Map::new();
    let fields = object.as_object().unwrap_or(&empty);
    let cells = resource_type.table.cells(fields, crate::verbs::now());
    let included = match include {
        Include::None => Value::Null,
        Include::Metadata => metadata(object),
        Include::Object => {
            let mut whole = fields.clone();
            if let Some(conversion) = resource_type.conversion() {
                (conversion.from_stored)(&mut whole);
            }
            whole.insert("kind".to_owned(), resource_type.kind.clone().into());
            whole.insert("apiVersion".to_owned(), resource_type.api_version().into());
            Value::Object(whole)
        }
    };
    json!({"cells": cells, "object": included})
}

/// A table of rows.
pub fn table(resource_type: &ResourceType, version: &str, rows: Vec<Value>) -> Value {
    let metadata = if version.is_empty() { json!({}) } else { json!({"resourceVersion": version}) };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": resource_type.table.columns(),
        "rows": rows,
    })
}

/// The resourceVersion of a stored object.
pub fn version_of(stored: &[u8]) -> Result<String, Error> {
    let value = super::parse(stored)?;
    Ok(value.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or("").to_owned())
}
