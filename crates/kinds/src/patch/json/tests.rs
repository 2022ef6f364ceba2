//! Valid and invalid patches; expected results were recorded from kube-apiserver 1.35 or follow from recorded ones.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn patched(document: &Value, patch: &Value) -> Result<Value, Error> {
    let mut document = document.clone();
    apply(&mut document, patch)?;
    Ok(document)
}

fn refused() -> Error {
    Error::Invalid { group: String::new(), kind: String::new(), name: String::new(), errors: vec![] }
}

#[test]
fn operations_change_objects() {
    let document = json!({"data": {"a": "1", "b": "2"}, "null": null});
    let rows = [
        (json!(null), document.clone()),
        (json!([]), document.clone()),
        (
            json!([{"op": "add", "path": "/data/x", "value": "3"}]),
            json!({"data": {"a": "1", "b": "2", "x": "3"}, "null": null}),
        ),
        (json!([{"op": "add", "path": "junk/data", "value": 1}]), json!({"data": 1, "null": null})),
        (
            json!([{"op": "add", "path": "/data/x~1~0", "value": 1}, {"op": "remove", "path": "/null"}]),
            json!({"data": {"a": "1", "b": "2", "x/~": 1}}),
        ),
        (
            json!([{"op": "add", "path": "/data/~01"}, {"op": "remove", "path": "/data/~01"}]),
            document.clone(),
        ),
        (json!([{"op": "add", "path": "/data"}]), json!({"data": null, "null": null})),
        (
            json!([{"op": "replace", "path": "/data/x", "value": 1}, {"op": "remove", "path": "/data/a"}]),
            json!({"data": {"b": "2", "x": 1}, "null": null}),
        ),
        (json!([{"op": "replace", "path": "", "value": {"a": 1}}]), json!({"a": 1})),
        (json!([{"op": "replace", "path": "", "value": []}]), json!([])),
        (
            json!([{"op": "move", "from": "/data/a", "path": "/a"}]),
            json!({"a": "1", "data": {"b": "2"}, "null": null}),
        ),
        (
            json!([{"op": "copy", "from": "/data/a", "path": "/data/b"}]),
            json!({"data": {"a": "1", "b": "1"}, "null": null}),
        ),
        (
            json!([{"op": "copy", "from": "/data/zz", "path": "/data/b"}]),
            json!({"data": {"a": "1", "b": null}, "null": null}),
        ),
    ];
    for (patch, expected) in rows {
        assert_eq!(patched(&document, &patch), Ok(expected), "{patch}");
    }
}

#[test]
fn operations_change_lists() {
    let rows = [
        (json!({"op": "add", "path": "/l/-", "value": 9}), Some(json!([0, 1, 2, 9]))),
        (json!({"op": "add", "path": "/l/0", "value": 9}), Some(json!([9, 0, 1, 2]))),
        (json!({"op": "add", "path": "/l/3", "value": 9}), Some(json!([0, 1, 2, 9]))),
        (json!({"op": "add", "path": "/l/4", "value": 9}), None),
        (json!({"op": "add", "path": "/l/-1", "value": 9}), Some(json!([0, 1, 2, 9]))),
        (json!({"op": "add", "path": "/l/-4", "value": 9}), Some(json!([9, 0, 1, 2]))),
        (json!({"op": "add", "path": "/l/-5", "value": 9}), None),
        (json!({"op": "add", "path": "/l/+01", "value": 9}), Some(json!([0, 9, 1, 2]))),
        (json!({"op": "add", "path": "/l/x", "value": 9}), None),
        (json!({"op": "add", "path": "/l/", "value": 9}), None),
        (json!({"op": "remove", "path": "/l/0"}), Some(json!([1, 2]))),
        (json!({"op": "remove", "path": "/l/-3"}), Some(json!([1, 2]))),
        (json!({"op": "remove", "path": "/l/-4"}), None),
        (json!({"op": "remove", "path": "/l/3"}), None),
        (json!({"op": "remove", "path": "/l/-"}), None),
        (json!({"op": "replace", "path": "/l/2", "value": 9}), Some(json!([0, 1, 9]))),
        (json!({"op": "replace", "path": "/l/-1", "value": 9}), Some(json!([0, 1, 9]))),
        (json!({"op": "replace", "path": "/l/3", "value": 9}), None),
        (json!({"op": "move", "from": "/l/0", "path": "/l/2"}), Some(json!([1, 2, 0]))),
        (json!({"op": "move", "from": "/l/0", "path": "/l/3"}), None),
        (json!({"op": "copy", "from": "/l/-1", "path": "/l/0"}), Some(json!([2, 0, 1, 2]))),
        (json!({"op": "copy", "from": "/l/3", "path": "/l/0"}), None),
        (json!({"op": "test", "path": "/l/1", "value": 1}), Some(json!([0, 1, 2]))),
        (json!({"op": "test", "path": "/l/1", "value": 1.0}), None),
        (json!({"op": "test", "path": "/l/3"}), None),
        (json!({"op": "test", "path": "/l", "value": [0, 1, 2]}), Some(json!([0, 1, 2]))),
    ];
    for (operation, expected) in rows {
        let expected = expected.map(|list| json!({"l": list})).ok_or_else(refused);
        assert_eq!(patched(&json!({"l": [0, 1, 2]}), &json!([operation])), expected, "{operation}");
    }
}

