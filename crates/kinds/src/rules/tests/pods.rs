//! Pods and Pod templates: a file of bodies with the responses of kube-apiserver 1.35.4.

use serde_json::{Value, json};

use super::*;

/// One line per request: the kind, the body, and the errors or the object of the response, with its warnings.
const RECORDED: &str = include_str!("recorded/pods.jsonl");

#[test]
fn pods_and_templates_match_the_recorded_responses() {
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
fn a_deprecated_annotation_warns_in_every_template() {
    let annotation = "container.apparmor.security.beta.kubernetes.io/a";
    let template = json!({
        "metadata": {"labels": {"a": "b"}, "annotations": {annotation: "runtime/default"}},
        "spec": {"containers": [{"name": "a", "image": "x"}]},
    });
    let advice = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
    for (name, body, path) in [
        ("PodTemplate", json!({"template": template}), "template"),
        ("Deployment", json!({"spec": {"template": template}}), "spec.template"),
        (
            "CronJob",
            json!({"spec": {"jobTemplate": {"spec": {"template": template}}}}),
            "spec.jobTemplate.spec.template",
        ),
    ] {
        let rules = kind(name);
        let warnings = (rules.warnings)(&decode(rules, body), None);
        let told = format!("{path}.metadata.annotations[{annotation}]: {advice}");
        assert!(warnings.contains(&told), "{name}: {warnings:?}");
    }
}

#[test]
fn a_pod_without_a_name_is_validated() {
    let body = json!({"metadata": {"generateName": "x-"}, "spec": {"containers": []}});
    assert_eq!(create("Pod", body), Err(texts(["spec.containers: Required value"])));
}

/// Updates of a Pod: the old Pod, the new one, and the subresource.
const UPDATES: &str = include_str!("recorded/pod_updates.jsonl");

#[test]
fn pod_updates_match_the_recorded_responses() {
    let mut differences = Vec::new();
    for line in UPDATES.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (old, body) = (case["old"].clone(), case["body"].clone());
        let answer = match case["part"].as_str() {
            Some(part) => write_subresource("Pod", part, old, body.clone()),
            None => update("Pod", old, body.clone()),
        };
        let recorded = match case.get("errors") {
            Some(errors) => Err(strings(errors)),
            None => Ok(case["object"].clone()),
        };
        if answer != recorded {
            let part = &case["part"];
            differences.push(format!("{body}\n  {part}\n  recorded {recorded:?}\n  answered {answer:?}"));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

/// Pods and their table rows, without the age.
const ROWS: &str = include_str!("recorded/pod_rows.jsonl");

#[test]
fn pod_rows_match_the_recorded_ones() {
    let now: jiff::Timestamp = "2026-11-14T00:00:00Z".parse().unwrap();
    for line in ROWS.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let cells = (kind("Pod").cells)(case["object"].as_object().unwrap(), now);
        assert_eq!(Value::Array(cells), case["cells"], "{}", case["object"]);
    }
}
