//! The schemas of CRDs in OpenAPI documents.

use serde_json::{Map, Value, json};

use super::schemas::{Dialect, SchemaDefinitions, kinds};
use crate::registry::ResourceType;
use crate::registry::custom::CrdVersion;

impl SchemaDefinitions<'_> {
    /// References to the type of a CRD and to the type of its list.
    pub fn of_custom(&mut self, of: &ResourceType, view: &CrdVersion) -> (String, String) {
        let ResourceType { group, version, kind, .. } = of;
        let list_kind = of.list_kind();
        let [object_name, list_name] = [kind, &list_kind].map(|kind| name(group, version, kind));
        let metadata = self.of_meta("ObjectMeta");
        let embedded = || {
            let mut fields = Map::new();
            self.add_type_meta(&mut fields);
            fields.insert("metadata".to_owned(), self.described(&metadata, "io.k8s.api.core.v1.Pod"));
            fields
        };
        let mut object = match self.form.dialect {
            // Old clients would reject every field that is not listed.
            Dialect::V2 if view.version().schema.keeps_unknown => json!({"type": "object"}),
            dialect => {
                let schema = view.version().schema.value();
                let mut object = published(dialect, &schema, &embedded);
                object.entry("type").or_insert_with(|| "object".into());
                let properties = object.entry("properties").or_insert_with(|| json!({}));
                if let (Value::Object(properties), false) = (properties, schema.is_null()) {
                    properties.extend(embedded());
                }
                object.into()
            }
        };
        object[KINDS] = kinds(group, version, kind);
        let mut list = self.list_of_custom(of, &self.form.dialect.reference(&object_name));
        list[KINDS] = kinds(group, version, &list_kind);
        let fields: Vec<Value> =
            view.version().selectable.names().map(|name| json!({"fieldPath": name})).collect();
        if !fields.is_empty() {
            object["x-kubernetes-selectable-fields"] = fields.clone().into();
            list["x-kubernetes-selectable-fields"] = fields.into();
        }
        self.define(&object_name, &object);
        self.define(&list_name, &list);
        (self.form.dialect.reference(&object_name), self.form.dialect.reference(&list_name))
    }

    fn list_of_custom(&mut self, of: &ResourceType, item: &str) -> Value {
        let metadata = self.of_meta("ListMeta");
        let mut properties = Map::new();
        self.add_type_meta(&mut properties);
        properties.insert("metadata".to_owned(), self.described(&metadata, "io.k8s.api.core.v1.PodList"));
        let items = json!({
            "description": format!("The {}.", of.plural), "type": "array", "items": {"$ref": item},
        });
        properties.insert("items".to_owned(), items);
        json!({
            "description": format!("{} is a list of {}", of.list_kind(), of.kind),
            "type": "object", "required": ["items"], "properties": properties,
        })
    }

    /// A reference to the metadata type, with its description.
    fn described(&self, reference: &str, of: &str) -> Value {
        let reference = Map::from_iter([("$ref".to_owned(), reference.into())]);
        let mut property = self.beside_reference(reference);
        if let Some(text) = self.descriptions.of_field(of, "metadata") {
            property.insert("description".to_owned(), text.into());
        }
        property.into()
    }
}

const KINDS: &str = "x-kubernetes-group-version-kind";

/// The keywords that are published, beside subschemas and `x-kubernetes-` extensions.
const KEPT: [&str; 22] = [
    "description",
    "type",
    "title",
    "default",
    "nullable",
    "format",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "enum",
    "maxProperties",
    "minProperties",
    "required",
    "not",
];
const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// The keywords that OpenAPI v2 parsers do not know.
const NOT_IN_V2: [&str; 6] = ["default", "nullable", "not", "allOf", "anyOf", "oneOf"];

/// Publishes a schema in a dialect; `embedded` has the fields of embedded resources.
pub fn published(
    dialect: Dialect,
    schema: &Value,
    embedded: &dyn Fn() -> Map<String, Value>,
) -> Map<String, Value> {
    let Value::Object(source) = schema else { return Map::new() };
    let mut out = Map::new();
    for (key, value) in source {
        let is_kept = KEPT.contains(&key.as_str()) || JUNCTORS.contains(&key.as_str());
        let is_set = !matches!(value, Value::Bool(false)) && !value.is_null();
        if (is_kept || key.starts_with("x-kubernetes-")) && is_set {
            out.insert(key.clone(), value.clone());
        }
    }
    if is_true(source, "x-kubernetes-int-or-string") && !JUNCTORS.iter().any(|key| out.contains_key(*key)) {
        out.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
    }
    add_children(dialect, source, &mut out, embedded);
    if dialect == Dialect::V2 {
        simplify(source, &mut out);
    }
    let keeps_unknown = is_true(source, "x-kubernetes-preserve-unknown-fields");
    if is_true(source, "x-kubernetes-embedded-resource") && !(keeps_unknown && dialect == Dialect::V2) {
        add_embedded(&mut out, embedded());
    }
    out
}

