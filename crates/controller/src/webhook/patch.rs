//! JSON patches: the difference of two objects as operations of RFC 6902.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An operation of a JSON patch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum PatchOperation {
    /// Adds a field, or an element before an index; `-` is behind the last.
    Add {
        /// The place, as a JSON pointer.
        path: String,
        /// The new value.
        value: Value,
    },
    /// Removes a value.
    Remove {
        /// The place, as a JSON pointer.
        path: String,
    },
    /// Replaces a value.
    Replace {
        /// The place, as a JSON pointer.
        path: String,
        /// The new value.
        value: Value,
    },
    /// Refuses the whole patch if the value is another one.
    Test {
        /// The place, as a JSON pointer.
        path: String,
        /// The expected value.
        value: Value,
    },
}

/// The operations that make `after` of `before`.
#[must_use]
pub fn diff(before: &Value, after: &Value) -> Vec<PatchOperation> {
    let mut operations = Vec::new();
    compare(before, after, &mut String::new(), &mut operations);
    operations
}

fn compare(before: &Value, after: &Value, path: &mut String, operations: &mut Vec<PatchOperation>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(before), Value::Object(after)) => compare_objects(before, after, path, operations),
        (Value::Array(before), Value::Array(after)) => compare_arrays(before, after, path, operations),
        _ => operations.push(PatchOperation::Replace { path: path.clone(), value: after.clone() }),
    }
}

fn compare_objects(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    path: &mut String,
    operations: &mut Vec<PatchOperation>,
) {
    for field in before.keys().filter(|field| !after.contains_key(*field)) {
        operations.push(PatchOperation::Remove { path: format!("{path}/{}", escape(field)) });
    }
    for (field, value) in after {
        match before.get(field) {
            None => {
                let (path, value) = (format!("{path}/{}", escape(field)), value.clone());
                operations.push(PatchOperation::Add { path, value });
            }
            Some(old) => below(path, &escape(field), |path| compare(old, value, path, operations)),
        }
    }
}

fn compare_arrays(
    before: &[Value],
    after: &[Value],
    path: &mut String,
    operations: &mut Vec<PatchOperation>,
) {
    let Alignment { prefix, suffix } = align(before, after);
    let (old, new) = (&before[prefix..before.len() - suffix], &after[prefix..after.len() - suffix]);
    let both = old.len().min(new.len());
    for index in 0..both {
        let (old, new) = (&old[index], &new[index]);
        below(path, &(prefix + index).to_string(), |path| compare(old, new, path, operations));
    }
    // Elements move up when one is removed, so that the index stays the same.
    for _ in both..old.len() {
        operations.push(PatchOperation::Remove { path: format!("{path}/{}", prefix + both) });
    }
    for (index, value) in new.iter().enumerate().skip(both) {
        let path = format!("{path}/{}", prefix + index);
        operations.push(PatchOperation::Add { path, value: value.clone() });
    }
}

/// The elements that two lists have in common at their ends.
struct Alignment {
    prefix: usize,
    suffix: usize,
}

fn align(before: &[Value], after: &[Value]) -> Alignment {
    let prefix = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    let rest = before[prefix..].iter().rev().zip(after[prefix..].iter().rev());
    Alignment { prefix, suffix: rest.take_while(|(old, new)| old == new).count() }
}

fn below(path: &mut String, part: &str, each: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(part);
    each(path);
    path.truncate(length);
}

/// A part of a JSON pointer.
pub(super) fn escape(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1")
}

