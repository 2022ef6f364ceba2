//! The conditions in an object's status: at most one of each type.

use serde_json::Value;

use crate::object::text_in;

/// The condition of a type.
pub fn condition<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| text_in(condition, "type") == kind)
}

/// Whether there is a condition of a type whose status is `True`.
pub fn is_condition_true(conditions: &[Value], kind: &str) -> bool {
    condition(conditions, kind).is_some_and(|condition| text_in(condition, "status") == "True")
}

/// Replaces the condition of the same type, or adds it at the end. The time of the last transition is kept while the
/// status stays the same, whatever else changes.
pub fn set_condition(conditions: &mut Vec<Value>, condition: Value) {
    let keep = |new: &mut Value, old: &Value| {
        if let Some(since) = old.get("lastTransitionTime") {
            new["lastTransitionTime"] = since.clone();
        }
    };
    set_typed_condition(conditions, condition, |of| (text_in(of, "type"), text_in(of, "status")), keep);
}

/// The same for a list of any type of conditions: `key` returns the type and the status of one, `keep` copies the time of
/// the last transition from the old one. Returns whether the list has changed.
pub fn set_typed_condition<C: PartialEq>(
    conditions: &mut Vec<C>,
    mut condition: C,
    key: impl Fn(&C) -> (&str, &str),
    keep: impl FnOnce(&mut C, &C),
) -> bool {
    let (kind, status) = key(&condition);
    let Some(old) = conditions.iter_mut().find(|old| key(old).0 == kind) else {
        conditions.push(condition);
        return true;
    };
    if key(old).1 == status {
        keep(&mut condition, old);
    }
    let is_changed = *old != condition;
    *old = condition;
    is_changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ready(status: &str, reason: &str, since: Value) -> Value {
        json!({"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": since})
    }

    #[test]
    fn the_time_of_a_transition_is_kept_while_the_status_stays() {
        let other = json!({"type": "Other", "status": "True"});
        // The old condition, the new one, and the expected time.
        let rows = [
            (None, ready("True", "a", json!("now")), json!("now")),
            (Some(ready("True", "a", json!("then"))), ready("True", "b", json!("now")), json!("then")),
            (Some(ready("False", "a", json!("then"))), ready("True", "a", json!("now")), json!("now")),
            (Some(ready("True", "a", Value::Null)), ready("True", "a", json!("now")), Value::Null),
            (
                Some(json!({"type": "Ready", "status": "True"})),
                ready("True", "a", json!("now")),
                json!("now"),
            ),
        ];
        for (old, new, since) in rows {
            let mut conditions: Vec<Value> = old.into_iter().chain([other.clone()]).collect();
            set_condition(&mut conditions, new.clone());
            let expected = ready(text_in(&new, "status"), text_in(&new, "reason"), since);
            assert_eq!(condition(&conditions, "Ready"), Some(&expected));
            assert_eq!((conditions.len(), condition(&conditions, "Other")), (2, Some(&other)));
        }
    }

    #[test]
    fn only_the_status_true_is_true() {
        let conditions = [json!({"type": "A", "status": "True"}), json!({"type": "B", "status": "Unknown"})];
        assert_eq!(["A", "B", "C"].map(|kind| is_condition_true(&conditions, kind)), [true, false, false]);
    }
}
