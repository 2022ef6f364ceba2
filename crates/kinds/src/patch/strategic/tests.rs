//! Strategic merge patch on the types of the table.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::apply;
use crate::schema::{self, Schema, TypeId};

const TABLE: &str = "\
package test test.v1
Port
 name string #1
 port! int32 #2
Container
 args [string] #1
 image string #2
 name! string #3
 ports [Port] #4 map(port) ~merge(port)
Strategy
 rolling? Rolling #1
 type string #2
Rolling
 surge intstr #1
Thing test.example/v1
 containers [Container] #1 map(name) ~merge(name)
 finalizers [string] #2 set ~merge
 labels {string} #3
 strategy? Strategy #4 ~retainKeys
 whole? Strategy #5 ~replace
 plain [Port] #6
 numbers [int32] #7
";

fn thing() -> (Schema, TypeId) {
    let schema = schema::parse(TABLE).unwrap();
    let id = schema.by_kind("test.example", "v1", "Thing").unwrap();
    (schema, id)
}

fn patched(before: Value, patch: &Value) -> Result<Value, String> {
    let (schema, id) = thing();
    let mut document = before;
    apply(&schema, id, &mut document, patch).map_err(|error| error.to_string())?;
    Ok(document)
}

fn two() -> Value {
    json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]})
}

#[test]
fn objects_merge_and_null_removes() {
    let before = json!({"labels": {"a": "1", "b": "2"}});
    let rows = [
        (json!({"labels": {"a": null, "c": "3", "x": null}}), json!({"labels": {"b": "2", "c": "3"}})),
        (json!({"labels": {"$patch": "replace", "z": "9"}}), json!({"labels": {"z": "9"}})),
        (json!({"labels": {"$patch": "delete"}}), json!({"labels": {}})),
        (json!({"labels": null}), json!({})),
        (
            json!({"strategy": {"type": "x", "rolling": null}}),
            json!({"labels": {"a": "1", "b": "2"}, "strategy": {"type": "x"}}),
        ),
        (json!({"strategy": {"$patch": "delete"}}), before.clone()),
    ];
    for (patch, after) in rows {
        assert_eq!(patched(before.clone(), &patch), Ok(after), "{patch}");
    }
}

