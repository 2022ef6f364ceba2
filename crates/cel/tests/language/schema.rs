//! Objects with a schema.

use std::{collections::BTreeMap, sync::Arc};

use cel::{Declared, Env, Field, ListKind, ObjectType, Type, Value};
use serde_json::{Value as Json, json};

fn object(name: &str, fields: &[(&str, &str, Declared)]) -> Declared {
    let fields = fields.iter().map(|(name, json_name, declared)| {
        ((*name).into(), Field { json_name: (*json_name).into(), declared: Arc::new(declared.clone()) })
    });
    Declared::object(ObjectType { name: name.into(), fields: fields.collect::<BTreeMap<_, _>>() }, 0)
}

fn text(max: u64) -> Declared {
    Declared::sized(Type::String, max)
}

/// A schema with one field of each type.
fn schema() -> Declared {
    let item = object("item", &[("key", "key", text(10)), ("value", "value", text(10))]);
    let list = |kind| Declared::list(Arc::new(item.clone()), 5, kind);
    let words = |kind| Declared::list(Arc::new(text(10)), 5, kind);
    object(
        "root",
        &[
            ("replicas", "replicas", Declared::scalar(Type::Int)),
            ("max", "max", Declared::scalar(Type::Int)),
            ("ratio", "ratio", Declared::scalar(Type::Double)),
            ("name", "name", text(20)),
            ("x__dash__y", "x-y", text(20)),
            ("port", "port", Declared::scalar(Type::Dyn)),
            ("when", "when", Declared::sized(Type::Timestamp, 32)),
            ("wait", "wait", Declared::sized(Type::Duration, 32)),
            ("data", "data", Declared::sized(Type::Bytes, 100)),
            ("labels", "labels", Declared::map(Arc::new(text(10)), Arc::new(text(10)), 4)),
            ("items", "items", list(ListKind::Atomic)),
            ("entries", "entries", list(ListKind::Map(vec!["key".into()]))),
            ("words", "words", words(ListKind::Atomic)),
            ("tags", "tags", words(ListKind::Set)),
        ],
    )
}

fn subject() -> Json {
    json!({
        "replicas": 2, "max": 3, "ratio": 1, "name": "n", "x-y": "dashed", "port": "http", "nothing": 1,
        "when": "2024-02-29T10:00:00Z", "wait": "1h30m", "data": "aGk=", "labels": {"a": "b", "app.io/x": "y"},
        "items": [{"key": "a", "value": "1"}, {"key": "b"}],
        "entries": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}],
        "words": ["x", "y"], "tags": ["x", "y"],
    })
}

fn evaluate(expression: &str, subject: &Json) -> Result<bool, String> {
    let schema = schema();
    let env =
        Env::new([]).declared("self", Arc::new(schema.clone())).declared("old", Arc::new(schema.clone()));
    let program = env.compile(expression).map_err(|error| error.to_string())?;
    let old = json!({
        "entries": [{"key": "b", "value": "2"}, {"key": "a", "value": "1"}],
        "tags": ["y", "x"], "words": ["y", "x"], "name": null,
    });
    let bindings = [("self", Value::from_json(subject, &schema)), ("old", Value::from_json(&old, &schema))];
    let bindings = bindings.map(|(name, value)| (name, value.expect("it is an object")));
    let outcome = program.evaluate(&bindings, 1_000_000);
    outcome.value.and_then(|value| value.as_bool()).map_err(|error| error.to_string())
}

#[test]
fn fields_have_the_types_of_the_schema() {
    let expressions = [
        "self.replicas <= self.max",
        "self.ratio == 1.0 && type(self.ratio) == double",
        "self.x__dash__y == 'dashed'",
        "self.port == 'http'",
        "type(self.port) == string",
        "self.when.getDate() == 29",
        "self.when < timestamp('2025-01-01T00:00:00Z')",
        "self.wait == duration('90m')",
        "self.data == b'hi'",
        "self.labels['app.io/x'] == 'y'",
        "self.labels.a == 'b' && !('c' in self.labels)",
        "has(self.items[0].value) && !has(self.items[1].value)",
        "self.items.all(item, item.key in ['a', 'b'])",
        "!has(old.name)",
        "!has(old.replicas)",
    ];
    for expression in expressions {
        assert_eq!(evaluate(expression, &subject()), Ok(true), "{expression}");
    }
}

#[test]
fn sets_and_list_maps_have_no_order() {
    for expression in [
        "self.entries == old.entries",
        "self.tags == old.tags",
        "self.words != old.words",
        "self.tags + ['x', 'z'] == ['x', 'y', 'z']",
        "self.words + ['x'] == ['x', 'y', 'x']",
        "(self.entries + old.entries).size() == 2",
    ] {
        assert_eq!(evaluate(expression, &subject()), Ok(true), "{expression}");
    }
}

#[test]
fn missing_fields_are_errors() {
    let cases = [
        ("old.replicas > 0", "no such key: replicas"),
        ("self.items[7].key == 'a'", "index out of bounds: 7"),
        ("self.items[1].value == 'a'", "no such key: value"),
        ("self.labels['z'] == 'a'", "no such key: z"),
    ];
    for (expression, expected) in cases {
        assert_eq!(evaluate(expression, &subject()), Err(expected.to_owned()), "{expression}");
    }
}

#[test]
fn undeclared_fields_do_not_compile() {
    let cases = [
        (
            "self.nothing == 1",
            "ERROR: <input>:1:5: undefined field 'nothing'\n | self.nothing == 1\n | ....^",
        ),
        (
            "self.replicas == 'a'",
            "ERROR: <input>:1:15: found no matching overload for '_==_' applied to '(int, string)'\n | self.replicas == 'a'\n | ..............^",
        ),
        ("has(self.nothing)", "ERROR: <input>:1:4: undefined field 'nothing'\n | has(self.nothing)\n | ...^"),
        (
            "self.items.all(i, i.z == 1)",
            "ERROR: <input>:1:20: undefined field 'z'\n | self.items.all(i, i.z == 1)\n | ...................^",
        ),
    ];
    for (expression, expected) in cases {
        assert_eq!(evaluate(expression, &subject()), Err(expected.to_owned()), "{expression}");
    }
}

#[test]
fn estimates_use_declared_sizes() {
    let schema = Arc::new(schema());
    let estimate = |expression: &str| {
        let env = Env::new([]).declared("self", schema.clone());
        let estimate = env.compile(expression).expect("it compiles").estimate();
        (estimate.min, estimate.max)
    };
    assert_eq!(estimate("self.name == 'abc'"), (3, 3));
    assert_eq!(estimate("self.name.startsWith(self.x__dash__y)"), (4, 6));
    assert_eq!(estimate("self.items.all(i, i.key == 'x')"), (3, 33));
    assert_eq!(estimate("self.items.all(i, self.items.all(j, i.key == j.key))"), (3, 233));
    assert_eq!(estimate("self.labels.all(k, self.labels[k].contains('x'))"), (3, 35));
}
