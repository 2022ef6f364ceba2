//! The v2 document as gnostic's `openapi.v2.Document`, which older clients request.

use serde_json::Value;

use super::{Message, any, fields, items};
use crate::openapi::document::Document;

/// Encodes a document.
pub fn document(document: Document) -> Vec<u8> {
    let mut message = Message::default();
    message.bytes(1, b"2.0");
    let mut info = Message::default();
    info.bytes(1, document.title.as_bytes());
    info.bytes(2, document.version.as_bytes());
    message.message(2, &info);
    let mut paths = Message::default();
    paths.pieces(2, document.paths);
    message.message(8, &paths);
    let mut definitions = Message::default();
    definitions.pieces(1, document.schemas);
    message.message(9, &definitions);
    message.0
}

pub fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    for (method, tag) in [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 8)] {
        if let Some(value) = item.get(method) {
            message.message(tag, &operation(value));
        }
    }
    for each in items(&item["parameters"]) {
        message.message(9, &parameter(each));
    }
    message
}

fn operation(value: &Value) -> Message {
    let mut message = Message::default();
    message.texts(1, &value["tags"]);
    message.text(3, &value["description"]);
    message.text(5, &value["operationId"]);
    message.texts(6, &value["produces"]);
    message.texts(7, &value["consumes"]);
    for each in items(&value["parameters"]) {
        message.message(8, &parameter(each));
    }
    let mut answers = Message::default();
    for (code, answer) in fields(&value["responses"]) {
        let mut response = Message::default();
        response.text(1, &answer["description"]);
        if let Some(of) = answer.get("schema") {
            response.message(2, &Message::of(1, &schema(of)));
        }
        answers.named(1, code, &Message::of(1, &response));
    }
    message.message(9, &answers);
    message.texts(10, &value["schemes"]);
    message.extensions(13, value);
    message
}

/// A parameter is wrapped in two oneofs: not a reference, and its location.
fn parameter(value: &Value) -> Message {
    let mut message = Message::default();
    let tags = match value["in"].as_str() {
        Some("body") => {
            message.text(1, &value["description"]);
            message.text(2, &value["name"]);
            message.text(3, &value["in"]);
            message.flag(4, &value["required"]);
            message.message(5, &schema(&value["schema"]));
            return Message::of(1, &Message::of(1, &message));
        }
        Some("path") => ParameterTags { wrapper: 4, kind: 5, unique: 19 },
        _ => ParameterTags { wrapper: 3, kind: 6, unique: 20 },
    };
    message.flag(1, &value["required"]);
    message.text(2, &value["in"]);
    message.text(3, &value["description"]);
    message.text(4, &value["name"]);
    message.text(tags.kind, &value["type"]);
    message.flag(tags.unique, &value["uniqueItems"]);
    Message::of(1, &Message::of(2, &Message::of(tags.wrapper, &message)))
}

/// The tags that differ between path and query parameters.
struct ParameterTags {
    wrapper: u32,
    kind: u32,
    unique: u32,
}

fn schemas(value: &Value) -> Message {
    let mut message = Message::default();
    for (name, of) in fields(value) {
        message.named(1, name, &schema(of));
    }
    message
}

pub fn schema(value: &Value) -> Message {
    let mut message = Message::default();
    message.text(1, &value["$ref"]);
    message.text(2, &value["format"]);
    message.text(4, &value["description"]);
    message.texts(19, &value["required"]);
    for each in items(&value["enum"]) {
        message.message(20, &any(each));
    }
    if let Some(item) = value.get("additionalProperties") {
        message.message(21, &Message::of(1, &schema(item)));
    }
    if let Some(kind) = value.get("type") {
        let mut kinds = Message::default();
        kinds.text(1, kind);
        message.message(22, &kinds);
    }
    if let Some(item) = value.get("items") {
        message.message(23, &Message::of(1, &schema(item)));
    }
    if let Some(properties) = value.get("properties") {
        message.message(25, &schemas(properties));
    }
    message.extensions(31, value);
    message
}