#[test]
fn lists_merge_by_key() {
    let rows = [
        (
            json!({"containers": [{"name": "b", "image": "3"}]}),
            json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "3"}]}),
        ),
        (
            json!({"containers": [{"name": "c"}]}),
            json!({"containers": [{"name": "c"}, {"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}),
        ),
        (
            json!({"containers": [{"name": "a", "$patch": "delete"}]}),
            json!({"containers": [{"name": "b", "image": "2"}]}),
        ),
        (
            json!({"containers": [{"$patch": "replace"}, {"name": "z"}]}),
            json!({"containers": [{"name": "z"}]}),
        ),
        (
            json!({"containers": [{"name": "a", "args": ["x"], "ports": [{"port": 80}], "image": null}]}),
            json!({"containers": [
                {"name": "a", "args": ["x"], "ports": [{"port": 80}]}, {"name": "b", "image": "2"},
            ]}),
        ),
    ];
    for (patch, after) in rows {
        assert_eq!(patched(two(), &patch), Ok(after), "{patch}");
    }
}

#[test]
fn lists_without_a_strategy_are_replaced() {
    let before =
        json!({"plain": [{"port": 1}], "numbers": [1, 2], "whole": {"type": "a", "rolling": {"surge": 1}}});
    let patch = json!({"plain": [{"port": 2}], "numbers": [3], "whole": {"type": "b"}});
    assert_eq!(patched(before, &patch), Ok(patch.clone()));
}

#[test]
fn lists_of_scalars_are_merged_as_sets() {
    let before = json!({"finalizers": ["a", "b", "c"]});
    let rows = [
        (json!({"finalizers": ["d", "b"]}), json!(["d", "a", "b", "c"])),
        (json!({"$deleteFromPrimitiveList/finalizers": ["a", "x"]}), json!(["b", "c"])),
        (
            json!({"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["d"],
                "$setElementOrder/finalizers": ["c", "d", "b"]}),
            json!(["c", "d", "b"]),
        ),
        (json!({"$setElementOrder/finalizers": ["c", "a"]}), json!(["b", "c", "a"])),
    ];
    for (patch, after) in rows {
        assert_eq!(patched(before.clone(), &patch), Ok(json!({"finalizers": after})), "{patch}");
    }
    let nothing = json!({"$deleteFromPrimitiveList/finalizers": ["a"]});
    assert_eq!(patched(json!({}), &nothing), Ok(json!({})));
}

#[test]
fn a_patch_can_set_the_order() {
    let order = |names: &[&str]| -> Value { names.iter().map(|name| json!({"name": name})).collect() };
    let names = |document: &Value| -> Vec<String> {
        let items = document["containers"].as_array().unwrap();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let rows = [
        (json!({"$setElementOrder/containers": order(&["b", "a"])}), vec!["b", "a"]),
        (
            json!({"$setElementOrder/containers": order(&["c", "b"]), "containers": [{"name": "c"}]}),
            vec!["c", "a", "b"],
        ),
        (
            json!({"$setElementOrder/containers": order(&["b", "a"]),
                "containers": [{"$patch": "delete", "name": "a"}]}),
            vec!["b"],
        ),
    ];
    for (patch, expected) in rows {
        assert_eq!(names(&patched(two(), &patch).unwrap()), expected, "{patch}");
    }
}

#[test]
fn retain_keys_removes_all_other_fields() {
    let before = json!({"strategy": {"type": "a", "rolling": {"surge": 1}}});
    let patch = json!({"strategy": {"$retainKeys": ["type"], "type": "b"}});
    assert_eq!(patched(before.clone(), &patch), Ok(json!({"strategy": {"type": "b"}})));
    let patch = json!({"strategy": {"$retainKeys": ["rolling"], "type": "b"}});
    assert_eq!(patched(before, &patch), Err("invalid patch format of retainKeys".to_owned()));
}

#[test]
fn bad_directives_are_refused() {
    let rows = [
        (
            json!({"$patch": "merge", "labels": {"a": null}}),
            "unknown patch type: merge in map: map[$patch:merge labels:map[a:<nil>]]",
        ),
        (
            json!({"containers": [{"image": "x"}]}),
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"$patch": "delete"}]}),
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"$patch": "merge", "name": "a"}]}),
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"containers": ["a"]}),
            "list element types are not identical: [[map[image:1 name:a] map[image:2 name:b]] [a]]",
        ),
        (json!({"$setElementOrder": []}), "invalid patch format of setElementOrder list"),
        (json!({"$setElementOrder/containers": {}}), "invalid patch format of setElementOrder list"),
        (json!({"$deleteFromPrimitiveList": []}), "invalid patch format of primitive list"),
        (
            json!({"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]}),
            "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
        ),
        (json!([]), "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ];
    for (patch, message) in rows {
        assert_eq!(patched(two(), &patch), Err(message.to_owned()), "{patch}");
    }
}

fn any_patch() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("containers"),
        Just("finalizers"),
        Just("labels"),
        Just("strategy"),
        Just("name"),
        Just("image"),
        Just("ports"),
        Just("port"),
        Just("$patch"),
        Just("$retainKeys"),
        Just("$setElementOrder/containers"),
        Just("$setElementOrder/finalizers"),
        Just("$deleteFromPrimitiveList/finalizers"),
    ]
    .prop_map(str::to_owned);
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!("a")),
        Just(json!("b")),
        Just(json!("delete")),
        Just(json!("replace")),
        Just(json!(1)),
    ];
    let value = leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    });
    prop::collection::btree_map(
        "containers|finalizers|labels|strategy|\\$setElementOrder/containers",
        value,
        0..4,
    )
    .prop_map(|map| map.into_iter().collect())
}

proptest! {
    #[test]
    fn no_patch_panics(before in any_patch(), patch in any_patch()) {
        let _ = patched(before, &patch);
    }

    /// A merge by key keeps each key once.
    #[test]
    fn merged_lists_have_each_key_once(old in prop::collection::btree_set("[a-e]", 0..5), new in prop::collection::vec("[a-g]", 0..5)) {
        let list = |names: Vec<String>| -> Value { names.into_iter().map(|name| json!({"name": name})).collect() };
        let merged = patched(json!({"containers": list(old.iter().cloned().collect())}), &json!({"containers": list(new.clone())})).unwrap();
        let mut names: Vec<_> = merged["containers"].as_array().unwrap().iter().map(|item| item["name"].to_string()).collect();
        let length = names.len();
        names.sort();
        names.dedup();
        let expected: std::collections::BTreeSet<_> = old.into_iter().chain(new).collect();
        prop_assert_eq!((names.len(), length), (expected.len(), expected.len()));
    }
}
