//! Merge patch (RFC 7386): an object with the changed fields, null for removed ones.

use model::error::Error;
use serde_json::{Map, Value};

use super::wrong_type;

/// Applies a merge patch to an object.
pub fn apply(document: &mut Value, patch: &Value) -> Result<(), Error> {
    match patch {
        Value::Object(patch) => merge_object(document, patch),
        Value::Null => return Err(Error::bad_request("Invalid JSON Patch")),
        other => return Err(wrong_type(other, "value of type map[string]interface {}")),
    }
    Ok(())
}

fn merge_object(target: &mut Value, patch: &Map<String, Value>) {
    let Value::Object(fields) = target else {
        *target = without_nulls(&Value::Object(patch.clone()));
        return;
    };
    for (key, change) in patch {
        match (fields.get_mut(key), change) {
            (_, Value::Null) => {
                fields.remove(key);
            }
            (None | Some(Value::Null), _) => {
                fields.insert(key.clone(), without_nulls(change));
            }
            (Some(field), Value::Object(changes)) => merge_object(field, changes),
            // The only place where kube-apiserver keeps nulls inside a list.
            (Some(field @ Value::Object(_)), _) => *field = change.clone(),
            (Some(field), _) => *field = without_nulls(change),
        }
    }
}

/// A value without null members. Kubernetes removes them inside lists too, unlike the RFC.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, field)| !field.is_null())
            .map(|(key, field)| (key.clone(), without_nulls(field)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn null_removes_and_the_rest_is_merged() {
        let rows = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null, "x": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({"e": null}), json!({"e": {"a": null}}), json!({"e": {}})),
            (json!({"a": "foo"}), json!({"a": {"b": null, "c": 1}}), json!({"a": {"c": 1}})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ];
        for (mut document, patch, expected) in rows {
            apply(&mut document, &patch).unwrap();
            assert_eq!(document, expected, "{patch}");
        }
    }

    #[test]
    fn nulls_in_lists_are_dropped_except_when_replacing_an_object() {
        let patch = json!({"x": [null, {"a": null, "b": [{"c": null}]}]});
        let pruned = json!({"x": [null, {"b": [{}]}]});
        for (before, after) in
            [(json!({}), &pruned), (json!({"x": [1]}), &pruned), (json!({"x": {"y": 1}}), &patch)]
        {
            let mut document = before;
            apply(&mut document, &patch).unwrap();
            assert_eq!(&document, after);
        }
    }

    #[test]
    fn a_patch_that_is_not_an_object_is_refused() {
        let rows = [
            (json!(null), "Invalid JSON Patch"),
            (
                json!([]),
                "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
            (
                json!("x"),
                "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}",
            ),
        ];
        for (patch, message) in rows {
            assert_eq!(apply(&mut json!({}), &patch), Err(Error::bad_request(message)), "{patch}");
        }
    }

    /// The smallest merge patch from `before` to `after`.
    fn difference(before: &Value, after: &Value) -> Value {
        let (Value::Object(old), Value::Object(new)) = (before, after) else {
            return after.clone();
        };
        let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
        let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(*value)).map(|(key, value)| {
            (key.clone(), old.get(key).map_or_else(|| value.clone(), |old| difference(old, value)))
        });
        gone.chain(changed).collect()
    }

    fn object() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0..9).prop_map(Value::from)];
        let value = leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(|map| map.into_iter().collect()),
            ]
        });
        prop::collection::btree_map("[a-d]", value, 0..4).prop_map(|map| map.into_iter().collect())
    }

    proptest! {
        #[test]
        fn the_difference_of_two_objects_patches_the_first_to_the_second(before in object(), after in object()) {
            let mut document = before.clone();
            apply(&mut document, &difference(&before, &after)).unwrap();
            prop_assert_eq!(document, after);
        }

        #[test]
        fn a_merge_patch_is_idempotent(before in object(), patch in object()) {
            let mut once = before;
            apply(&mut once, &patch).unwrap();
            let mut twice = once.clone();
            apply(&mut twice, &patch).unwrap();
            prop_assert_eq!(once, twice);
        }
    }
}
