//! Built-in kinds, compared with responses of kube-apiserver 1.35.4 to the same bodies.

#![allow(clippy::too_many_lines, reason = "a table has as many lines as there are cases")]
mod admission_policy;
mod admission_webhook;
mod api_service;
mod apps_controller_revision;
mod apps_daemon_set;
mod apps_deployment;
mod apps_replica_set;
mod apps_stateful_set;
mod autoscaling_horizontal_pod_autoscaler;
mod autoscaling_metrics;
mod batch_cron_job;
mod batch_job;
mod batch_job_policies;
mod batch_job_status;
mod batch_schedule;
mod certificates;
mod changes;
mod columns;
mod core_quota;
mod custom_resource_definition;
mod data;
mod device_class;
mod flow_schema;
mod namespace;
mod others;
mod pods;
mod policy_columns;
mod policy_eviction;
mod policy_pod_disruption_budget;
mod priority_level;
mod rbac;
mod recorded;
mod resource_claim;
mod resource_slice;
mod runtime_class;
mod storage_class;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::schema::{builtin, check};

const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                         validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
                          'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
                          '[-._a-zA-Z0-9]+')";

/// A kind by its name alone.
fn kind(name: &str) -> &'static KindRules {
    all().find(|rules| rules.kind == name).unwrap()
}

/// The stored version of a kind.
fn version(rules: &KindRules) -> &'static str {
    match rules.kind {
        "HorizontalPodAutoscaler" => "v2",
        "MutatingAdmissionPolicy" | "MutatingAdmissionPolicyBinding" => "v1beta1",
        _ => "v1",
    }
}

/// A decoded object.
fn decode(rules: &KindRules, mut body: Value) -> Object {
    let id = builtin().by_kind(rules.group, version(rules), rules.kind).unwrap();
    check(builtin(), id, &mut body).unwrap();
    let Value::Object(mut object) = body else { panic!("not an object") };
    (rules.default)(&mut object);
    object
}

fn groups() -> [String; 2] {
    ["system:masters", "system:authenticated"].map(ToOwned::to_owned)
}

/// The user of the recorded requests.
fn admin(groups: &[String]) -> Writer<'_> {
    static EXTRA: BTreeMap<String, Vec<String>> = BTreeMap::new();
    Writer { name: "admin", uid: "admin", groups, extra: &EXTRA, now: "2026-11-16T03:36:55Z" }
}

/// Creates an object; returns it or the errors.
fn create(kind_name: &str, body: Value) -> Result<Value, Vec<String>> {
    let rules = kind(kind_name);
    let mut object = decode(rules, body);
    (rules.prepare_create)(&mut object);
    (rules.stamp)(&mut object, None, &admin(&groups()));
    finish(rules, object, rules.validate_create)
}

/// Updates an object; returns it or the errors.
fn update(kind_name: &str, old: Value, body: Value) -> Result<Value, Vec<String>> {
    let rules = kind(kind_name);
    let (old, mut new) = (decode(rules, old), decode(rules, body));
    (rules.prepare_update)(&mut new, &old);
    (rules.stamp)(&mut new, Some(&old), &admin(&groups()));
    finish(rules, new, |new| (rules.validate_update)(new, &old))
}

/// Writes a subresource; returns the object or the errors.
fn write_subresource(
    kind_name: &str,
    subresource: &str,
    old: Value,
    body: Value,
) -> Result<Value, Vec<String>> {
    let rules = kind(kind_name);
    let subresource = rules.subresource(subresource).unwrap();
    let (old, mut new) = (decode(rules, old), decode(rules, body));
    (subresource.prepare_update)(&mut new, &old);
    (rules.stamp)(&mut new, Some(&old), &admin(&groups()));
    finish(rules, new, |new| (subresource.validate_update)(new, &old))
}

fn finish(
    rules: &KindRules,
    mut object: Object,
    validate: impl Fn(&Object) -> Vec<FieldError>,
) -> Result<Value, Vec<String>> {
    let errors: Vec<String> = validate(&object).iter().map(ToString::to_string).collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    (rules.canonicalize)(&mut object);
    Ok(Value::Object(object))
}

/// Checks created objects.
fn made(kind: &str, cases: Vec<(Value, Value)>) {
    for (body, object) in cases {
        assert_eq!(create(kind, body.clone()), Ok(object), "{body}");
    }
}

