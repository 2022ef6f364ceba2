//! Serialization of a document. A path or schema is a tree only until it is encoded: all trees of a document would take ten
//! times the memory of its bytes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::protobuf::{v2, v3};
use super::schemas::Dialect;

/// Encoded parts of a document by name.
pub type Pieces = BTreeMap<String, Vec<u8>>;

/// Dialect and encoding of a document.
#[derive(Clone, Copy)]
pub struct DocumentFormat {
    pub dialect: Dialect,
    pub is_protobuf: bool,
}

impl DocumentFormat {
    pub fn path_item(self, item: &Value) -> Vec<u8> {
        match (self.is_protobuf, self.dialect) {
            (false, _) => text(item),
            (true, Dialect::V2) => v2::path_item(item).0,
            (true, Dialect::V3) => v3::path_item(item).0,
        }
    }

    pub fn schema(self, schema: &Value) -> Vec<u8> {
        match (self.is_protobuf, self.dialect) {
            (false, _) => text(schema),
            (true, Dialect::V2) => v2::schema(schema).0,
            (true, Dialect::V3) => v3::schema_or_reference(schema).0,
        }
    }
}

/// A document whose paths and schemas are encoded already.
pub struct Document {
    pub title: &'static str,
    pub version: &'static str,
    pub paths: Pieces,
    pub schemas: Pieces,
    /// The security scheme, by name.
    pub security: Option<(&'static str, Value)>,
}

impl Document {
    pub fn written(self, form: DocumentFormat) -> Vec<u8> {
        match (form.is_protobuf, form.dialect) {
            (false, dialect) => self.json(dialect),
            (true, Dialect::V2) => v2::document(self),
            (true, Dialect::V3) => v3::document(self),
        }
    }

    fn json(self, dialect: Dialect) -> Vec<u8> {
        let Self { title, version, paths, schemas, security } = self;
        let info = json!({"title": title, "version": version});
        let names: Vec<Value> = security.iter().map(|(name, _)| json!({*name: []})).collect();
        let schemes: Option<Value> = security.map(|(name, scheme)| json!({name: scheme}));
        let mut out = Vec::new();
        match dialect {
            Dialect::V2 => {
                out.extend_from_slice(b"{\"definitions\":");
                members(&mut out, schemas);
                member(&mut out, "info", &info);
                out.extend_from_slice(b",\"paths\":");
                members(&mut out, paths);
                if let Some(schemes) = schemes {
                    member(&mut out, "security", &names.into());
                    member(&mut out, "securityDefinitions", &schemes);
                }
                member(&mut out, "swagger", &"2.0".into());
            }
            Dialect::V3 => {
                out.extend_from_slice(b"{\"components\":{\"schemas\":");
                members(&mut out, schemas);
                if let Some(schemes) = schemes {
                    member(&mut out, "securitySchemes", &schemes);
                }
                out.push(b'}');
                member(&mut out, "info", &info);
                member(&mut out, "openapi", &"3.0.0".into());
                out.extend_from_slice(b",\"paths\":");
                members(&mut out, paths);
            }
        }
        out.push(b'}');
        out
    }
}

fn text(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Writes a member after others.
fn member(out: &mut Vec<u8>, name: &str, value: &Value) {
    out.push(b',');
    out.extend(text(&name.into()));
    out.push(b':');
    out.extend(text(value));
}

/// Writes an object of encoded parts, dropping each after it is copied.
fn members(out: &mut Vec<u8>, pieces: Pieces) {
    out.push(b'{');
    for (position, (name, piece)) in pieces.into_iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        out.extend(text(&name.into()));
        out.push(b':');
        out.extend(piece);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_all_parts_where_each_dialect_wants_them() {
        let document = |security: Option<(&'static str, Value)>| Document {
            title: "T",
            version: "1",
            paths: [("/a", r#"{"get":{}}"#), ("/\"b\"", "{}")].map(|(k, v)| (k.to_owned(), v.into())).into(),
            schemas: [("A".to_owned(), b"true".to_vec())].into(),
            security,
        };
        let written = |dialect, security| {
            let bytes = document(security).written(DocumentFormat { dialect, is_protobuf: false });
            serde_json::from_slice::<Value>(&bytes).unwrap()
        };
        let (info, paths) = (json!({"title": "T", "version": "1"}), json!({"/a": {"get": {}}, "/\"b\"": {}}));
        assert_eq!(
            written(Dialect::V2, Some(("Token", json!({"in": "header"})))),
            json!({
                "swagger": "2.0", "info": info, "paths": paths, "definitions": {"A": true},
                "security": [{"Token": []}], "securityDefinitions": {"Token": {"in": "header"}},
            })
        );
        assert_eq!(
            written(Dialect::V3, Some(("Token", json!({"in": "header"})))),
            json!({
                "openapi": "3.0.0", "info": info, "paths": paths,
                "components": {"schemas": {"A": true}, "securitySchemes": {"Token": {"in": "header"}}},
            })
        );
        let without = written(Dialect::V3, None);
        assert_eq!(without["components"], json!({"schemas": {"A": true}}));
    }
}
