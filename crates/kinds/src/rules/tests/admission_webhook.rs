//! Webhook configurations.

use serde_json::json;

use super::*;

/// A configuration of one webhook with these fields added.
fn webhook(fields: Value) -> Value {
    let mut webhook = json!({
        "name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"url": "https://x"},
    });
    for (key, value) in fields.as_object().unwrap() {
        webhook[key] = value.clone();
    }
    json!({"webhooks": [webhook]})
}

#[test]
fn webhook_defaults_are_fail_and_match_everything() {
    made(
        "ValidatingWebhookConfiguration",
        vec![
            (json!({}), json!({"metadata": {}})),
            (
                webhook(json!({})),
                json!({
                    "metadata": {},
                    "webhooks": [
                        {
                            "name": "a.b.c", "clientConfig": {"url": "https://x"}, "failurePolicy": "Fail",
                            "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
                            "sideEffects": "None", "timeoutSeconds": 10, "admissionReviewVersions": ["v1"],
                        },
                    ],
                }),
            ),
            (
                webhook(
                    json!({"clientConfig": {"service": {"name": "n", "namespace": "s", "path": "/a/b.c/"}}}),
                ),
                json!({
                    "metadata": {},
                    "webhooks": [
                        {
                            "name": "a.b.c",
                            "clientConfig": {
                                "service": {"namespace": "s", "name": "n", "path": "/a/b.c/", "port": 443},
                            },
                            "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {},
                            "objectSelector": {}, "sideEffects": "None", "timeoutSeconds": 10,
                            "admissionReviewVersions": ["v1"],
                        },
                    ],
                }),
            ),
            (
                json!({
                    "webhooks": [
                        {
                            "name": "a.b.c", "admissionReviewVersions": ["v1", "v1beta1", "v9"],
                            "sideEffects": "NoneOnDryRun", "clientConfig": {"url": "https://x"},
                            "rules": [
                                {
                                    "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
                                    "resources": ["*"], "scope": "Cluster",
                                },
                                {
                                    "operations": ["CREATE", "UPDATE"], "apiGroups": ["*"],
                                    "apiVersions": ["*"], "resources": ["pods", "pods/status", "*/scale"],
                                },
                            ],
                            "failurePolicy": "Ignore", "matchPolicy": "Exact", "timeoutSeconds": 30,
                            "namespaceSelector": {"matchLabels": {"a": "b"}},
                            "objectSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                            "matchConditions": [
                                {"name": "a", "expression": "true"},
                                {"name": "x.y/z", "expression": "true"},
                            ],
                        },
                        {
                            "name": "d.e.f", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                            "clientConfig": {"url": "https://x"},
                        },
                    ],
                }),
                json!({
                    "metadata": {},
                    "webhooks": [
                        {
                            "name": "a.b.c", "clientConfig": {"url": "https://x"},
                            "rules": [
                                {
                                    "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
                                    "resources": ["*"], "scope": "Cluster",
                                },
                                {
                                    "operations": ["CREATE", "UPDATE"], "apiGroups": ["*"],
                                    "apiVersions": ["*"], "resources": ["pods", "pods/status", "*/scale"],
                                    "scope": "*",
                                },
                            ],
                            "failurePolicy": "Ignore", "matchPolicy": "Exact",
                            "namespaceSelector": {"matchLabels": {"a": "b"}},
                            "objectSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                            "sideEffects": "NoneOnDryRun", "timeoutSeconds": 30,
                            "admissionReviewVersions": ["v1", "v1beta1", "v9"],
                            "matchConditions": [
                                {"name": "a", "expression": "true"},
                                {"name": "x.y/z", "expression": "true"},
                            ],
                        },
                        {
                            "name": "d.e.f", "clientConfig": {"url": "https://x"}, "failurePolicy": "Fail",
                            "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
                            "sideEffects": "None", "timeoutSeconds": 10, "admissionReviewVersions": ["v1"],
                        },
                    ],
                }),
            ),
        ],
    );
}

