//! The document of a group version as gnostic's `openapi.v3.Document`.

use serde_json::Value;

use super::{Message, any, fields, items};
use crate::openapi::document::Document;

/// Encodes a document.
pub fn document(document: Document) -> Vec<u8> {
    let mut message = Message::default();
    message.bytes(1, b"3.0.0");
    let mut info = Message::default();
    info.bytes(1, document.title.as_bytes());
    info.bytes(6, document.version.as_bytes());
    message.message(2, &info);
    let mut paths = Message::default();
    paths.pieces(1, document.paths);
    message.message(4, &paths);
    let mut schemas = Message::default();
    schemas.pieces(1, document.schemas);
    let mut components = Message::of(1, &schemas);
    if let Some((name, scheme)) = document.security {
        let mut schemes = Message::default();
        schemes.named(1, name, &Message::of(1, &security_scheme(&scheme)));
        components.message(7, &schemes);
    }
    message.message(5, &components);
    message.0
}

fn security_scheme(value: &Value) -> Message {
    let mut message = Message::default();
    for (tag, key) in [(1, "type"), (2, "description"), (3, "name"), (4, "in")] {
        message.text(tag, &value[key]);
    }
    message
}

pub fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    for (method, tag) in [("get", 4), ("put", 5), ("post", 6), ("delete", 7), ("patch", 10)] {
        if let Some(value) = item.get(method) {
            message.message(tag, &operation(value));
        }
    }
    for each in items(&item["parameters"]) {
        message.message(13, &Message::of(1, &parameter(each)));
    }
    message
}

fn operation(value: &Value) -> Message {
    let mut message = Message::default();
    message.texts(1, &value["tags"]);
    message.text(3, &value["description"]);
    message.text(5, &value["operationId"]);
    for each in items(&value["parameters"]) {
        message.message(6, &Message::of(1, &parameter(each)));
    }
    if let Some(body) = value.get("requestBody") {
        let mut of_body = Message::of(2, &content(&body["content"]));
        of_body.flag(3, &body["required"]);
        message.message(7, &Message::of(1, &of_body));
    }
    let mut answers = Message::default();
    for (code, answer) in fields(&value["responses"]) {
        let mut response = Message::default();
        response.text(1, &answer["description"]);
        if let Some(of) = answer.get("content") {
            response.message(3, &content(of));
        }
        answers.named(2, code, &Message::of(1, &response));
    }
    message.message(8, &answers);
    message.extensions(13, value);
    message
}

fn parameter(value: &Value) -> Message {
    let mut message = Message::default();
    for (tag, key) in [(1, "name"), (2, "in"), (3, "description")] {
        message.text(tag, &value[key]);
    }
    message.flag(4, &value["required"]);
    message.message(10, &schema_or_reference(&value["schema"]));
    message
}

/// Schemas by media type.
fn content(value: &Value) -> Message {
    let mut message = Message::default();
    for (media, of) in fields(value) {
        message.named(1, media, &Message::of(1, &schema_or_reference(&of["schema"])));
    }
    message
}

fn schemas(value: &Value) -> Message {
    let mut message = Message::default();
    for (name, of) in fields(value) {
        message.named(1, name, &schema_or_reference(of));
    }
    message
}

/// Siblings of a reference are ignored.
pub fn schema_or_reference(value: &Value) -> Message {
    match value.get("$ref") {
        Some(name) => {
            let mut reference = Message::default();
            reference.text(1, name);
            reference.text(3, &value["description"]);
            Message::of(2, &reference)
        }
        None => Message::of(1, &schema(value)),
    }
}

fn schema(value: &Value) -> Message {
    let mut message = Message::default();
    message.flag(1, &value["nullable"]);
    if let Some(example) = value.get("example") {
        message.message(7, &any(example));
    }
    message.text(9, &value["title"]);
    bounds(&mut message, value);
    message.texts(23, &value["required"]);
    for each in items(&value["enum"]) {
        message.message(24, &any(each));
    }
    message.text(25, &value["type"]);
    for (tag, key) in [(26, "allOf"), (27, "oneOf"), (28, "anyOf")] {
        for each in items(&value[key]) {
            message.message(tag, &schema_or_reference(each));
        }
    }
    if let Some(not) = value.get("not") {
        message.message(29, &schema(not));
    }
    if let Some(item) = value.get("items") {
        message.message(30, &Message::of(1, &schema_or_reference(item)));
    }
    if let Some(properties) = value.get("properties") {
        message.message(31, &schemas(properties));
    }
    if let Some(item) = value.get("additionalProperties") {
        let mut of = Message::default();
        match item {
            Value::Bool(any) => of.truth(2, *any),
            item => of.message(1, &schema_or_reference(item)),
        }
        message.message(32, &of);
    }
    if let Some(default) = value.get("default") {
        default_type(&mut message, default);
    }
    message.text(34, &value["description"]);
    message.text(35, &value["format"]);
    message.extensions(36, value);
    message
}

fn bounds(message: &mut Message, value: &Value) {
    message.number(10, &value["multipleOf"]);
    message.number(11, &value["maximum"]);
    message.flag(12, &value["exclusiveMaximum"]);
    message.number(13, &value["minimum"]);
    message.flag(14, &value["exclusiveMinimum"]);
    message.count(15, &value["maxLength"]);
    message.count(16, &value["minLength"]);
    message.text(17, &value["pattern"]);
    message.count(18, &value["maxItems"]);
    message.count(19, &value["minItems"]);
    message.flag(20, &value["uniqueItems"]);
    message.count(21, &value["maxProperties"]);
    message.count(22, &value["minProperties"]);
}