/// Checks the errors of creates.
fn refused(kind: &str, cases: Vec<(Value, Vec<String>)>) {
    for (body, errors) in cases {
        assert_eq!(create(kind, body.clone()), Err(errors), "{body}");
    }
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(ToOwned::to_owned).to_vec()
}

#[test]
fn every_kind_with_rules_is_in_the_schema_table() {
    for rules in all() {
        assert!(builtin().by_kind(rules.group, version(rules), rules.kind).is_some(), "{}", rules.kind);
        assert!(std::ptr::eq(super::rules(rules.group, rules.kind).unwrap(), rules));
    }
    assert!(super::rules("example.com", "Foo").is_none());
}

#[test]
fn selectors_name_only_fields_that_the_kind_declares() {
    let unknown = |path: &str| {
        format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    };
    for (kind, path, answer) in [
        ("ConfigMap", "metadata.name", Ok(())),
        ("ConfigMap", "metadata.namespace", Ok(())),
        ("ConfigMap", "data", Err(unknown("data"))),
        ("Foo", "status.phase", Err(unknown("status.phase"))),
        ("Namespace", "status.phase", Ok(())),
        ("Namespace", "name", Err("field label not supported: name".to_owned())),
        ("Namespace", "metadata.namespace", Err("field label not supported: metadata.namespace".to_owned())),
        ("Secret", "type", Ok(())),
        ("Secret", "metadata.namespace", Ok(())),
        ("Event", "involvedObject.fieldPath", Ok(())),
        ("Event", "message", Err("field label not supported: message".to_owned())),
    ] {
        assert_eq!(check_selectable("", kind, path), answer, "{kind} {path}");
    }
}

#[test]
fn selectable_fields_are_read_from_the_object() {
    let event = json!({
        "involvedObject": {"kind": "Pod", "namespace": "n", "name": "p", "uid": "u", "apiVersion": "v1",
            "resourceVersion": "7", "fieldPath": "f"},
        "reason": "r", "reportingComponent": "c", "type": "Normal",
    });
    let fields = |kind_name: &str, object: &Value| -> Vec<String> {
        let object = object.as_object().unwrap();
        kind(kind_name).selectable.iter().map(|field| (field.value)(object).into_owned()).collect()
    };
    assert_eq!(fields("Event", &event), ["Pod", "n", "p", "u", "v1", "7", "f", "r", "c", "c", "Normal"]);
    let mut sourced = event.clone();
    sourced["source"] = json!({"component": "s"});
    assert_eq!(fields("Event", &sourced)[8..10], ["c", "s"]);
    assert_eq!(fields("Namespace", &json!({"status": {"phase": "Active"}})), ["Active"]);
    assert_eq!(fields("Secret", &json!({})), [""]);
}

#[test]
fn valid_but_discouraged_values_get_warnings() {
    let warnings = |kind_name: &str, body: Value| (kind(kind_name).warnings)(body.as_object().unwrap(), None);
    let tls = |cert: &str, key: &str| {
        let encode = crate::schema::encode_base64;
        let data = json!({"tls.crt": encode(cert.as_bytes()), "tls.key": encode(key.as_bytes())});
        json!({"type": "kubernetes.io/tls", "data": data})
    };
    let no_pem = |what: &str| vec![format!("tls: failed to find any PEM data in {what} input")];
    assert_eq!(warnings("Secret", tls("x", "y")), no_pem("certificate"));
    assert_eq!(warnings("Secret", tls("-----BEGIN CERTIFICATE-----", "y")), no_pem("key"));
    let annotated = json!({"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}});
    assert_eq!(
        warnings("ServiceAccount", annotated.clone()),
        texts([
            "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate \
             namespaces to isolate access to mounted secrets"
        ])
    );
    let annotated = annotated.as_object().unwrap();
    assert!((kind("ServiceAccount").warnings)(annotated, Some(annotated)).is_empty());
    let keys = ["failure-domain.beta.kubernetes.io/zone", "zone", "beta.kubernetes.io/arch"];
    let expressions = keys.map(|key| json!({"key": key, "values": ["1"]}));
    assert_eq!(
        warnings("StorageClass", json!({"allowedTopologies": [{"matchLabelExpressions": expressions}]})),
        texts([
            "allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use \
             \"topology.kubernetes.io/zone\" instead",
            "allowedTopologies[0].matchLabelExpressions[2].key: deprecated since v1.14; use \"kubernetes.io/arch\" \
             instead",
        ])
    );
}
