//! FlowSchemas.

use serde_json::json;

use super::*;

/// A FlowSchema with these fields added to its spec.
fn schema(fields: Value) -> Value {
    let mut spec = json!({"priorityLevelConfiguration": {"name": "global-default"}});
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    json!({"metadata": {"name": "policy-x"}, "spec": spec})
}

#[test]
fn the_default_precedence_of_a_flow_schema_is_1000() {
    made(
        "FlowSchema",
        vec![
            (
                schema(json!({})),
                json!({
                    "metadata": {"name": "policy-x"},
                    "spec": {
                        "priorityLevelConfiguration": {"name": "global-default"},
                        "matchingPrecedence": 1000,
                    },
                    "status": {},
                }),
            ),
            (
                schema(json!({
                    "matchingPrecedence": 10000, "distinguisherMethod": {"type": "ByUser"},
                    "rules": [
                        {
                            "subjects": [
                                {"kind": "User", "user": {"name": "u"}},
                                {"kind": "Group", "group": {"name": "g"}},
                                {
                                    "kind": "ServiceAccount",
                                    "serviceAccount": {"name": "*", "namespace": "n"},
                                },
                            ],
                            "resourceRules": [
                                {
                                    "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
                                    "clusterScope": true, "namespaces": ["*"],
                                },
                                {
                                    "verbs": ["get"], "apiGroups": ["*"], "resources": ["*"],
                                    "clusterScope": false, "namespaces": ["a"],
                                },
                            ],
                            "nonResourceRules": [
                                {"verbs": ["*"], "nonResourceURLs": ["*"]},
                                {"verbs": ["get"], "nonResourceURLs": ["/a/*", "/b"]},
                            ],
                        },
                    ],
                })),
                json!({
                    "metadata": {"name": "policy-x"},
                    "spec": {
                        "priorityLevelConfiguration": {"name": "global-default"},
                        "matchingPrecedence": 10000, "distinguisherMethod": {"type": "ByUser"},
                        "rules": [
                            {
                                "subjects": [
                                    {"kind": "User", "user": {"name": "u"}},
                                    {"kind": "Group", "group": {"name": "g"}},
                                    {
                                        "kind": "ServiceAccount",
                                        "serviceAccount": {"namespace": "n", "name": "*"},
                                    },
                                ],
                                "resourceRules": [
                                    {
                                        "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
                                        "clusterScope": true, "namespaces": ["*"],
                                    },
                                    {
                                        "verbs": ["get"], "apiGroups": ["*"], "resources": ["*"],
                                        "namespaces": ["a"],
                                    },
                                ],
                                "nonResourceRules": [
                                    {"verbs": ["*"], "nonResourceURLs": ["*"]},
                                    {"verbs": ["get"], "nonResourceURLs": ["/a/*", "/b"]},
                                ],
                            },
                        ],
                    },
                    "status": {},
                }),
            ),
        ],
    );
}

#[test]
fn flow_schemas_are_refused_for_precedence_method_and_level() {
    refused(
        "FlowSchema",
        vec![
            (
                json!({"metadata": {"name": "policy-x"}, "spec": {}}),
                texts([
                    "spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
                ]),
            ),
            (
                schema(json!({"matchingPrecedence": -1})),
                texts(["spec.matchingPrecedence: Invalid value: -1: must be a positive value"]),
            ),
            (
                schema(json!({
                    "matchingPrecedence": 10001, "distinguisherMethod": {"type": "x"},
                    "priorityLevelConfiguration": {"name": "A b"},
                })),
                texts([
                    "spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000",
                    "spec.distinguisherMethod.type: Unsupported value: {\"Type\":\"x\"}: supported values: \
                 \"ByNamespace\", \"ByUser\"",
                    "spec.priorityLevelConfiguration.name: Invalid value: \"A b\": a lowercase RFC 1123 \
                 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
                 and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                ]),
            ),
            (
                schema(json!({"matchingPrecedence": 1})),
                texts([
                    "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have \
                 matchingPrecedence 1",
                ]),
            ),
        ],
    );
}

