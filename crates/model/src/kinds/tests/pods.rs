//! Pods and templates of pods: a file of bodies, each with what kube-apiserver 1.35.4 answered.

use serde_json::{Value, json};

use super::*;

/// One line for each request: the kind, the body, and the errors or the object of the answer, with its warnings.
const RECORDED: &str = include_str!("recorded/pods.jsonl");

#[test]
fn pods_and_templates_get_the_recorded_answers() {
    let mut differences = Vec::new();
    for line in RECORDED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let kind_name = case["kind"].as_str().unwrap();
        let body = case["body"].clone();
        let answer = create(kind_name, body.clone());
        let recorded = match case.get("errors") {
            Some(errors) => Err(strings(errors)),
            None => Ok(case["object"].clone()),
        };
        if answer != recorded {
            differences.push(format!("{body}\n  recorded {recorded:?}\n  answered {answer:?}"));
        }
        let rules = kind(kind_name);
        let mut object = decode(rules, body.clone());
        (rules.prepare_create)(&mut object);
        let warnings = (rules.warnings)(&object, None);
        if recorded.is_ok() && warnings != strings(&case["warnings"]) {
            let recorded = &case["warnings"];
            differences.push(format!("{body}\n  recorded warnings {recorded}\n  warned {warnings:?}"));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|item| item.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_pod_without_a_name_is_checked_all_the_same() {
    let body = json!({"metadata": {"generateName": "x-"}, "spec": {"containers": []}});
    assert_eq!(create("Pod", body), Err(texts(["spec.containers: Required value"])));
}