/// gnostic has defaults of numbers, booleans and strings only.
fn default_type(message: &mut Message, value: &Value) {
    let mut of = Message::default();
    match value {
        Value::Number(_) => of.number(1, value),
        Value::Bool(truth) => of.truth(2, *truth),
        Value::String(_) => of.text(3, value),
        _ => {}
    }
    message.message(33, &of);
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    /// The encoding of the document below by gnostic's library.
    const OF_GNOSTIC: &[&str] = &[
        "CgUzLjAuMBISCgpLdWJlcm5ldGVzMgQxLjM1Io4CCosCCgkvcC97bmFtZX0S/QEimwEKBGFfdjEaBWdldCBBKgVyZWFkQTInCiUK",
        "BWxpbWl0EgVxdWVyeRoEbW9zdFIPCg2gAQHKAQdpbnRlZ2VyQlwSQQoDMjAwEjoKOAoCT0saMgowChBhcHBsaWNhdGlvbi9qc29u",
        "EhwKGhIYChYjL2NvbXBvbmVudHMvc2NoZW1hcy9BEhcKAzQwMRIQCg4KDFVuYXV0aG9yaXplZCo+OisKKRIlCiMKAyovKhIcChoS",
        "GAoWIy9jb21wb25lbnRzL3NjaGVtYXMvQRgBQg8SDQoDMjAwEgYKBAoCT0tqHQobCgRuYW1lEgRwYXRoIAFSCwoJygEGc3RyaW5n",
        "KqgDCuoCCucCCgFBEuECCt4CugEBYsoBBm9iamVjdPoBxgIKPAoBYRI3CjWQAQOYAQHKAQVhcnJhefIBJAoiCiDSARoSGAoWIy9j",
        "b21wb25lbnRzL3NjaGVtYXMvQYoCAAopCgFiEiQKIggBeAmAAQKKAQNeeCTKAQZzdHJpbmeKAgIaAJoCBGJ5dGUKOgoBYxI1CjNR",
        "AAAAAAAAAEBZAAAAAAAAI0BpAAAAAAAA8D9wAcoBB2ludGVnZXKKAgkJAAAAAAAAHEAKFgoBZBIRCg/KAQdib29sZWFuigICEAAK",
        "JgoBZRIhCh+oAQSwAQHKAQZvYmplY3SCAg0KCwoJygEGc3RyaW5nChUKAWYSEAoOygEGb2JqZWN0ggICEAEKKwoBZxImCiTaAQwK",
        "CsoBB2ludGVnZXLaAQsKCcoBBnN0cmluZ+oBBEoCbm8KGwoBaBIWChRgAaABAeIBDAoKygEHaW50ZWdlcpICBGFuIEE6OQo3CgtC",
        "ZWFyZXJUb2tlbhIoCiYKBmFwaUtleRIFdG9rZW4aDWF1dGhvcml6YXRpb24iBmhlYWRlcg==",
    ];

    #[test]
    fn documents_have_the_bytes_of_gnostic() {
        let schema = json!({
            "description": "an A",
            "type": "object",
            "required": ["b"],
            "properties": {
                "a": {
                    "type": "array", "items": {"default": {}, "allOf": [{"$ref": "#/components/schemas/A"}]},
                    "maxItems": 3, "minItems": 1,
                },
                "b": {
                    "type": "string", "format": "byte", "default": "", "maxLength": 9, "minLength": 2, "pattern": "^x$",
                    "nullable": true,
                },
                "c": {
                    "type": "integer", "default": 7, "maximum": 9.5, "minimum": 1, "exclusiveMinimum": true, "multipleOf": 2,
                },
                "d": {"type": "boolean", "default": false},
                "e": {
                    "type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 4, "minProperties": 1,
                },
                "f": {"type": "object", "additionalProperties": true},
                "g": {"oneOf": [{"type": "integer"}, {"type": "string"}], "not": {"title": "no"}},
                "h": {"anyOf": [{"type": "integer"}], "uniqueItems": true, "exclusiveMaximum": true},
            },
        });
        let reference = json!({"schema": {"$ref": "#/components/schemas/A"}});
        let get = json!({
            "tags": ["a_v1"],
            "description": "get A",
            "operationId": "readA",
            "parameters": [{
                "name": "limit", "in": "query", "description": "most", "schema": {"type": "integer", "uniqueItems": true},
            }],
            "responses": {
                "200": {"description": "OK", "content": {"application/json": reference}},
                "401": {"description": "Unauthorized"},
            },
        });
        let put = json!({
            "requestBody": {"content": {"*/*": reference}, "required": true},
            "responses": {"200": {"description": "OK"}},
        });
        let name = json!({"name": "name", "in": "path", "required": true, "schema": {"type": "string"}});
        let token =
            json!({"type": "apiKey", "description": "token", "name": "authorization", "in": "header"});
        let item = json!({"get": get, "put": put, "parameters": [name]});
        let whole = Document {
            title: "Kubernetes",
            version: "1.35",
            paths: [("/p/{name}".to_owned(), path_item(&item).0)].into(),
            schemas: [("A".to_owned(), schema_or_reference(&schema).0)].into(),
            security: Some(("BearerToken", token)),
        };
        assert_eq!(STANDARD.encode(document(whole)), OF_GNOSTIC.concat());
    }

    /// Values of any type are YAML.
    #[test]
    fn extensions_and_values_are_there() {
        let bytes = schema(&json!({"enum": ["a"], "x-kubernetes-list-type": "set"})).0;
        let mut expected = b"\xc2\x01\x05\x12\x03\"a\"\xa2\x02\x21\x0a\x16x-kubernetes-list-type".to_vec();
        expected.extend_from_slice(b"\x12\x07\x12\x05\"set\"");
        assert_eq!(bytes, expected);
    }
}