#[test]
fn the_rules_of_a_flow_schema_are_validated() {
    refused(
        "FlowSchema",
        vec![
            (
                schema(json!({"rules": [{}]})),
                texts([
                    "spec.rules[0].subjects: Required value: subjects must contain at least one value",
                    "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to \
                 be non-empty",
                ]),
            ),
            (
                schema(json!({
                    "rules": [
                        {
                            "subjects": [
                                {}, {"kind": "User"},
                                {
                                    "kind": "User", "user": {"name": ""}, "group": {"name": "g"},
                                    "serviceAccount": {"name": "s", "namespace": "n"},
                                },
                                {"kind": "Group", "user": {"name": "u"}},
                                {"kind": "Group", "group": {"name": ""}},
                                {"kind": "ServiceAccount", "user": {"name": "u"}, "group": {"name": "g"}},
                                {"kind": "ServiceAccount", "serviceAccount": {"name": "", "namespace": ""}},
                                {
                                    "kind": "ServiceAccount",
                                    "serviceAccount": {"name": "A b", "namespace": "A.b"},
                                },
                            ],
                            "resourceRules": [
                                {
                                    "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
                                    "clusterScope": true, "namespaces": ["*"],
                                },
                            ],
                        },
                    ],
                })),
                texts([
                    "spec.rules[0].subjects[0].kind: Unsupported value: \"\": supported values: \"Group\", \
                 \"ServiceAccount\", \"User\"",
                    "spec.rules[0].subjects[1].user: Required value: user is required when subject kind is \
                 'User'",
                    "spec.rules[0].subjects[2].user.name: Required value",
                    "spec.rules[0].subjects[2].serviceAccount: Forbidden: serviceAccount is forbidden when \
                 subject kind is not 'ServiceAccount'",
                    "spec.rules[0].subjects[2].group: Forbidden: group is forbidden when subject kind is not \
                 'Group'",
                    "spec.rules[0].subjects[3].group: Required value: group is required when subject kind is \
                 'Group'",
                    "spec.rules[0].subjects[3].user: Forbidden: user is forbidden when subject kind is not \
                 'User'",
                    "spec.rules[0].subjects[4].group.name: Required value",
                    "spec.rules[0].subjects[5].serviceAccount: Required value: serviceAccount is required when \
                 subject kind is 'ServiceAccount'",
                    "spec.rules[0].subjects[5].user: Forbidden: user is forbidden when subject kind is not \
                 'User'",
                    "spec.rules[0].subjects[5].group: Forbidden: group is forbidden when subject kind is not \
                 'Group'",
                    "spec.rules[0].subjects[6].serviceAccount.name: Required value",
                    "spec.rules[0].subjects[6].serviceAccount.namespace: Required value: must specify \
                 namespace for service account",
                    "spec.rules[0].subjects[7].serviceAccount.name: Invalid value: \"A b\": a lowercase RFC \
                 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
                 start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                 validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                    "spec.rules[0].subjects[7].serviceAccount.namespace: Invalid value: \"A.b\": a lowercase \
                 RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                 and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                 validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                ]),
            ),
            (
                schema(json!({
                    "rules": [
                        {
                            "subjects": [{"kind": "User", "user": {"name": "u"}}],
                            "resourceRules": [
                                {"verbs": [], "apiGroups": [], "resources": []},
                                {
                                    "verbs": ["*", "get"], "apiGroups": ["*", "a"],
                                    "resources": ["*", "b"], "clusterScope": true,
                                    "namespaces": ["*", "c"],
                                },
                                {
                                    "verbs": ["foo"], "apiGroups": ["*"], "resources": ["*"],
                                    "clusterScope": true, "namespaces": ["A b"],
                                },
                            ],
                        },
                    ],
                })),
                texts([
                    "spec.rules[0].resourceRules[0].verbs: Required value: verbs must contain at least one \
                 value",
                    "spec.rules[0].resourceRules[0].apiGroups: Required value: resource rules must supply at \
                 least one api group",
                    "spec.rules[0].resourceRules[0].resources: Required value: resource rules must supply at \
                 least one resource",
                    "spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not \
                 cluster scoped must supply at least one namespace",
                    "spec.rules[0].resourceRules[1].verbs: Invalid value: [\"*\",\"get\"]: if '*' is present, \
                 must not specify other verbs",
                    "spec.rules[0].resourceRules[1].apiGroups: Invalid value: [\"*\",\"a\"]: if '*' is \
                 present, must not specify other api groups",
                    "spec.rules[0].resourceRules[1].resources: Invalid value: [\"*\",\"b\"]: if '*' is \
                 present, must not specify other resources",
                    "spec.rules[0].resourceRules[1].namespaces: Invalid value: [\"*\",\"c\"]: if '*' is \
                 present, must not specify other namespaces",
                    "spec.rules[0].resourceRules[2].verbs: Unsupported value: [\"foo\"]: supported values: \
                 \"create\", \"delete\", \"deletecollection\", \"get\", \"list\", \"patch\", \"proxy\", \
                 \"update\", \"watch\"",
                    "spec.rules[0].resourceRules[2].namespaces[0]: Invalid value: \"A b\": each member of this \
                 list must be '*' or a DNS-1123 label; a lowercase RFC 1123 label must consist of lower \
                 case alphanumeric characters or '-', and must start and end with an alphanumeric character \
                 (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                ]),
            ),
            (
                schema(json!({
                    "rules": [
                        {
                            "subjects": [{"kind": "User", "user": {"name": "u"}}],
                            "resourceRules": [
                                {
                                    "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
                                    "clusterScope": true, "namespaces": ["*"],
                                },
                            ],
                            "nonResourceRules": [
                                {"verbs": [], "nonResourceURLs": []},
                                {"verbs": ["*", "get"], "nonResourceURLs": ["*", "/a"]},
                                {
                                    "verbs": ["foo"],
                                    "nonResourceURLs": ["", "/", "a", "/a b", "/a//b", "/*/b", "/a*"],
                                },
                            ],
                        },
                    ],
                })),
                texts([
                    "spec.rules[0].nonResourceRules[0].verbs: Required value: verbs must contain at least one \
                 value",
                    "spec.rules[0].nonResourceRules[0].nonResourceURLs: Required value: nonResourceURLs must \
                 contain at least one value",
                    "spec.rules[0].nonResourceRules[1].verbs: Invalid value: [\"*\",\"get\"]: if '*' is \
                 present, must not specify other verbs",
                    "spec.rules[0].nonResourceRules[1].nonResourceURLs: Invalid value: [\"*\",\"/a\"]: if '*' \
                 is present, must not specify other non-resource URLs",
                    "spec.rules[0].nonResourceRules[2].verbs: Unsupported value: [\"foo\"]: supported values: \
                 \"create\", \"delete\", \"deletecollection\", \"get\", \"list\", \"patch\", \"proxy\", \
                 \"update\", \"watch\"",
                    "spec.rules[0].nonResourceRules[2].nonResourceURLs[0]: Invalid value: \"\": must not be \
                 empty",
                    "spec.rules[0].nonResourceRules[2].nonResourceURLs[2]: Invalid value: \"a\": must start \
                 with slash",
                    "spec.rules[0].nonResourceRules[2].nonResourceURLs[3]: Invalid value: \"/a b\": must not \
                 contain white-space",
                    "spec.rules[0].nonResourceRules[2].nonResourceURLs[4]: Invalid value: \"/a//b\": must not \
                 contain double slash",
                    "spec.rules[0].nonResourceRules[2].nonResourceURLs[5]: Invalid value: \"/*/b\": wildcard \
                 can only do suffix matching",
                    "spec.rules[0].nonResourceRules[2].nonResourceURLs[6]: Invalid value: \"/a*\": wildcard \
                 can only do suffix matching",
                ]),
            ),
        ],
    );
}

#[test]
fn the_status_of_a_flow_schema_is_a_subresource() {
    assert_eq!(
        write_subresource(
            "FlowSchema",
            "status",
            schema(json!({})),
            json!({
                "metadata": {"name": "policy-x"},
                "spec": {"priorityLevelConfiguration": {"name": "global-default"}, "matchingPrecedence": 7},
                "status": {"conditions": [{"type": "Dangling", "status": "x"}]},
            })
        ),
        Ok(json!({
            "metadata": {"name": "policy-x"},
            "spec": {
                "priorityLevelConfiguration": {"name": "global-default"}, "matchingPrecedence": 1000,
            },
            "status": {"conditions": [{"type": "Dangling", "status": "x", "lastTransitionTime": null}]},
        }))
    );
    assert_eq!(
        write_subresource(
            "FlowSchema",
            "status",
            schema(json!({})),
            json!({
                "metadata": {"name": "policy-x"},
                "spec": {"priorityLevelConfiguration": {"name": "global-default"}},
                "status": {"conditions": [{"type": "a"}, {"type": "a"}, {}]},
            })
        ),
        Err(texts([
            "status.conditions[1].type: Duplicate value: \"a\"",
            "status.conditions[2].type: Required value",
        ]))
    );
    assert_eq!(
        update("FlowSchema", schema(json!({})), schema(json!({"matchingPrecedence": -1}))),
        Err(texts(["spec.matchingPrecedence: Invalid value: -1: must be a positive value"]))
    );
}
