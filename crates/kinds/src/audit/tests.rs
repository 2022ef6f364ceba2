//! Decisions of audit policies, and the format of events.

use serde_json::{Value, json};

use super::*;

fn policy(rules: &str) -> Policy {
    Policy::read(format!("{{apiVersion: audit.k8s.io/v1, kind: Policy, {rules}}}").as_bytes()).unwrap()
}

fn resource<'a>(verb: &'a str, group: &'a str, path: &'a str, name: &'a str) -> Attributes<'a> {
    let (resource, subresource) = path.split_once('/').unwrap_or((path, ""));
    let target = AuditTarget::Resource { group, resource, subresource, namespace: "space", name };
    Attributes { user: "jane", groups: &[], verb, target }
}

#[test]
fn the_first_matching_rule_decides() {
    let policy = policy(
        "rules: [{level: None, users: [bob]}, {level: Metadata, userGroups: [g]}, {level: Request, verbs: [get]}, \
         {level: None, resources: [{group: apps}, {resources: [pods, '*/log', nodes/*], resourceNames: [x]}]}, \
         {level: RequestResponse, namespaces: [space]}, {level: Request, nonResourceURLs: [/a, '/b/*']}]",
    );
    let level = |attributes: Attributes<'_>| policy.extent(&attributes).level;
    assert_eq!(level(Attributes { user: "bob", ..resource("get", "", "pods", "x") }), Level::None);
    let groups = ["f".to_owned(), "g".to_owned()];
    assert_eq!(level(Attributes { groups: &groups, ..resource("get", "", "pods", "x") }), Level::Metadata);
    assert_eq!(level(resource("get", "apps", "deployments", "")), Level::Request);
    for (group, path, name, expected) in [
        ("apps", "deployments/scale", "a", Level::None),
        ("", "pods", "x", Level::None),
        ("", "pods", "y", Level::RequestResponse),
        ("", "pods/status", "x", Level::RequestResponse),
        ("", "pods/log", "x", Level::None),
        ("", "nodes", "x", Level::None),
        ("", "nodes/proxy", "x", Level::None),
        ("batch", "jobs/log", "x", Level::RequestResponse),
    ] {
        assert_eq!(level(resource("list", group, path, name)), expected, "{group} {path} {name}");
    }
    for (path, expected) in [
        ("/a", Level::Request),
        ("/a/b", Level::None),
        ("/b/", Level::Request),
        ("/b/c", Level::Request),
        ("/b", Level::None),
    ] {
        assert_eq!(
            level(Attributes { target: AuditTarget::Path(path), ..resource("post", "", "", "") }),
            expected,
            "{path}"
        );
    }
}

#[test]
fn policies_and_rules_omit_stages_and_managed_fields() {
    let policy = policy(
        "omitStages: [RequestReceived], omitManagedFields: true, \
         rules: [{level: Request, verbs: [a], omitStages: [Panic], omitManagedFields: false}, {level: Metadata}]",
    );
    let extent = |verb| policy.extent(&resource(verb, "", "pods", ""));
    let has = |verb| Stage::ALL.map(|stage| extent(verb).has(stage));
    assert_eq!((has("a"), extent("a").omits_managers), ([false, true, true, false], false));
    assert_eq!((has("b"), extent("b").omits_managers), ([false, true, true, true], true));
    assert_eq!(Stage::ALL.map(|stage| Extent::default().has(stage)), [false; 4]);
}

