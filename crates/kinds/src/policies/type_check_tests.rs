//! Warnings of type checks.

use cel::Type;
use model::Object;
use serde_json::{Value, json};

use super::{Kinds, TypedKind, builtin_type, checked_status, type_check};
use crate::resources::TABLE;

/// The built-in kinds.
struct BuiltIn;

impl Kinds for BuiltIn {
    fn of_resource(&self, group: &str, version: &str, plural: &str) -> Option<TypedKind> {
        let of = TABLE.iter().find(|of| of.group == group && of.version == version)?;
        let row = of.resources.iter().find(|row| row.plural == plural)?;
        let object = self.of_kind(group, version, row.kind)?;
        Some(TypedKind { kind: row.kind.to_owned(), object })
    }

    fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<Type> {
        builtin_type(group, version, kind)
    }
}

fn policy(rule: Value, more: Value) -> Object {
    let mut policy =
        json!({"metadata": {"generation": 3}, "spec": {"matchConstraints": {"resourceRules": [rule]}}});
    policy["spec"].as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    policy.as_object().cloned().unwrap()
}

fn deployments() -> Value {
    json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]})
}

fn warned(rule: Value, more: Value) -> Vec<(String, String)> {
    let warnings = type_check(&policy(rule, more), &BuiltIn);
    warnings.into_iter().map(|warning| (warning.field_ref, warning.warning)).collect()
}

#[test]
fn unknown_fields_and_wrong_types_get_warnings() {
    let wrong = json!({"validations": [
        {"expression": "object.spec.replicas > 1 && object.metadata.name.startsWith('a')"},
        {"expression": "object.spec.replica > 1", "messageExpression": "object.spec.replicas"},
        {"expression": "object.spec.replicas > '1'"},
        {"expression": "object.spec.template.spec.containers.all(c, c.image != '')",
         "messageExpression": "object.nothing"},
    ]});
    assert_eq!(
        warned(deployments(), wrong),
        [
            (
                "spec.validations[1].expression".to_owned(),
                "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replica'\n | object.spec.replica > \
                 1\n | ...........^\n"
                    .to_owned()
            ),
            (
                "spec.validations[2].expression".to_owned(),
                "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to \
                 '(int, string)'\n | object.spec.replicas > '1'\n | .....................^\n"
                    .to_owned()
            ),
            (
                "spec.validations[3].messageExpression".to_owned(),
                "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'nothing'\n | object.nothing\n | \
                 ......^\n"
                    .to_owned()
            ),
        ]
    );
}

#[test]
fn every_kind_that_a_rule_names_is_checked() {
    let rule = json!({"apiGroups": ["apps", ""], "apiVersions": ["v1"], "resources": ["deployments", "pods", "pods/log"]});
    let [(_, warning)] =
        &warned(rule, json!({"validations": [{"expression": "has(object.spec.nodeName)"}]}))[..]
    else {
        panic!("one expression is warned about")
    };
    assert!(warning.starts_with("apps/v1, Kind=Deployment: ERROR: "), "{warning}");
    let both =
        json!({"apiGroups": ["apps", ""], "apiVersions": ["v1"], "resources": ["deployments", "pods"]});
    let said = warned(both, json!({"validations": [{"expression": "object.x"}]}));
    assert_eq!(said[0].1.matches("undefined field 'x'").count(), 2);
    assert!(said[0].1.starts_with("/v1, Kind=Pod: "), "{}", said[0].1);
    let any = json!({"apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["deployments"]});
    assert!(warned(any, json!({"validations": [{"expression": "object.x"}]})).is_empty());
}

#[test]
fn parameters_and_variables_have_types() {
    let more = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [{"name": "n", "expression": "object.spec.replicas"}, {"name": "x", "expression": "object.x"}],
        "validations": [
            {"expression": "variables.n == params.data['a']"},
            {"expression": "variables.n > int(params.data['a']) && variables.x == 1"},
            {"expression": "authorizer.requestResource.check('get').allowed()"},
        ],
    });
    let said = warned(deployments(), more);
    let fields: Vec<&str> = said.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(fields, ["spec.validations[0].expression", "spec.validations[2].expression"]);
    assert!(said[0].1.contains("found no matching overload for '_==_' applied to '(int, string)'"));
    let unknown = json!({"paramKind": {"apiVersion": "x.io/v1", "kind": "X"}, "validations": [{"expression": "params.a"}]});
    assert!(warned(deployments(), unknown)[0].1.contains("undeclared reference to 'params'"));
}

#[test]
fn a_checked_policy_has_a_status() {
    let policy = policy(deployments(), json!({"validations": [{"expression": "object.x"}]}));
    let status = checked_status(&policy, &type_check(&policy, &BuiltIn));
    assert_eq!(status["observedGeneration"], 3);
    assert_eq!(status["typeChecking"]["expressionWarnings"][0]["fieldRef"], "spec.validations[0].expression");
    assert_eq!(checked_status(&policy, &[]), json!({"observedGeneration": 3, "typeChecking": {}}));
}

#[test]
fn every_built_in_kind_has_a_type() {
    for of in TABLE {
        for row in of.resources.iter().filter(|row| row.verbs.contains(&"watch")) {
            assert!(builtin_type(of.group, of.version, row.kind).is_some(), "{}", row.kind);
        }
    }
}
