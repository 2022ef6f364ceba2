//! ServiceAccounts, Leases, Events, PriorityClasses, and shared rules of all kinds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::rules::common::keep_all_but_status;

#[test]
fn a_service_account_keeps_only_the_names_of_secrets() {
    let body =
        json!({"secrets": [{"name": "a", "uid": "b"}, {"uid": "c"}], "imagePullSecrets": [{"name": "p"}]});
    let made = json!({"metadata": {}, "secrets": [{"name": "a"}, {}], "imagePullSecrets": [{"name": "p"}]});
    assert_eq!(create("ServiceAccount", body.clone()), Ok(made.clone()));
    assert_eq!(update("ServiceAccount", json!({}), body), Ok(made));
}

#[test]
fn a_lease_has_a_positive_duration_and_no_coordination() {
    let spec = json!({"leaseDurationSeconds": -1, "leaseTransitions": -1, "strategy": "x"});
    refused(
        "Lease",
        vec![
            (
                json!({"spec": spec}),
                texts([
                    "spec.leaseDurationSeconds: Invalid value: -1: must be greater than 0",
                    "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
                ]),
            ),
            (
                json!({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": 0}}),
                texts(["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"]),
            ),
        ],
    );
    let body = json!({"spec": {"strategy": "OldestEmulationVersion", "preferredHolder": "x"}});
    assert_eq!(create("Lease", body.clone()), Ok(json!({"metadata": {}, "spec": {}})));
    assert_eq!(update("Lease", json!({}), body), Ok(json!({"metadata": {}, "spec": {}})));
}

#[test]
fn an_event_is_in_the_namespace_of_its_object() {
    let event = |namespace: &str, involved: Value| json!({"metadata": {"name": "x", "namespace": namespace}, "involvedObject": involved});
    let mismatch = |value: &str| {
        vec![format!("involvedObject.namespace: Invalid value: {value:?}: does not match event.namespace")]
    };
    refused(
        "Event",
        vec![
            (event("wire", json!({"namespace": "default"})), mismatch("default")),
            (event("wire", json!({})), mismatch("")),
        ],
    );
    assert!(create("Event", event("wire", json!({"namespace": "wire"}))).is_ok());
    assert!(create("Event", event("default", json!({}))).is_ok());
}

#[test]
fn an_event_with_an_event_time_has_a_reporter_and_an_action() {
    let event = |fields: Value| {
        let mut body = json!({"metadata": {"name": "x", "namespace": "wire"},
            "involvedObject": {"namespace": "default"}, "eventTime": "2020-01-02T03:04:05.123456Z"});
        for (key, value) in fields.as_object().unwrap() {
            body[key] = value.clone();
        }
        body
    };
    let component =
        |value: &str, problem: &str| format!("reportingComponent: Invalid value: {value:?}: {problem}");
    let long = "x".repeat(129);
    refused(
        "Event",
        vec![
            (
                event(json!({})),
                vec![
                    "reportingComponent: Required value".to_owned(),
                    component("", "name part must be non-empty"),
                    component("", &format!("name part {QUALIFIED}")),
                    "reportingInstance: Required value".to_owned(),
                    "action: Required value".to_owned(),
                    "reason: Required value".to_owned(),
                ],
            ),
            (
                event(json!({"involvedObject": {}, "reportingComponent": "a b", "reportingInstance": "x",
                    "action": "a", "reason": "r"})),
                vec![
                    "involvedObject.namespace: Invalid value: \"\": does not match event.namespace"
                        .to_owned(),
                    component("a b", &format!("name part {QUALIFIED}")),
                ],
            ),
            (
                event(
                    json!({"reportingComponent": "a", "reportingInstance": long, "action": long, "reason": long,
                    "message": "x".repeat(1025)}),
                ),
                texts([
                    "reportingInstance: Invalid value: \"\": can have at most 128 characters",
                    "action: Invalid value: \"\": can have at most 128 characters",
                    "reason: Invalid value: \"\": can have at most 128 characters",
                    "message: Invalid value: \"\": can have at most 1024 characters",
                ]),
            ),
        ],
    );
}

#[test]
fn priority_classes_leave_the_highest_values_to_the_system() {
    let named = |name: &str, value: i64| json!({"metadata": {"name": name}, "value": value});
    let reserved = |problem: &str| {
        vec![format!(
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. \
             error: {problem}"
        )]
    };
    let mut default = named("system-cluster-critical", 2_000_000_000);
    default["globalDefault"] = true.into();
    refused(
        "PriorityClass",
        vec![
            (
                named("a", 1_000_000_001),
                texts(["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"]),
            ),
            (named("system-foo", 1), reserved("system-foo is not a known system priority class")),
            (
                named("system-cluster-critical", 1),
                reserved("value of system-cluster-critical PriorityClass must be 2000000000"),
            ),
            (default, reserved("globalDefault of system-cluster-critical PriorityClass must be false")),
            (json!({"preemptionPolicy": ""}), texts(["preemptionPolicy: Required value"])),
            (
                json!({"preemptionPolicy": "foo"}),
                texts([
                    "preemptionPolicy: Unsupported value: \"foo\": supported values: \"PreemptLowerPriority\", \
                     \"Never\"",
                ]),
            ),
        ],
    );
    let made = json!({"metadata": {"generation": 1}, "value": 0, "preemptionPolicy": "PreemptLowerPriority"});
    assert_eq!(create("PriorityClass", json!({"metadata": {"generation": 7}})), Ok(made));
    assert_eq!(
        update("PriorityClass", named("a", -7), json!({"value": 8, "preemptionPolicy": "Never"})),
        Err(texts([
            "value: Forbidden: may not be changed in an update.",
            "preemptionPolicy: Invalid value: \"Never\": field is immutable",
        ]))
    );
    assert!(update("PriorityClass", named("a", -7), json!({"value": -7, "globalDefault": true})).is_ok());
}

#[test]
fn a_volume_records_the_time_of_its_phase_change() {
    let writer = Writer { name: "", uid: "", groups: &[], extra: &BTreeMap::new(), now: "now" };
    let stamped = |new: Value, old: Option<Value>| {
        let mut new = new.as_object().unwrap().clone();
        let old = old.as_ref().and_then(Value::as_object);
        (kind("PersistentVolume").stamp)(&mut new, old, &writer);
        new["status"]["lastPhaseTransitionTime"].as_str().unwrap().to_owned()
    };
    let status =
        |phase: &str, time: &str| json!({"status": {"phase": phase, "lastPhaseTransitionTime": time}});
    assert_eq!(stamped(json!({"status": {"phase": "Pending"}}), None), "now");
    assert_eq!(stamped(status("Pending", "then"), Some(status("Pending", "then"))), "then");
    assert_eq!(stamped(status("Bound", "then"), Some(status("Pending", "then"))), "now");
    assert_eq!(stamped(status("Bound", "given"), Some(status("Pending", "then"))), "given");
}

#[test]
fn a_status_update_writes_metadata_and_status_only() {
    let old =
        json!({"metadata": {"name": "a"}, "data": {"a": "b"}, "spec": {"size": 1}, "status": {"ready": 1}});
    for (new, kept) in [
        (json!({}), json!({"data": {"a": "b"}, "spec": {"size": 1}})),
        (old.clone(), old.clone()),
        (
            json!({"metadata": {"name": "b"}, "kind": "A", "spec": {"size": 2}, "status": {"ready": 2}}),
            json!({"metadata": {"name": "b"}, "data": {"a": "b"}, "spec": {"size": 1}, "status": {"ready": 2}}),
        ),
    ] {
        let (Value::Object(mut new), Value::Object(old)) = (new, old.clone()) else { panic!("objects") };
        keep_all_but_status(&mut new, &old);
        assert_eq!(Value::Object(new), kept);
    }
}