fn add_children(
    dialect: Dialect,
    source: &Map<String, Value>,
    out: &mut Map<String, Value>,
    embedded: &dyn Fn() -> Map<String, Value>,
) {
    if let Some(Value::Object(properties)) = source.get("properties") {
        let properties = properties.iter();
        let properties: Map<String, Value> = properties
            .map(|(name, property)| (name.clone(), published(dialect, property, embedded).into()))
            .collect();
        out.insert("properties".to_owned(), properties.into());
    }
    if let Some(items) = source.get("items").filter(|items| items.is_object()) {
        out.insert("items".to_owned(), published(dialect, items, embedded).into());
    }
    match source.get("additionalProperties") {
        Some(Value::Bool(any)) => {
            out.insert("additionalProperties".to_owned(), (*any).into());
        }
        Some(values @ Value::Object(_)) => {
            out.insert("additionalProperties".to_owned(), published(dialect, values, embedded).into());
        }
        _ => {}
    }
}

/// Removes keywords that OpenAPI v2 parsers reject.
fn simplify(source: &Map<String, Value>, out: &mut Map<String, Value>) {
    for key in NOT_IN_V2 {
        out.remove(key);
    }
    let is_nullable = is_true(source, "nullable");
    let keeps_unknown = is_true(source, "x-kubernetes-preserve-unknown-fields");
    if is_nullable || keeps_unknown {
        out.remove("items");
        out.remove("properties");
    }
    let kind = out.get("type").and_then(Value::as_str).unwrap_or_default();
    let loses_type =
        is_nullable || kind == "array" && !out.contains_key("items") || kind == "object" && keeps_unknown;
    if loses_type {
        out.remove("type");
    }
    let properties = source.get("properties").and_then(Value::as_object);
    let may_be_null = |name: &Value| {
        let property = name.as_str().and_then(|name| properties?.get(name)?.as_object());
        property.is_some_and(|property| is_true(property, "nullable"))
    };
    if let Some(Value::Array(required)) = out.get_mut("required") {
        required.retain(|name| !may_be_null(name));
        if required.is_empty() {
            out.remove("required");
        }
    }
}

fn add_embedded(out: &mut Map<String, Value>, fields: Map<String, Value>) {
    let properties = out.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        properties.extend(fields);
    }
    let required = out.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required {
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|known| known == name) {
                required.push(name.into());
            }
        }
    }
}

fn is_true(schema: &Map<String, Value>, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

/// `com.example.v1.Widget` for the group `example.com`.
pub fn name(group: &str, version: &str, kind: &str) -> String {
    let group: Vec<&str> = group.split('.').rev().collect();
    format!("{}.{version}.{kind}", group.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dialect: Dialect, schema: Value) -> Value {
        let embedded = || json!({"kind": {"type": "string"}}).as_object().unwrap().clone();
        published(dialect, &schema, &embedded).into()
    }

    #[test]
    fn v3_has_the_whole_schema() {
        let schema = json!({
            "type": "object", "example": {}, "x-kubernetes-map-type": "granular",
            "properties": {"port": {"x-kubernetes-int-or-string": true}, "maybe": {"type": "string", "nullable": true}},
        });
        let expected = json!({
            "type": "object", "x-kubernetes-map-type": "granular",
            "properties": {
                "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "maybe": {"type": "string", "nullable": true},
            },
        });
        assert_eq!(of(Dialect::V3, schema), expected);
    }

    #[test]
    fn v2_omits_keywords_that_old_clients_reject() {
        let schema = json!({
            "type": "object", "required": ["maybe"],
            "properties": {
                "maybe": {"type": "array", "items": {"type": "string"}, "nullable": true},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {}}},
                "number": {"type": "integer", "default": 1, "anyOf": [{"minimum": 1}]},
                "inner": {"type": "object", "x-kubernetes-embedded-resource": true},
            },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "maybe": {},
                "open": {"x-kubernetes-preserve-unknown-fields": true},
                "number": {"type": "integer"},
                "inner": {"type": "object", "x-kubernetes-embedded-resource": true,
                    "properties": {"kind": {"type": "string"}}, "required": ["kind", "apiVersion"]},
            },
        });
        assert_eq!(of(Dialect::V2, schema), expected);
    }
}
