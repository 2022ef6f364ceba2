//! Namespaces.

use serde_json::{Value, json};

use super::*;

#[test]
fn a_namespace_gets_a_label_a_finalizer_and_a_phase() {
    for (finalizers, made) in [
        (json!([]), json!(["kubernetes"])),
        (json!(["foo.com/x"]), json!(["foo.com/x", "kubernetes"])),
        (json!(["kubernetes", "foo.com/x"]), json!(["kubernetes", "foo.com/x"])),
    ] {
        let body = json!({
            "metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "other"}},
            "spec": {"finalizers": finalizers}, "status": {"phase": "Terminating"},
        });
        let expected = json!({
            "metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "a"}},
            "spec": {"finalizers": made}, "status": {"phase": "Active"},
        });
        assert_eq!(create("Namespace", body), Ok(expected));
    }
}

#[test]
fn a_generated_namespace_gets_its_label_once_it_has_a_name() {
    let rules = kind("Namespace");
    let mut object = decode(rules, json!({"metadata": {"generateName": "gen-"}}));
    (rules.prepare_create)(&mut object);
    assert_eq!(object["metadata"], json!({"generateName": "gen-"}));
    object["metadata"]["name"] = "gen-x".into();
    (rules.canonicalize)(&mut object);
    assert_eq!(object["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "gen-x"}));
}

#[test]
fn the_finalizers_of_a_namespace_are_standard_or_qualified() {
    let finalizers = json!(["foo", "kubernetes", "a/b/c", "x y/z"]);
    let errors = create("Namespace", json!({"metadata": {"name": "a"}, "spec": {"finalizers": finalizers}}));
    let subdomain = "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
                     '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex \
                     used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    assert_eq!(
        errors,
        Err(vec![
            "spec.finalizers: Invalid value: \"foo\": name is neither a standard finalizer name nor is it fully \
             qualified"
                .to_owned(),
            format!(
                "spec.finalizers: Invalid value: \"a/b/c\": a valid label key {QUALIFIED} with an optional DNS \
                 subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ),
            format!("spec.finalizers: Invalid value: \"x y/z\": {subdomain}"),
        ])
    );
}

#[test]
fn each_subresource_of_a_namespace_writes_its_own_fields() {
    let labels = json!({"kubernetes.io/metadata.name": "wire"});
    let old = || {
        json!({"metadata": {"name": "wire"}, "spec": {"finalizers": ["example.com/x", "kubernetes"]},
            "status": {"phase": "Active"}})
    };
    let condition = json!({"type": "x", "status": "True", "lastTransitionTime": null});
    let body = json!({"metadata": {"name": "wire"}, "spec": {"finalizers": ["a/b"]},
        "status": {"phase": "Active", "conditions": [condition]}});
    let mut expected = old();
    expected["metadata"]["labels"] = labels;
    assert_eq!(update("Namespace", old(), body.clone()), Ok(expected.clone()));
    let mut status = expected.clone();
    status["status"] = body["status"].clone();
    assert_eq!(write_subresource("Namespace", "status", old(), body.clone()), Ok(status));
    expected["spec"] = body["spec"].clone();
    assert_eq!(write_subresource("Namespace", "finalize", old(), body), Ok(expected));
}

#[test]
fn the_phase_of_a_namespace_follows_its_deletion() {
    let old = || json!({"metadata": {"name": "wire"}});
    let body = |deleted: Value, phase: &str| json!({"metadata": {"name": "wire", "deletionTimestamp": deleted}, "status": {"phase": phase}});
    let time = "2026-11-16T00:00:00Z";
    assert_eq!(
        write_subresource("Namespace", "status", old(), body(Value::Null, "Terminating")),
        Err(texts([
            "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
        ]))
    );
    assert_eq!(
        write_subresource("Namespace", "status", old(), body(time.into(), "Active")),
        Err(texts([
            "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"
        ]))
    );
    assert!(write_subresource("Namespace", "status", old(), body(time.into(), "Terminating")).is_ok());
    assert_eq!(
        write_subresource("Namespace", "finalize", old(), json!({"spec": {"finalizers": ["foo"]}})),
        Err(texts([
            "spec.finalizers[0]: Invalid value: \"foo\": name is neither a standard finalizer name nor is it fully \
             qualified"
        ]))
    );
}

#[test]
fn a_namespace_that_is_deleted_terminates_while_it_has_finalizers() {
    let rules = kind("Namespace");
    let mut object =
        decode(rules, json!({"metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}}));
    (rules.prepare_delete)(&mut object);
    assert_eq!(object["status"], json!({"phase": "Terminating"}));
    assert!((rules.holds_deletion)(&object));
    object["spec"] = json!({});
    assert!(!(rules.holds_deletion)(&object));
}