#[test]
fn test_operations_treat_absence_as_null() {
    let document = json!({"a": "1", "n": null, "o": {"x": [1, {"y": null}]}});
    let rows = [
        (json!({"path": "/a", "value": "1"}), true),
        (json!({"path": "/a", "value": "2"}), false),
        (json!({"path": "/a"}), false),
        (json!({"path": "/zz"}), true),
        (json!({"path": "/zz", "value": null}), true),
        (json!({"path": "/n", "value": null}), true),
        (json!({"path": "/n", "value": 0}), false),
        (json!({"path": "/zz/x"}), false),
        (json!({"path": "/o", "value": {"x": [1, {"y": null}]}}), true),
        (json!({"path": "/o", "value": {"x": [1, {}]}}), false),
        (json!({"path": "", "value": document.clone()}), true),
        (json!({"path": "", "value": {}}), false),
        (json!({"path": ""}), false),
    ];
    for (mut operation, holds) in rows {
        operation["op"] = "test".into();
        let expected = if holds { Ok(document.clone()) } else { Err(refused()) };
        assert_eq!(patched(&document, &json!([operation])), expected, "{operation}");
    }
}

#[test]
fn failed_operations_are_refused_without_details() {
    let document = json!({"a": {"b": 1}, "n": null});
    let rows = [
        json!(null),
        json!({}),
        json!({"op": "add"}),
        json!({"op": "nope", "path": "/a"}),
        json!({"op": null, "path": "/a"}),
        json!({"OP": "add", "path": "/a"}),
        json!({"op": "add", "path": "", "value": {}}),
        json!({"op": "add", "path": "a", "value": {}}),
        json!({"op": "add", "path": "/x/y", "value": 1}),
        json!({"op": "add", "path": "/n/y", "value": 1}),
        json!({"op": "add", "path": "/a/b/c", "value": 1}),
        json!({"op": "remove", "path": ""}),
        json!({"op": "remove", "path": "/x"}),
        json!({"op": "replace", "path": "", "value": 1}),
        json!({"op": "replace", "path": ""}),
        json!({"op": "move", "from": "/x", "path": "/y"}),
        json!({"op": "move", "from": "/a", "path": "/a/c"}),
        json!({"op": "move", "path": "/a"}),
        json!({"op": "copy", "from": "", "path": "/a"}),
        json!({"op": "copy", "from": "/a"}),
    ];
    for operation in rows {
        assert_eq!(patched(&document, &json!([operation])), Err(refused()), "{operation}");
    }
}