#[test]
fn webhook_name_review_versions_and_side_effects_are_validated() {
    refused(
        "ValidatingWebhookConfiguration",
        vec![
            (
                json!({"webhooks": [{}]}),
                texts([
                    "webhooks[0].name: Required value",
                    "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
                    "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
                    "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
                ]),
            ),
            (
                json!({
                    "webhooks": [
                        {
                            "name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                            "clientConfig": {"url": "https://x"},
                        },
                        {
                            "name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                            "clientConfig": {"url": "https://x"},
                        },
                    ],
                }),
                texts(["webhooks[1].name: Duplicate value: \"a.b.c\""]),
            ),
            (
                webhook(json!({"name": "a.b"})),
                texts([
                    "webhooks[0].name: Invalid value: \"a.b\": should be a domain with at least three segments \
                 separated by dots",
                ]),
            ),
            (
                webhook(
                    json!({"failurePolicy": "x", "matchPolicy": "y", "sideEffects": "Some", "timeoutSeconds": 31}),
                ),
                texts([
                    "webhooks[0].failurePolicy: Unsupported value: \"x\": supported values: \"Fail\", \
                 \"Ignore\"",
                    "webhooks[0].matchPolicy: Unsupported value: \"y\": supported values: \"Equivalent\", \
                 \"Exact\"",
                    "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \
                 \"NoneOnDryRun\"",
                    "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 \
                 seconds",
                ]),
            ),
            (
                webhook(json!({"admissionReviewVersions": ["v9", "v9", "1"]})),
                texts([
                    "webhooks[0].admissionReviewVersions[1]: Invalid value: \"v9\": duplicate version",
                    "webhooks[0].admissionReviewVersions[2]: Invalid value: \"1\": a DNS-1035 label must \
                 consist of lower case alphanumeric characters or '-', start with an alphabetic character, \
                 and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
                 validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
                    "webhooks[0].admissionReviewVersions: Invalid value: [\"v9\",\"v9\",\"1\"]: must include \
                 at least one of v1, v1beta1",
                ]),
            ),
            (
                webhook(json!({
                    "namespaceSelector": {"matchLabels": {"": "a"}},
                    "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]},
                })),
                texts([
                    "webhooks[0].namespaceSelector.matchLabels: Invalid value: \"\": name part must be \
                 non-empty",
                    "webhooks[0].namespaceSelector.matchLabels: Invalid value: \"\": name part must consist of \
                 alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                 character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                    "webhooks[0].objectSelector.matchExpressions[0].values: Required value: must be specified \
                 when `operator` is 'In' or 'NotIn'",
                ]),
            ),
        ],
    );
}

#[test]
fn webhook_rules_are_complete_and_do_not_overlap() {
    refused(
        "ValidatingWebhookConfiguration",
        vec![
            (
                webhook(json!({"rules": [{}]})),
                texts([
                    "webhooks[0].rules[0].operations: Required value",
                    "webhooks[0].rules[0].apiGroups: Required value",
                    "webhooks[0].rules[0].apiVersions: Required value",
                    "webhooks[0].rules[0].resources: Required value",
                ]),
            ),
            (
                webhook(json!({
                    "rules": [
                        {
                            "operations": ["*", "x"], "apiGroups": ["*", "a"], "apiVersions": ["*", ""],
                            "resources": ["*", "pods"], "scope": "x",
                        },
                    ],
                })),
                texts([
                    "webhooks[0].rules[0].operations: Invalid value: [\"*\",\"x\"]: if '*' is present, must \
                 not specify other operations",
                    "webhooks[0].rules[0].operations[1]: Unsupported value: \"x\": supported values: \"*\", \
                 \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"",
                    "webhooks[0].rules[0].apiGroups: Invalid value: [\"*\",\"a\"]: if '*' is present, must not \
                 specify other API groups",
                    "webhooks[0].rules[0].apiVersions: Invalid value: [\"*\",\"\"]: if '*' is present, must \
                 not specify other API versions",
                    "webhooks[0].rules[0].apiVersions[1]: Required value",
                    "webhooks[0].rules[0].resources: Invalid value: [\"*\",\"pods\"]: if '*' is present, must \
                 not specify other resources without subresources",
                    "webhooks[0].rules[0].scope: Unsupported value: \"x\": supported values: \"*\", \
                 \"Cluster\", \"Namespaced\"",
                ]),
            ),
            (
                webhook(json!({
                    "rules": [
                        {
                            "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
                            "resources": ["", "pods/*", "pods/status", "*/scale", "a/scale"],
                        },
                        {
                            "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
                            "resources": ["*/*", "a"],
                        },
                        {
                            "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
                            "resources": ["pods", "*"],
                        },
                    ],
                })),
                texts([
                    "webhooks[0].rules[0].resources[0]: Required value",
                    "webhooks[0].rules[0].resources[2]: Invalid value: \"pods/status\": if 'pods/*' is \
                 present, must not specify pods/status",
                    "webhooks[0].rules[0].resources[4]: Invalid value: \"a/scale\": if '*/scale' is present, \
                 must not specify a/scale",
                    "webhooks[0].rules[1].resources: Invalid value: [\"*/*\",\"a\"]: if '*/*' is present, must \
                 not specify other resources",
                ]),
            ),
        ],
    );
}

