//! Admission policies and their bindings.

use serde_json::json;

use super::*;

/// A policy with these fields added to its spec.
fn policy(fields: Value) -> Value {
    let rule = json!({
        "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
    });
    let spec =
        json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]});
    with_spec(spec, &fields)
}

/// A binding with these fields added to its spec.
fn binding(fields: Value) -> Value {
    with_spec(json!({"policyName": "p", "validationActions": ["Deny"]}), &fields)
}

fn with_spec(mut spec: Value, fields: &Value) -> Value {
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    json!({"metadata": {"name": "policy-x"}, "spec": spec})
}

#[test]
fn policy_defaults_are_fail_and_equivalent() {
    made(
        "ValidatingAdmissionPolicy",
        vec![
            (
                policy(json!({})),
                json!({
                    "metadata": {"name": "policy-x"},
                    "spec": {
                        "matchConstraints": {
                            "namespaceSelector": {}, "objectSelector": {},
                            "resourceRules": [
                                {
                                    "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                                    "resources": ["configmaps"], "scope": "*",
                                },
                            ],
                            "matchPolicy": "Equivalent",
                        },
                        "validations": [{"expression": "true"}], "failurePolicy": "Fail",
                    },
                    "status": {},
                }),
            ),
            (
                policy(json!({
                    "failurePolicy": "Ignore", "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                    "variables": [{"name": "x", "expression": "1"}],
                    "matchConditions": [{"name": "a", "expression": "true"}],
                    "matchConstraints": {
                        "resourceRules": [
                            {
                                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                                "resources": ["configmaps"], "resourceNames": ["a"], "scope": "Namespaced",
                            },
                        ],
                        "excludeResourceRules": [
                            {
                                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                                "resources": ["configmaps"],
                            },
                        ],
                        "matchPolicy": "Exact",
                    },
                    "auditAnnotations": [{"key": "a", "valueExpression": "'x'"}],
                    "validations": [
                        {"expression": "variables.x == 1", "message": "m", "reason": "Forbidden"},
                    ],
                })),
                json!({
                    "metadata": {"name": "policy-x"},
                    "spec": {
                        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                        "matchConstraints": {
                            "namespaceSelector": {}, "objectSelector": {},
                            "resourceRules": [
                                {
                                    "resourceNames": ["a"], "operations": ["CREATE"], "apiGroups": [""],
                                    "apiVersions": ["v1"], "resources": ["configmaps"],
                                    "scope": "Namespaced",
                                },
                            ],
                            "excludeResourceRules": [
                                {
                                    "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                                    "resources": ["configmaps"], "scope": "*",
                                },
                            ],
                            "matchPolicy": "Exact",
                        },
                        "validations": [
                            {"expression": "variables.x == 1", "message": "m", "reason": "Forbidden"},
                        ],
                        "failurePolicy": "Ignore",
                        "auditAnnotations": [{"key": "a", "valueExpression": "'x'"}],
                        "matchConditions": [{"name": "a", "expression": "true"}],
                        "variables": [{"name": "x", "expression": "1"}],
                    },
                    "status": {},
                }),
            ),
        ],
    );
}