#[test]
fn a_malformed_patch_is_a_bad_request() {
    let rows = [
        (json!({}), "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (json!("x"), "cannot unmarshal string into Go value of type []handlers.jsonPatchOp"),
        (json!([1]), "cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        (
            json!([{"op": "add", "path": 1}]),
            "cannot unmarshal number into Go struct field jsonPatchOp.path of type string",
        ),
        (
            json!([{"op": ["add"], "path": "/a"}]),
            "cannot unmarshal array into Go struct field jsonPatchOp.op of type string",
        ),
    ];
    for (patch, message) in rows {
        let expected = Error::bad_request(format!("error decoding patch: json: {message}"));
        assert_eq!(patched(&json!({}), &patch), Err(expected), "{patch}");
    }
}

#[test]
fn operations_and_copies_are_limited() {
    let test = json!({"op": "test", "path": "/a"});
    assert!(patched(&json!({}), &json!(vec![test.clone(); 10_000])).is_ok());
    assert_eq!(
        patched(&json!({}), &json!(vec![test; 10_001])),
        Err(Error::TooManyOperations { limit: 10_000, given: 10_001 })
    );
    let document = json!({"a": "x".repeat(1 << 20)});
    let copies = |count: usize| {
        (0..count).map(|at| json!({"op": "copy", "from": "/a", "path": format!("/{at}")})).collect::<Value>()
    };
    assert!(patched(&document, &copies(2)).is_ok());
    assert_eq!(patched(&document, &copies(3)), Err(refused()));
}

#[test]
fn nesting_stays_limited_with_move_operations() {
    let mut steps = vec![json!({"op": "add", "path": "/a", "value": {}})];
    for _ in 0..4_000 {
        steps.push(json!({"op": "move", "from": "/a", "path": "/b"}));
        steps.push(json!({"op": "add", "path": "/a", "value": {}}));
        steps.push(json!({"op": "move", "from": "/b", "path": "/a/x"}));
    }
    steps.truncate(MAX_OPERATIONS);
    assert_eq!(patched(&json!({}), &json!(steps[..300])).map(|_| ()), Ok(()));
    assert_eq!(patched(&json!({}), &json!(steps)), Err(refused()));
}

#[test]
fn unknown_keys_of_operations_are_found() {
    for (patch, expected) in [
        (json!([{"op": "add", "path": "/a", "value": {"foo": 1}, "from": ""}, 1]), false),
        (json!([{"op": "add", "path": "/a"}, {"OP": "add"}]), true),
        (json!({"foo": 1}), false),
    ] {
        assert_eq!(has_unknown_fields(&patch), expected, "{patch}");
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), (0..9).prop_map(Value::from)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c/~]", inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof!["[a-c]", "~0|~1|-|-1|0|1|2|\\+1|x"], 0..4)
        .prop_map(|parts| parts.iter().map(|part| format!("/{part}")).collect())
}

proptest! {
    #[test]
    fn an_added_value_can_be_read_and_removed(document in value(), path in path(), new in value()) {
        let add = json!({"op": "add", "path": path, "value": new});
        let test = json!({"op": "test", "path": path, "value": new});
        // `-` names no existing item.
        prop_assume!(!path.ends_with("/-"));
        if let Ok(added) = patched(&document, &json!([add])) {
            prop_assert_eq!(patched(&added, &json!([test])), Ok(added.clone()));
            let removed = patched(&added, &json!([{"op": "remove", "path": path}]));
            prop_assert!(removed.is_ok());
            let was_list = added.pointer(path.rsplit_once('/').map_or("", |(parent, _)| parent));
            if was_list.is_some_and(Value::is_array) {
                prop_assert_eq!(removed, Ok(document));
            }
        }
    }

    #[test]
    fn a_move_is_a_copy_and_a_removal(inner in value(), from in path()) {
        let document = json!({ "a": inner });
        let from = format!("/a{from}");
        let moved = patched(&document, &json!([{"op": "move", "from": from, "path": "/new"}]));
        let copy = json!([{"op": "copy", "from": from, "path": "/new"}, {"op": "remove", "path": from}]);
        let copied = patched(&document, &copy);
        prop_assert_eq!(moved, copied);
    }

    #[test]
    fn no_patch_panics(document in value(), patch in value(), from in path(), to in path()) {
        let _ = patched(&document, &patch);
        for op in ["add", "remove", "replace", "move", "copy", "test"] {
            let _ = patched(&document, &json!([{"op": op, "from": from, "path": to, "value": patch}]));
        }
    }
}
