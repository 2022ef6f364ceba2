//! Merges lists of tolerations.

use model::object::text_in;
use serde_json::Value;

/// Merges two lists, without tolerations that another one covers.
pub fn merge(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (at, toleration) in all.iter().enumerate() {
        let is_covered = merged.iter().any(|other| covers(other, toleration))
            || all[at + 1..].iter().any(|other| other != toleration && covers(other, toleration));
        if !is_covered {
            merged.push((*toleration).clone());
        }
    }
    merged
}

/// Whether `wide` tolerates every taint that `narrow` tolerates.
pub fn covers(wide: &Value, narrow: &Value) -> bool {
    let text = |value: &Value, key: &str| text_in(value, key).to_owned();
    let both = |key: &str| (text(wide, key), text(narrow, key));
    if wide == narrow {
        return true;
    }
    let (operator, narrow_operator) = both("operator");
    let ((key, narrow_key), (effect, narrow_effect)) = (both("key"), both("effect"));
    if key != narrow_key && !(key.is_empty() && operator == "Exists") {
        return false;
    }
    if effect != narrow_effect && !effect.is_empty() {
        return false;
    }
    let seconds = |value: &Value| value.get("tolerationSeconds").and_then(Value::as_i64);
    if effect == "NoExecute"
        && let Some(most) = seconds(wide)
        && seconds(narrow).is_none_or(|seconds| seconds > most)
    {
        return false;
    }
    match operator.as_str() {
        "" | "Equal" => narrow_operator == "Equal" && text(wide, "value") == text(narrow, "value"),
        operator => operator == "Exists",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn covered_tolerations_are_dropped() {
        let all = json!({"operator": "Exists"});
        let one = json!({"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"});
        let other = json!({"key": "a", "operator": "Exists"});
        let merged = |first: Value, second: Value| {
            Value::from(merge(first.as_array().unwrap(), second.as_array().unwrap()))
        };
        assert_eq!(merged(json!([one]), json!([all])), json!([all]));
        assert_eq!(merged(json!([all]), json!([one])), json!([all]));
        assert_eq!(merged(json!([one, one]), json!([])), json!([one]));
        assert!(covers(&other, &one) && !covers(&one, &other));
        let short = json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
        let long = json!({"key": "a", "operator": "Exists", "effect": "NoExecute"});
        assert!(covers(&long, &short) && !covers(&short, &long));
    }
}
