//! Schemas and objects, compared with responses of a real server.

mod properties;
mod recorded;

use serde_json::{Map, Value, json};

use super::*;

fn compile(schema: Value) -> Structural {
    Structural::compile(&schema, false)
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn unknown_fields_are_pruned_and_reported() {
    let schema = compile(json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "a": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "closed": {"type": "object", "properties": {"x": {"type": "integer"}}},
            }},
            "freeList": {"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {"type": "object"}},
            "any": {"type": "object", "additionalProperties": true},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "integer"}}}},
            "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
            "null": {"type": "string"},
            "nullable": {"type": "string", "nullable": true},
        }},
    }}));
    let mut body = object(json!({
        "apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}, "extra": 1,
        "spec": {
            "a": "1", "b": 2, "list": [{"x": 1, "y": 2}, {"z": 3}],
            "free": {"q": {"r": 1}, "closed": {"x": 1, "y": 2}},
            "freeList": [{"q": 1}],
            "any": {"x": 1, "y": {"z": 1}},
            "map": {"k": {"x": 1, "y": 2}},
            "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"q": 1}, "status": {}},
            "null": null, "nullable": null,
        },
    }));
    let dropped = schema.prune(&mut body);
    assert_eq!(
        dropped,
        [
            "extra",
            "spec.any.y.z",
            "spec.b",
            "spec.free.closed.y",
            "spec.list[0].y",
            "spec.list[1].z",
            "spec.map.k.y",
            "spec.pod.spec.q",
            "spec.pod.status",
        ]
    );
    let expected = json!({
        "apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"},
        "spec": {
            "a": "1", "list": [{"x": 1}, {}], "free": {"q": {"r": 1}, "closed": {"x": 1}}, "freeList": [{"q": 1}],
            "any": {"x": 1, "y": {}}, "map": {"k": {"x": 1}},
            "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}, "nullable": null,
        },
    });
    assert_eq!(Value::Object(body.clone()), expected);
    assert!(schema.prune(&mut body).is_empty());
    assert_eq!(Value::Object(body), expected);
    let mut free = object(json!({"extra": 1}));
    assert!(Structural::compile(&json!({"type": "object"}), true).prune(&mut free).is_empty());
    assert_eq!(free.len(), 1);
}

#[test]
fn defaults_are_set_from_the_outside_inwards() {
    let schema = compile(json!({"type": "object", "properties": {
        "spec": {"type": "object", "default": {"b": {}, "pruned": 1}, "properties": {
            "a": {"type": "string", "default": "x"},
            "b": {"type": "object", "properties": {"c": {"type": "integer", "default": 5}}},
            "nullable": {"type": "string", "nullable": true, "default": "y"},
            "list": {"type": "array", "items": {"type": "object", "default": {"v": 1}, "properties": {
                "k": {"type": "string", "default": "key"}, "v": {"type": "integer"},
            }}},
            "map": {"type": "object", "additionalProperties": {"type": "integer", "default": 7}},
        }},
    }}));
    for (body, expected) in [
        (json!({}), json!({"spec": {"a": "x", "b": {"c": 5}, "nullable": "y"}})),
        (json!({"spec": null}), json!({"spec": {"a": "x", "b": {"c": 5}, "nullable": "y"}})),
        (json!({"spec": {"a": null, "nullable": null}}), json!({"spec": {"a": "x", "nullable": null}})),
        (
            json!({"spec": {"list": [{}, null], "map": {"m": null, "n": 1}}}),
            json!({"spec": {"a": "x", "nullable": "y", "list": [{"k": "key"}, {"k": "key", "v": 1}], "map": {"m": 7, "n": 1}}}),
        ),
    ] {
        let mut done = object(body);
        schema.default(&mut done);
        assert_eq!(Value::Object(done.clone()), expected);
        schema.default(&mut done);
        assert_eq!(Value::Object(done), expected);
    }
}

#[test]
fn columns_show_values_of_their_types() {
    let columns = Columns::compile(
        json!([
            {"name": "S", "type": "string", "jsonPath": ".spec.s", "description": "What it is."},
            {"name": "I", "type": "integer", "jsonPath": ".spec.i", "priority": 1, "format": "int32"},
            {"name": "N", "type": "number", "jsonPath": ".spec.n"},
            {"name": "B", "type": "boolean", "jsonPath": ".spec.b"},
            {"name": "D", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ])
        .as_array()
        .unwrap(),
    );
    let definitions = columns.definitions();
    assert_eq!(definitions.len(), 6);
    assert_eq!(
        definitions[2],
        json!({"name": "I", "type": "integer", "format": "int32", "priority": 1,
            "description": "Custom resource definition column (in JSONPath format): .spec.i"})
    );
    let now = "2026-11-16T00:20:00Z".parse().unwrap();
    let time = "2026-11-16T00:19:30Z";
    let cells = |body: Value| Value::Array(columns.cells(&object(body), now));
    assert_eq!(
        cells(
            json!({"metadata": {"name": "n", "creationTimestamp": time}, "spec": {"s": {"x": 1}, "i": 2.7, "n": 1, "b": true}})
        ),
        json!(["n", "{\"x\":1}", 2, 1, true, "30s"])
    );
    assert_eq!(
        cells(
            json!({"metadata": {"name": "n", "creationTimestamp": "never"}, "spec": {"s": 5, "i": "2", "n": "1", "b": 1}})
        ),
        json!(["n", "5", null, null, null, "<invalid>"])
    );
    let plain = Columns::compile(&[]);
    let row = plain.cells(&object(json!({"metadata": {"name": "n", "creationTimestamp": time}})), now);
    assert_eq!(Value::Array(row), json!(["n", "30s"]));
}

#[test]
fn selectable_fields_are_strings() {
    let fields = json!([{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}, {"jsonPath": ".spec.on"}]);
    let selectable = Selectable::compile(fields.as_array().unwrap());
    assert_eq!(selectable.names().collect::<Vec<_>>(), ["spec.color", "spec.size", "spec.on"]);
    let body = object(json!({"spec": {"color": "red", "size": 3}}));
    let values: Vec<String> = selectable.names().map(|name| selectable.value(&body, name)).collect();
    assert_eq!(values, ["red", "3", ""]);
}