#[test]
fn invalid_policies_are_refused_with_the_messages_of_kubernetes() {
    let head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";
    let stages = "allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic";
    for (file, expected) in [
        (format!("{head}rules: []"), "loaded illegal policy with 0 rules".to_owned()),
        ("{kind: Policy}".to_owned(), "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy".to_owned()),
        (String::new(), "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy".to_owned()),
        (
            "{kind: Policy, apiVersion: audit.k8s.io/v1beta1}".to_owned(),
            "failed decoding: no kind \"Policy\" is registered for version \"audit.k8s.io/v1beta1\" in scheme \
             \"pkg/runtime/scheme.go:111\""
                .to_owned(),
        ),
        (
            "{kind: Event, apiVersion: audit.k8s.io/v1}".to_owned(),
            "failed decoding: converting (v1.Event) to (audit.Policy): unknown conversion".to_owned(),
        ),
        (format!("{head}rules: [{{}}]"), "rules[0].level: Required value".to_owned()),
        (
            format!(
                "{head}omitStages: [Bad]\nrules: [{{level: Loud}}, {{level: None, nonResourceURLs: [a, '/*x', ''], \
                 namespaces: [x]}}, {{level: None, resources: [{{group: A/b, resourceNames: [x]}}], omitStages: [X]}}]"
            ),
            format!(
                "[omitStages[0]: Invalid value: \"Bad\": {stages}, rules[0].level: Unsupported value: \"Loud\": supported \
                 values: \"None\", \"Metadata\", \"Request\", \"RequestResponse\", rules[1].nonResourceURLs[0]: Invalid \
                 value: \"a\": non-resource URL rules must begin with a '/' character, rules[1].nonResourceURLs[1]: \
                 Invalid value: \"/*x\": non-resource URL wildcards '*' must be the final character of the rule, \
                 rules[1].nonResourceURLs[2]: Invalid value: \"\": non-resource URL rules must begin with a '/' \
                 character, rules[1].nonResourceURLs: Invalid value: [\"a\",\"/*x\",\"\"]: rules cannot apply to both \
                 regular resources and non-resource URLs, rules[2].resources.group: Invalid value: \"A/b\": a lowercase \
                 RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and \
                 end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), rules[2].resources.resourceNames: \
                 Invalid value: [\"x\"]: using resourceNames requires at least one resource, rules[2].omitStages[0]: \
                 Invalid value: \"X\": {stages}]"
            ),
        ),
    ] {
        assert_eq!(Policy::read(file.as_bytes()).unwrap_err(), expected, "{file}");
    }
    for file in ["[}", "- a", "{apiVersion: audit.k8s.io/v1, rules: [{level: 3}]}"] {
        assert!(Policy::read(file.as_bytes()).unwrap_err().starts_with("failed decoding: "), "{file}");
    }
    let odd = policy("rulez: [], rules: [{level: None, foo: a, users: null}]");
    assert_eq!(odd.warnings.len(), 1);
    assert!(odd.warnings[0].ends_with("unknown field \"rulez\", unknown field \"rules[0].foo\""));
}

#[test]
fn the_fields_of_an_event_are_in_the_order_of_kubernetes() {
    let mut reference = ObjectReference { resource: "pods".to_owned(), ..ObjectReference::default() };
    reference.complete(&json!({"name": "p", "uid": "u"}));
    let event = Event {
        level: Level::Request,
        id: "1".to_owned(),
        uri: "/x?y".to_owned(),
        verb: "create".to_owned(),
        object: Some(reference),
        status: Some(json!({"metadata": {}, "code": 201})),
        received: "t0".to_owned(),
        ..Event::default()
    };
    let line = String::from_utf8(event.line(Stage::ResponseComplete, "t1")).unwrap();
    assert_eq!(
        line,
        concat!(
            r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":"1","stage":"ResponseComplete","#,
            r#""requestURI":"/x?y","verb":"create","user":{},"objectRef":{"resource":"pods","name":"p","uid":"u"},"#,
            r#""responseStatus":{"code":201,"metadata":{}},"requestReceivedTimestamp":"t0","stageTimestamp":"t1"}"#,
            "\n"
        )
    );
}

#[test]
fn managed_fields_are_removed_from_objects_lists_and_tables() {
    let object = json!({"metadata": {"name": "a", "managedFields": [{}]}});
    let bare = json!({"metadata": {"name": "a"}});
    assert_eq!(without_managers(object.clone()), bare);
    let list = json!({"metadata": {}, "items": [object]});
    assert_eq!(without_managers(list), json!({"metadata": {}, "items": [bare]}));
    let table = json!({"rows": [{"cells": [], "object": object}]});
    assert_eq!(without_managers(table), json!({"rows": [{"cells": [], "object": bare}]}));
    assert_eq!(without_managers(Value::Null), Value::Null);
}
