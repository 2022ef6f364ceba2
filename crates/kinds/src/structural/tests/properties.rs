//! Properties of all schemas and all objects.

use model::error::Path;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::object;
use crate::structural::{Node, Structural, bad_defaults};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Any JSON with few names, so that schemas and objects overlap.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        (-2.0f64..2.0).prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            fields(inner).prop_map(Value::Object),
        ]
    })
}

fn fields(of: impl Strategy<Value = Value>) -> impl Strategy<Value = serde_json::Map<String, Value>> {
    let fields = prop::collection::vec((prop::sample::select(&NAMES[..]), of), 0..4);
    fields.prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A structural schema, with defaults that may be invalid.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "maxLength": 2})),
        Just(json!({"type": "integer", "minimum": -1})),
        Just(json!({"type": "boolean"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"type": "number", "anyOf": [{"maximum": 0}, {"minimum": 1}]})),
    ];
    let tree = leaf.prop_recursive(4, 24, 4, |inner| {
        let object = fields(inner.clone()).prop_map(|fields| json!({"type": "object", "properties": fields}));
        let map = inner.clone().prop_map(|values| json!({"type": "object", "additionalProperties": values}));
        let list = inner.clone().prop_map(|items| json!({"type": "array", "items": items}));
        let free = fields(inner).prop_map(|fields| {
            json!({"type": "object", "properties": fields, "x-kubernetes-preserve-unknown-fields": true})
        });
        prop_oneof![object, map, list, free]
    });
    (tree, any::<bool>(), prop::option::of(value())).prop_map(|(mut schema, nullable, default)| {
        schema["nullable"] = nullable.into();
        if let Some(default) = default {
            schema["default"] = default;
        }
        schema
    })
}

fn root() -> impl Strategy<Value = Value> {
    fields(schema()).prop_map(|fields| json!({"type": "object", "properties": fields}))
}

proptest! {
    #[test]
    fn pruning_is_idempotent(schema in root(), body in fields(value())) {
        let structural = Structural::compile(&schema, false);
        let mut body = body;
        structural.prune(&mut body);
        let once = body.clone();
        prop_assert!(structural.prune(&mut body).is_empty());
        prop_assert_eq!(body, once);
    }

    #[test]
    fn defaulting_is_idempotent(schema in root(), body in fields(value())) {
        let structural = Structural::compile(&schema, false);
        let mut body = body;
        structural.prune(&mut body);
        structural.default(&mut body);
        let once = body.clone();
        structural.default(&mut body);
        prop_assert_eq!(&body, &once);
        prop_assert!(structural.prune(&mut body).is_empty());
    }

    #[test]
    fn defaults_that_are_accepted_are_valid(schema in root()) {
        let accepted = bad_defaults(&Node::of_schema(&object(schema.clone())), &Path::root("schema")).is_empty();
        prop_assume!(accepted);
        let structural = Structural::compile(&schema, false);
        let mut body = object(json!({}));
        structural.default(&mut body);
        prop_assert_eq!(structural.validate(&body, None).errors, Vec::new());
    }

    #[test]
    fn a_valid_object_may_replace_any_object(schema in root(), body in fields(value()), old in fields(value())) {
        let structural = Structural::compile(&schema, false);
        if structural.validate(&body, None).errors.is_empty() {
            prop_assert!(structural.validate(&body, Some(&old)).errors.is_empty());
        }
        prop_assert!(structural.validate_status(&body, &body).errors.is_empty());
    }
}