#[test]
fn a_policy_needs_match_constraints_and_validations() {
    refused(
        "ValidatingAdmissionPolicy",
        vec![
            (
                json!({"metadata": {"name": "policy-x"}, "spec": {}}),
                texts([
                    "spec.matchConstraints: Required value",
                    "spec.validations: Required value: validations or auditAnnotations must contain at least \
                 one item",
                    "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at \
                 least one item",
                ]),
            ),
            (
                policy(json!({
                    "failurePolicy": "x",
                    "matchConstraints": {
                        "matchPolicy": "y",
                        "resourceRules": [
                            {
                                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                                "resources": ["configmaps"], "resourceNames": ["a", "a", "b/c"],
                            },
                        ],
                        "excludeResourceRules": [{}],
                    },
                })),
                texts([
                    "spec.failurePolicy: Unsupported value: \"x\": supported values: \"Fail\", \"Ignore\"",
                    "spec.matchConstraints.matchPolicy: Unsupported value: \"y\": supported values: \
                 \"Equivalent\", \"Exact\"",
                    "spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: \"a\"",
                    "spec.matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: \"b/c\": may not \
                 contain '/'",
                    "spec.matchConstraints.excludeResourceRules[0].operations: Required value",
                    "spec.matchConstraints.excludeResourceRules[0].apiGroups: Required value",
                    "spec.matchConstraints.excludeResourceRules[0].apiVersions: Required value",
                    "spec.matchConstraints.excludeResourceRules[0].resources: Required value",
                ]),
            ),
            (
                policy(json!({"paramKind": {"apiVersion": "", "kind": ""}})),
                texts(["spec.paramKind.apiVersion: Required value", "spec.paramKind.kind: Required value"]),
            ),
            (
                policy(json!({"paramKind": {"apiVersion": "a/b/c", "kind": "A b"}})),
                texts([
                    "spec.paramKind.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                    "spec.paramKind.kind: Invalid value: \"A b\": may have mixed case, but should otherwise \
                 match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
                 with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
                 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
                ]),
            ),
            (
                policy(json!({"paramKind": {"apiVersion": "a/", "kind": "Foo"}})),
                texts(["spec.paramKind.apiVersion: Invalid value: \"a/\": version must be specified"]),
            ),
            (
                policy(json!({"paramKind": {"apiVersion": "/", "kind": "Foo"}})),
                texts(["spec.paramKind.apiVersion: Invalid value: \"/\": version must be specified"]),
            ),
            (
                policy(
                    json!({"variables": [{}, {"name": "1x", "expression": "1"}, {"name": "in", "expression": "1"}]}),
                ),
                texts([
                    "spec.variables[0].name: Required value: name is not specified",
                    "spec.variables[0].expression: Required value: expression is not specified",
                    "spec.variables[1].name: Invalid value: \"1x\": must be a valid CEL identifier",
                    "spec.variables[2].name: Invalid value: \"in\": must be a valid CEL identifier",
                ]),
            ),
            (
                policy(json!({
                    "validations": [
                        {},
                        {
                            "expression": "true", "message": " ", "messageExpression": " ",
                            "reason": "Unauthorized",
                        },
                        {"expression": "true", "message": "a\nb"},
                    ],
                })),
                texts([
                    "spec.validations[0].expression: Required value: expression is not specified",
                    "spec.validations[1].messageExpression: Invalid value: \" \": must be non-empty if \
                 specified",
                    "spec.validations[1].message: Invalid value: \" \": must be non-empty if specified",
                    "spec.validations[1].reason: Unsupported value: \"Unauthorized\": supported values: \
                 \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\"",
                    "spec.validations[2].message: Invalid value: \"a\\nb\": must not contain line breaks",
                ]),
            ),
            (
                policy(json!({
                    "auditAnnotations": [
                        {"key": "", "valueExpression": "'x'"}, {"key": "a", "valueExpression": ""},
                        {"key": "a", "valueExpression": "'x'"}, {"key": "a b", "valueExpression": "'x'"},
                    ],
                })),
                texts([
                    "spec.auditAnnotations[0].key: Invalid value: \"policy-x/\": name part must be non-empty",
                    "spec.auditAnnotations[0].key: Invalid value: \"policy-x/\": name part must consist of \
                 alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                 character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                    "spec.auditAnnotations[1].valueExpression: Required value: valueExpression is not specified",
                    "spec.auditAnnotations[2].key: Duplicate value: \"a\"",
                    "spec.auditAnnotations[3].key: Invalid value: \"policy-x/a b\": name part must consist of \
                 alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                 character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                ]),
            ),
            (
                policy(json!({"matchConditions": [{}]})),
                texts([
                    "spec.matchConditions[0].expression: Required value",
                    "spec.matchConditions[0].name: Required value",
                ]),
            ),
        ],
    );
}

#[test]
fn the_status_of_a_policy_is_a_subresource() {
    assert_eq!(
        update("ValidatingAdmissionPolicy", policy(json!({})), policy(json!({"failurePolicy": "x"}))),
        Err(texts(["spec.failurePolicy: Unsupported value: \"x\": supported values: \"Fail\", \"Ignore\"",]))
    );
    assert_eq!(
        update("ValidatingAdmissionPolicy", policy(json!({})), policy(json!({"failurePolicy": "Ignore"}))),
        Ok(json!({
            "metadata": {"name": "policy-x"},
            "spec": {
                "matchConstraints": {
                    "namespaceSelector": {}, "objectSelector": {},
                    "resourceRules": [
                        {
                            "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                            "resources": ["configmaps"], "scope": "*",
                        },
                    ],
                    "matchPolicy": "Equivalent",
                },
                "validations": [{"expression": "true"}], "failurePolicy": "Ignore",
            },
            "status": {},
        }))
    );
    assert_eq!(
        write_subresource(
            "ValidatingAdmissionPolicy",
            "status",
            policy(json!({})),
            json!({
                "metadata": {"name": "policy-x"},
                "spec": {
                    "matchConstraints": {
                        "resourceRules": [
                            {
                                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                                "resources": ["configmaps"],
                            },
                        ],
                    },
                    "validations": [{"expression": "true"}], "failurePolicy": "Ignore",
                },
                "status": {
                    "conditions": [
                        {
                            "type": "a", "status": "True", "reason": "R", "message": "",
                            "lastTransitionTime": "2020-01-01T00:00:00Z",
                        },
                    ],
                },
            })
        ),
        Ok(json!({
            "metadata": {"name": "policy-x"},
            "spec": {
                "matchConstraints": {
                    "namespaceSelector": {}, "objectSelector": {},
                    "resourceRules": [
                        {
                            "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                            "resources": ["configmaps"], "scope": "*",
                        },
                    ],
                    "matchPolicy": "Equivalent",
                },
                "validations": [{"expression": "true"}], "failurePolicy": "Fail",
            },
            "status": {
                "conditions": [
                    {
                        "type": "a", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z",
                        "reason": "R", "message": "",
                    },
                ],
            },
        }))
    );
    assert_eq!(
        write_subresource(
            "ValidatingAdmissionPolicy",
            "status",
            policy(json!({})),
            json!({
                "metadata": {"name": "policy-x"},
                "spec": {
                    "matchConstraints": {
                        "resourceRules": [
                            {
                                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                                "resources": ["configmaps"],
                            },
                        ],
                    },
                    "validations": [{"expression": "true"}],
                },
                "status": {
                    "typeChecking": {"expressionWarnings": [{"fieldRef": "", "warning": ""}]},
                    "conditions": [
                        {
                            "type": "a", "status": "True", "reason": "R", "message": "",
                            "lastTransitionTime": "2020-01-01T00:00:00Z",
                        },
                        {
                            "type": "a", "status": "x", "reason": "1", "message": "",
                            "lastTransitionTime": null, "observedGeneration": -1,
                        },
                        {
                            "type": "", "status": "False", "reason": "", "message": "",
                            "lastTransitionTime": "2020-01-01T00:00:00Z",
                        },
                    ],
                },
            })
        ),
        Err(texts([
            "status.typeChecking.expressionWarnings[0].warning: Required value",
            "status.typeChecking.expressionWarnings[0].fieldRef: Required value",
            "status.conditions[1].type: Duplicate value: \"a\"",
            "status.conditions[1].status: Unsupported value: \"x\": supported values: \"False\", \"True\", \
             \"Unknown\"",
            "status.conditions[1].observedGeneration: Invalid value: -1: must be greater than or equal to \
             zero",
            "status.conditions[1].lastTransitionTime: Required value",
            "status.conditions[1].reason: Invalid value: \"1\": a condition reason must start with \
             alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and \
             must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  \
             or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
             '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
            "status.conditions[2].type: Invalid value: \"\": name part must be non-empty",
            "status.conditions[2].type: Invalid value: \"\": name part must consist of alphanumeric \
             characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
             'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            "status.conditions[2].reason: Required value",
        ]))
    );
}

#[test]
fn a_binding_names_a_policy_and_actions() {
    made(
        "ValidatingAdmissionPolicyBinding",
        vec![
            (
                binding(json!({})),
                json!({
                    "metadata": {"name": "policy-x"},
                    "spec": {"policyName": "p", "validationActions": ["Deny"]},
                }),
            ),
            (
                binding(json!({
                    "paramRef": {"name": "x", "namespace": "y", "parameterNotFoundAction": "Deny"},
                    "matchResources": {
                        "resourceRules": [
                            {
                                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                                "resources": ["configmaps"],
                            },
                        ],
                    },
                    "validationActions": ["Warn", "Audit"],
                })),
                json!({
                    "metadata": {"name": "policy-x"},
                    "spec": {
                        "policyName": "p",
                        "paramRef": {"name": "x", "namespace": "y", "parameterNotFoundAction": "Deny"},
                        "matchResources": {
                            "namespaceSelector": {}, "objectSelector": {},
                            "resourceRules": [
                                {
                                    "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                                    "resources": ["configmaps"], "scope": "*",
                                },
                            ],
                            "matchPolicy": "Equivalent",
                        },
                        "validationActions": ["Warn", "Audit"],
                    },
                }),
            ),
        ],
    );
    refused(
        "ValidatingAdmissionPolicyBinding",
        vec![
            (
                json!({"metadata": {"name": "policy-x"}, "spec": {}}),
                texts([
                    "spec.policyName: Required value",
                    "spec.validationActions: Required value: at least one validation action is required",
                ]),
            ),
            (
                binding(json!({"policyName": "A b", "validationActions": ["Deny", "Warn", "x", "Deny"]})),
                texts([
                    "spec.policyName: Invalid value: \"A b\": a lowercase RFC 1123 subdomain must consist of \
                 lower case alphanumeric characters, '-' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                    "spec.validationActions[2]: Unsupported value: \"x\": supported values: \"Audit\", \
                 \"Deny\", \"Warn\"",
                    "spec.validationActions[3]: Duplicate value: \"Deny\"",
                    "spec.validationActions: Invalid value: [\"Deny\",\"Warn\",\"x\",\"Deny\"]: must not \
                 contain both Deny and Warn (repeating the same validation failure information in the API \
                 response and headers serves no purpose)",
                ]),
            ),
            (
                binding(json!({"paramRef": {}})),
                texts([
                    "spec.paramRef: Required value: one of name or selector must be specified",
                    "spec.paramRef.parameterNotFoundAction: Required value",
                ]),
            ),
            (
                binding(json!({
                    "paramRef": {
                        "name": "a/b", "selector": {"matchLabels": {"": "x"}},
                        "parameterNotFoundAction": "x",
                    },
                })),
                texts([
                    "spec.paramRef.name: Invalid value: \"a/b\": may not contain '/'",
                    "spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
                    "spec.paramRef.selector.matchLabels: Invalid value: \"\": name part must be non-empty",
                    "spec.paramRef.selector.matchLabels: Invalid value: \"\": name part must consist of \
                 alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                 character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                    "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
                    "spec.paramRef.parameterNotFoundAction: Unsupported value: \"x\": supported values: \
                 \"Deny\", \"Allow\"",
                ]),
            ),
            (
                binding(json!({"matchResources": {"matchPolicy": "x"}})),
                texts(["spec.matchResources.matchPolicy: Unsupported value: \"x\": supported values: \
                 \"Equivalent\", \"Exact\""]),
            ),
        ],
    );
    assert_eq!(
        update("ValidatingAdmissionPolicyBinding", binding(json!({})), binding(json!({"policyName": ""}))),
        Err(texts(["spec.policyName: Required value"]))
    );
}
