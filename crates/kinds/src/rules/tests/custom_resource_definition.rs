//! Replays CRDs and compares the results with the responses of kube-apiserver 1.35.4.

use serde_json::{Value, json};

use super::*;

fn answer(case: &Value) -> Result<(Object, Vec<String>), Vec<String>> {
    let rules = kind("CustomResourceDefinition");
    let body = ["create", "update", "part"].into_iter().find_map(|key| case.get(key)).unwrap();
    let mut new = decode(rules, body.clone());
    let old = case.get("old").map(|old| decode(rules, old.clone()));
    let errors = match (&old, case.get("part")) {
        (None, _) => {
            (rules.prepare_create)(&mut new);
            (rules.validate_create)(&new)
        }
        (Some(old), None) => {
            (rules.prepare_update)(&mut new, old);
            (rules.validate_update)(&new, old)
        }
        (Some(old), Some(_)) => {
            let part = rules.subresource("status").unwrap();
            (part.prepare_update)(&mut new, old);
            (part.validate_update)(&new, old)
        }
    };
    let warnings = if case.get("part").is_none() { (rules.warnings)(&new, old.as_ref()) } else { Vec::new() };
    if errors.is_empty() {
        Ok((new, warnings))
    } else {
        Err(errors.iter().map(ToString::to_string).collect())
    }
}

/// The difference between a result and the recorded response.
fn difference(case: &Value) -> Option<String> {
    let recorded = match case.get("errors") {
        Some(errors) => errors.clone(),
        None => json!([case["object"], case.get("warnings").unwrap_or(&json!([]))]),
    };
    let answer = match answer(case) {
        Ok((mut object, warnings)) => {
            object.retain(|key, _| key != "metadata");
            json!([object, warnings])
        }
        Err(errors) => json!(errors),
    };
    (answer != recorded).then(|| format!("{case}\n  answer {answer}\nrecorded {recorded}"))
}

#[test]
fn crds_are_accepted_and_refused_as_by_kubernetes() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("recorded/custom_resource_definition.json")).unwrap();
    let differing: Vec<String> = cases.iter().filter_map(difference).collect();
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
}