#[test]
fn a_webhook_has_either_a_url_or_a_service() {
    refused(
        "ValidatingWebhookConfiguration",
        vec![
            (
                webhook(json!({"clientConfig": {}})),
                texts([
                    "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
                ]),
            ),
            (
                webhook(
                    json!({"clientConfig": {"url": "https://a", "service": {"name": "a", "namespace": "b"}}}),
                ),
                texts([
                    "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
                ]),
            ),
            (
                webhook(json!({"clientConfig": {"url": "http://x"}})),
                texts([
                    "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL \
                 scheme; desired format: https://host[/path]",
                ]),
            ),
            (
                webhook(json!({"clientConfig": {"url": ""}})),
                texts([
                    "webhooks[0].clientConfig.url: Invalid value: \"\": 'https' is the only allowed URL \
                 scheme; desired format: https://host[/path]",
                    "webhooks[0].clientConfig.url: Invalid value: \"\": host must be specified; desired \
                 format: https://host[/path]",
                ]),
            ),
            (
                webhook(json!({"clientConfig": {"url": "https://"}})),
                texts([
                    "webhooks[0].clientConfig.url: Invalid value: \"\": host must be specified; desired \
                 format: https://host[/path]",
                ]),
            ),
            (
                webhook(json!({"clientConfig": {"url": "https://u:p@x/y?z=1#f"}})),
                texts([
                    "webhooks[0].clientConfig.url: Invalid value: \"u:p\": user information is not permitted \
                 in the URL",
                    "webhooks[0].clientConfig.url: Invalid value: \"f\": fragments are not permitted in the URL",
                    "webhooks[0].clientConfig.url: Invalid value: \"z=1\": query parameters are not permitted \
                 in the URL",
                ]),
            ),
            (
                webhook(json!({"clientConfig": {"url": ":foo"}})),
                texts([
                    "webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse \":foo\": \
                 missing protocol scheme; desired format: https://host[/path]",
                ]),
            ),
            (
                webhook(json!({"clientConfig": {"url": "https://a:b"}})),
                texts(["webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse \
                 \"https://a:b\": invalid port \":b\" after host; desired format: https://host[/path]"]),
            ),
            (
                webhook(json!({"clientConfig": {"service": {"name": "", "namespace": "s"}}})),
                texts(["webhooks[0].clientConfig.service.namespace: Required value"]),
            ),
            (
                webhook(json!({"clientConfig": {"service": {"name": "n", "namespace": ""}}})),
                texts(["webhooks[0].clientConfig.service.name: Required value"]),
            ),
            (
                webhook(json!({"clientConfig": {"service": {"name": "n", "namespace": "s", "port": 0}}})),
                texts([
                    "webhooks[0].clientConfig.service.port: Invalid value: 0: port is not valid: must be \
                 between 1 and 65535, inclusive",
                ]),
            ),
            (
                webhook(json!({"clientConfig": {"service": {"name": "n", "namespace": "s", "path": "a/b"}}})),
                texts([
                    "webhooks[0].clientConfig.service.path: Invalid value: \"a/b\": must start with a '/'",
                    "webhooks[0].clientConfig.service.path: Invalid value: \"a/b\": segment[0] may not be empty",
                ]),
            ),
            (
                webhook(json!({"clientConfig": {"service": {"name": "n", "namespace": "s", "path": "//"}}})),
                texts([
                    "webhooks[0].clientConfig.service.path: Invalid value: \"//\": segment[0] may not be empty",
                ]),
            ),
            (
                webhook(
                    json!({"clientConfig": {"service": {"name": "n", "namespace": "s", "path": "/a//b"}}}),
                ),
                texts([
                    "webhooks[0].clientConfig.service.path: Invalid value: \"/a//b\": segment[1] may not be \
                 empty",
                ]),
            ),
            (
                webhook(
                    json!({"clientConfig": {"service": {"name": "n", "namespace": "s", "path": "/A/b_"}}}),
                ),
                texts([
                    "webhooks[0].clientConfig.service.path: Invalid value: \"/A/b_\": segment[0]: a lowercase \
                 RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                 must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                 validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                    "webhooks[0].clientConfig.service.path: Invalid value: \"/A/b_\": segment[1]: a lowercase \
                 RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                 must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                 validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                ]),
            ),
        ],
    );
}

#[test]
fn match_conditions_have_names_and_expressions() {
    refused(
        "ValidatingWebhookConfiguration",
        vec![(
            webhook(json!({
                "matchConditions": [
                    {}, {"name": "a b", "expression": "true"}, {"name": "a", "expression": "true"},
                    {"name": "a", "expression": "true"}, {"name": "b", "expression": " "},
                ],
            })),
            texts([
                "webhooks[0].matchConditions[0].expression: Required value",
                "webhooks[0].matchConditions[0].name: Required value",
                "webhooks[0].matchConditions[1].name: Invalid value: \"a b\": name part must consist of \
                 alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                 character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                "webhooks[0].matchConditions[3].name: Duplicate value: \"a\"",
                "webhooks[0].matchConditions[4].expression: Required value",
            ]),
        )],
    );
}

#[test]
fn webhooks_are_validated_on_update() {
    assert_eq!(
        update("ValidatingWebhookConfiguration", webhook(json!({})), webhook(json!({"timeoutSeconds": 31}))),
        Err(texts([
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 \
             seconds",
        ]))
    );
    assert_eq!(
        update("ValidatingWebhookConfiguration", webhook(json!({})), webhook(json!({"timeoutSeconds": 3}))),
        Ok(json!({
            "metadata": {},
            "webhooks": [
                {
                    "name": "a.b.c", "clientConfig": {"url": "https://x"}, "failurePolicy": "Fail",
                    "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
                    "sideEffects": "None", "timeoutSeconds": 3, "admissionReviewVersions": ["v1"],
                },
            ],
        }))
    );
}

#[test]
fn a_mutating_webhook_is_not_reinvoked_by_default() {
    made(
        "MutatingWebhookConfiguration",
        vec![
            (
                webhook(json!({})),
                json!({
                    "metadata": {},
                    "webhooks": [
                        {
                            "name": "a.b.c", "clientConfig": {"url": "https://x"}, "failurePolicy": "Fail",
                            "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
                            "sideEffects": "None", "timeoutSeconds": 10, "admissionReviewVersions": ["v1"],
                            "reinvocationPolicy": "Never",
                        },
                    ],
                }),
            ),
            (
                webhook(json!({"reinvocationPolicy": "IfNeeded"})),
                json!({
                    "metadata": {},
                    "webhooks": [
                        {
                            "name": "a.b.c", "clientConfig": {"url": "https://x"}, "failurePolicy": "Fail",
                            "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
                            "sideEffects": "None", "timeoutSeconds": 10, "admissionReviewVersions": ["v1"],
                            "reinvocationPolicy": "IfNeeded",
                        },
                    ],
                }),
            ),
        ],
    );
    refused(
        "MutatingWebhookConfiguration",
        vec![(
            webhook(json!({"reinvocationPolicy": "x", "clientConfig": {}})),
            texts([
                "webhooks[0].reinvocationPolicy: Unsupported value: \"x\": supported values: \"IfNeeded\", \
                 \"Never\"",
                "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
            ]),
        )],
    );
}
