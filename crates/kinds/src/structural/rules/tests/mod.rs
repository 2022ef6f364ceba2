//! Validation and evaluation of rules, compared with recorded results of kube-apiserver.

use serde_json::Value;

use super::{Rules, check};
use crate::structural::Structural;

const PATH: &str = "spec.validation.openAPIV3Schema";

fn recorded(text: &str) -> Vec<Value> {
    serde_json::from_str(text).expect("recorded answers are JSON")
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(|text| text.as_str().expect("a text")).collect()
}

/// Removes the unpredictable numbers in Kubernetes' type names of objects.
fn without_type_numbers(text: &str) -> String {
    let mut parts = text.split("selfType");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str("selfType");
        plain.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    plain
}

#[test]
fn rules_of_crds_are_refused_with_the_messages_of_kubernetes() {
    for case in recorded(include_str!("recorded/definitions.json")) {
        let schema = Structural::compile(&case["schema"], false);
        let expected: Vec<_> = texts(&case["errors"]).into_iter().map(without_type_numbers).collect();
        // Errors of the schema itself are found elsewhere; they only exclude its rules from the check.
        let (of_schema, of_rules): (Vec<_>, Vec<_>) = expected.into_iter().partition(|error| {
            let place = error.split(": ").next().unwrap_or_default();
            !place.contains("x-kubernetes-validations") && place != PATH || place.contains("allOf")
        });
        let known: Vec<_> = of_schema
            .iter()
            .map(|error| model::error::FieldError::required(error.split(": ").next().unwrap_or_default(), ""))
            .collect();
        let mut found: Vec<_> =
            check(schema.root(), PATH, &known, true).iter().map(ToString::to_string).collect();
        let mut expected = of_rules;
        let name = case["name"].as_str().expect("a name");
        if name.starts_with("cost_total") {
            // Kubernetes visits fields in random order, and names any four of the expressions with the same cost.
            let shorten = |errors: &mut Vec<String>| {
                errors.sort();
                errors.retain(|error| !error.contains("contributed to"));
            };
            shorten(&mut found);
            shorten(&mut expected);
        }
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn objects_are_validated_by_rules_as_in_kubernetes() {
    for case in recorded(include_str!("recorded/objects.json")) {
        let schema = Structural::compile(&case["schema"], false);
        let rules = Rules::compile(schema.root()).expect("every recorded schema has rules");
        for (index, step) in case["steps"].as_array().expect("steps").iter().enumerate() {
            let mut new = step["new"].clone();
            schema.default(new.as_object_mut().expect("an object"));
            let old = Some(&step["old"]).filter(|old| !old.is_null());
            let expected = texts(&step["errors"]);
            // If the schema refuses an object, its rules may be skipped.
            if expected.iter().any(|error| error.contains("some validation rules were not checked")) {
                continue;
            }
            let of_schema = |error: &&str| error.contains(" in body ");
            let mut expected: Vec<_> = expected.into_iter().filter(|error| !of_schema(error)).collect();
            let new = new.as_object().expect("an object");
            let verdict = rules.validate(schema.root(), new, old.and_then(Value::as_object));
            let mut found: Vec<_> = verdict.errors.iter().map(ToString::to_string).collect();
            expected.sort_unstable();
            found.sort();
            assert_eq!(found, expected, "{} {index}", case["name"]);
            assert_eq!(verdict.warnings, texts(&step["warnings"]), "{} {index}", case["name"]);
        }
    }
}