/// Carries a change over to an object with more fields: `before` and `after` are views of `whole` that lack the fields which their type does
/// not have. Those stay as they are.
pub(super) fn carry_over(whole: &Value, before: &Value, after: &Value) -> Value {
    if before == after {
        return whole.clone();
    }
    match (whole, before, after) {
        (Value::Object(whole), Value::Object(before), Value::Object(after)) => {
            let mut changed = whole.clone();
            for field in before.keys().filter(|field| !after.contains_key(*field)) {
                changed.remove(field);
            }
            for (field, new) in after {
                let value = match (whole.get(field), before.get(field)) {
                    (_, Some(old)) if old == new => continue,
                    (Some(whole), Some(old)) => carry_over(whole, old, new),
                    _ => new.clone(),
                };
                changed.insert(field.clone(), value);
            }
            Value::Object(changed)
        }
        (Value::Array(whole), Value::Array(before), Value::Array(after)) if whole.len() == before.len() => {
            let Alignment { prefix, suffix } = align(before, after);
            let (old, new) = (prefix..before.len() - suffix, prefix..after.len() - suffix);
            let mut changed = whole[..prefix].to_vec();
            // The elements of a list that became longer or shorter cannot be matched.
            match old.len() == new.len() {
                true => changed.extend(old.map(|at| carry_over(&whole[at], &before[at], &after[at]))),
                false => changed.extend_from_slice(&after[new]),
            }
            changed.extend_from_slice(&whole[whole.len() - suffix..]);
            Value::Array(changed)
        }
        _ => after.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Applies a patch, as RFC 6902 says.
    fn apply(mut object: Value, patch: &[PatchOperation]) -> Value {
        for operation in patch {
            let (path, value) = match operation {
                PatchOperation::Add { path, value } | PatchOperation::Replace { path, value } => {
                    (path, Some(value))
                }
                PatchOperation::Remove { path } => (path, None),
                PatchOperation::Test { .. } => panic!("a difference needs no test"),
            };
            let Some((parent, last)) = path.rsplit_once('/') else {
                object = value.expect("the whole object is replaced").clone();
                continue;
            };
            let is_add = matches!(operation, PatchOperation::Add { .. });
            let last = last.replace("~1", "/").replace("~0", "~");
            match (object.pointer_mut(parent).expect("the place is there"), value) {
                (Value::Object(fields), Some(value)) => {
                    assert_eq!(is_add, fields.insert(last, value.clone()).is_none());
                }
                (Value::Object(fields), None) => drop(fields.remove(&last).expect("the field is there")),
                (Value::Array(list), Some(value)) if is_add => {
                    list.insert(last.parse().unwrap(), value.clone())
                }
                (Value::Array(list), Some(value)) => list[last.parse::<usize>().unwrap()] = value.clone(),
                (Value::Array(list), None) => drop(list.remove(last.parse().unwrap())),
                (other, _) => panic!("{other} has no parts"),
            }
        }
        object
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..4i32).prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..5).prop_map(Value::from),
                btree_map("[ab/~]{0,2}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_difference_leads_from_one_object_to_the_other(before in json_value(), after in json_value()) {
            prop_assert_eq!(apply(before.clone(), &diff(&before, &after)), after);
        }

        #[test]
        fn a_view_of_everything_carries_every_change_over(before in json_value(), after in json_value()) {
            prop_assert_eq!(carry_over(&before, &before, &after), after);
        }
    }

    #[test]
    fn a_list_element_that_is_inserted_is_one_operation() {
        let patch = diff(&json!({"l": [1, 2, 3]}), &json!({"l": [1, 9, 2, 3]}));
        assert_eq!(serde_json::to_value(patch).unwrap(), json!([{"op": "add", "path": "/l/1", "value": 9}]));
        let patch = diff(&json!({"a/b": {"c~d": 1}}), &json!({"a/b": {}}));
        assert_eq!(serde_json::to_value(patch).unwrap(), json!([{"op": "remove", "path": "/a~1b/c~0d"}]));
    }

    #[test]
    fn fields_that_a_view_does_not_have_stay() {
        let whole = json!({"spec": {"known": 1, "unknown": 2, "list": [{"name": "a", "more": 1}, {"name": "b", "more": 2}]}});
        let view = |known: i32, list: Value| json!({"spec": {"known": known, "list": list}});
        let before = view(1, json!([{"name": "a"}, {"name": "b"}]));
        let changed = carry_over(&whole, &before, &view(3, json!([{"name": "a"}, {"name": "c"}])));
        assert_eq!(
            changed["spec"],
            json!({"known": 3, "unknown": 2, "list": [{"name": "a", "more": 1}, {"name": "c", "more": 2}]})
        );
        let changed =
            carry_over(&whole, &before, &view(1, json!([{"name": "new"}, {"name": "a"}, {"name": "b"}])));
        assert_eq!(
            changed["spec"]["list"],
            json!([{"name": "new"}, {"name": "a", "more": 1}, {"name": "b", "more": 2}])
        );
        // A default of the view is not in the object: it is set with the field that has changed.
        let changed = carry_over(&json!({}), &json!({"labels": {}}), &json!({"labels": {"a": "b"}}));
        assert_eq!(changed, json!({"labels": {"a": "b"}}));
    }
}
