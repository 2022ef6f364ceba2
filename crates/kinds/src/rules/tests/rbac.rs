//! Roles and bindings.

use serde_json::json;

use super::*;

#[test]
fn a_role_may_be_empty_but_its_rules_must_be_complete() {
    made(
        "Role",
        vec![
            (json!({}), json!({"metadata": {}, "rules": null})),
            (
                json!({
                    "rules": [
                        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["x"]},
                    ],
                }),
                json!({
                    "metadata": {},
                    "rules": [
                        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]},
                    ],
                }),
            ),
        ],
    );
    refused(
        "Role",
        vec![(
            json!({
                "rules": [
                    {}, {"verbs": ["get"], "nonResourceURLs": ["/x"]},
                    {"verbs": ["get"], "nonResourceURLs": ["/x"], "apiGroups": [""]},
                    {"apiGroups": [], "resources": [], "verbs": []},
                ],
            }),
            texts([
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
                "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to \
                 non-resource URLs",
                "rules[2].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to \
                 non-resource URLs",
                "rules[2].nonResourceURLs: Invalid value: [\"/x\"]: rules cannot apply to both regular \
                 resources and non-resource URLs",
                "rules[3].verbs: Required value: verbs must contain at least one value",
                "rules[3].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[3].resources: Required value: resource rules must supply at least one resource",
            ]),
        )],
    );
    assert_eq!(
        update(
            "Role",
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": []}]})
        ),
        Err(texts(["rules[0].verbs: Required value: verbs must contain at least one value"]))
    );
}

#[test]
fn a_cluster_role_may_name_urls_and_other_roles() {
    made(
        "ClusterRole",
        vec![
            (
                json!({
                    "rules": [
                        {"verbs": ["get"], "nonResourceURLs": ["/x"]},
                        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
                    ],
                }),
                json!({
                    "metadata": {},
                    "rules": [
                        {"verbs": ["get"], "nonResourceURLs": ["/x"]},
                        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
                    ],
                }),
            ),
            (
                json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}),
                json!({
                    "metadata": {}, "rules": null,
                    "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
                }),
            ),
        ],
    );
    refused(
        "ClusterRole",
        vec![
            (
                json!({
                    "rules": [
                        {"verbs": ["get"], "nonResourceURLs": ["/x"], "resourceNames": ["a"]},
                        {"verbs": ["get"], "resources": ["pods"]},
                    ],
                }),
                texts([
                    "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: rules cannot apply to both regular \
                 resources and non-resource URLs",
                    "rules[1].apiGroups: Required value: resource rules must supply at least one api group",
                ]),
            ),
            (
                json!({"aggregationRule": {}}),
                texts([
                    "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector \
                 required if aggregationRule is non-nil",
                ]),
            ),
            (
                json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a b": "c d"}}]}}),
                texts([
                    "aggregationRule.clusterRoleSelectors[0].matchLabels: Invalid value: \"a b\": name part \
                 must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                 validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                    "aggregationRule.clusterRoleSelectors[0].matchLabels: Invalid value: \"c d\": a valid \
                 label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                 must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
                 '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
                    "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.",
                ]),
            ),
            (
                json!({
                    "aggregationRule": {
                        "clusterRoleSelectors": [
                            {},
                            {
                                "matchExpressions": [
                                    {"key": "a b", "operator": "In", "values": ["c d"]},
                                    {"key": "a", "operator": "In"},
                                    {"key": "a", "operator": "Exists", "values": ["x"]},
                                    {"key": "a", "operator": "Foo"},
                                ],
                            },
                        ],
                    },
                }),
                texts([
                    "aggregationRule.clusterRoleSelectors[1].matchExpressions[0].key: Invalid value: \"a b\": \
                 name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                 with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used \
                 for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                    "aggregationRule.clusterRoleSelectors[1].matchExpressions[0].values[0]: Invalid value: \"c \
                 d\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
                 or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
                 'my_value',  or '12345', regex used for validation is \
                 '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
                    "aggregationRule.clusterRoleSelectors[1].matchExpressions[1].values: Required value: must \
                 be specified when `operator` is 'In' or 'NotIn'",
                    "aggregationRule.clusterRoleSelectors[1].matchExpressions[2].values: Forbidden: may not be \
                 specified when `operator` is 'Exists' or 'DoesNotExist'",
                    "aggregationRule.clusterRoleSelectors[1].matchExpressions[3].operator: Invalid value: \
                 \"Foo\": not a valid selector operator",
                    "aggregationRule.clusterRoleSelectors[1]: Invalid value: null: invalid label selector.",
                ]),
            ),
        ],
    );
    assert_eq!(
        update(
            "ClusterRole",
            json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}),
            json!({"aggregationRule": {"clusterRoleSelectors": []}})
        ),
        Err(texts([
            "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector \
             required if aggregationRule is non-nil",
        ]))
    );
}

#[test]
fn a_role_binding_refers_to_a_role_and_names_subjects() {
    made(
        "RoleBinding",
        vec![
            (
                json!({"roleRef": {"kind": "Role", "name": "r"}}),
                json!({
                    "metadata": {},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
                }),
            ),
            (
                json!({
                    "roleRef": {"kind": "ClusterRole", "name": "r"},
                    "subjects": [
                        {"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"},
                        {"kind": "ServiceAccount", "name": "s"},
                        {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
                    ],
                }),
                json!({
                    "metadata": {},
                    "subjects": [
                        {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"},
                        {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "g"},
                        {"kind": "ServiceAccount", "name": "s"},
                        {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
                    ],
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
                }),
            ),
        ],
    );
    refused(
        "RoleBinding",
        vec![
            (
                json!({}),
                texts([
                    "roleRef.kind: Unsupported value: \"\": supported values: \"Role\", \"ClusterRole\"",
                    "roleRef.name: Required value",
                ]),
            ),
            (
                json!({"roleRef": {"kind": "Foo", "name": "a/b", "apiGroup": "x"}}),
                texts([
                    "roleRef.apiGroup: Unsupported value: \"x\": supported values: \
                 \"rbac.authorization.k8s.io\"",
                    "roleRef.kind: Unsupported value: \"Foo\": supported values: \"Role\", \"ClusterRole\"",
                    "roleRef.name: Invalid value: \"a/b\": may not contain '/'",
                ]),
            ),
            (
                json!({
                    "roleRef": {"kind": "Role", "name": "r"},
                    "subjects": [
                        {}, {"kind": "User", "name": "u", "apiGroup": "x"},
                        {"kind": "Group", "apiGroup": "y"},
                        {"kind": "ServiceAccount", "name": "S t", "apiGroup": "x"},
                        {"kind": "ServiceAccount"}, {"kind": "Foo", "name": "a"},
                    ],
                }),
                texts([
                    "subjects[0].name: Required value",
                    "subjects[0].kind: Unsupported value: \"\": supported values: \"ServiceAccount\", \
                 \"User\", \"Group\"",
                    "subjects[1].apiGroup: Unsupported value: \"x\": supported values: \
                 \"rbac.authorization.k8s.io\"",
                    "subjects[2].name: Required value",
                    "subjects[2].apiGroup: Unsupported value: \"y\": supported values: \
                 \"rbac.authorization.k8s.io\"",
                    "subjects[3].name: Invalid value: \"S t\": a lowercase RFC 1123 subdomain must consist of \
                 lower case alphanumeric characters, '-' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                    "subjects[3].apiGroup: Unsupported value: \"x\": supported values: \"\"",
                    "subjects[4].name: Required value",
                    "subjects[5].kind: Unsupported value: \"Foo\": supported values: \"ServiceAccount\", \
                 \"User\", \"Group\"",
                ]),
            ),
        ],
    );
    assert_eq!(
        update(
            "RoleBinding",
            json!({"roleRef": {"kind": "Role", "name": "r"}}),
            json!({"roleRef": {"kind": "Role", "name": "other"}})
        ),
        Err(texts(["roleRef: Invalid value: \
             {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"other\"}: cannot \
             change roleRef",]))
    );
    assert_eq!(
        update(
            "RoleBinding",
            json!({"roleRef": {"kind": "Role", "name": "r"}}),
            json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]})
        ),
        Ok(json!({
            "metadata": {},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        }))
    );
}

#[test]
fn a_cluster_role_binding_refers_to_a_cluster_role() {
    made(
        "ClusterRoleBinding",
        vec![(
            json!({
                "roleRef": {"kind": "ClusterRole", "name": "r"},
                "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "n"}],
            }),
            json!({
                "metadata": {},
                "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "n"}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
            }),
        )],
    );
    refused(
        "ClusterRoleBinding",
        vec![
            (
                json!({"roleRef": {"kind": "Role", "name": "r"}}),
                texts(["roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\""]),
            ),
            (
                json!({
                    "roleRef": {"kind": "ClusterRole", "name": "r"},
                    "subjects": [{"kind": "ServiceAccount", "name": "s"}],
                }),
                texts(["subjects[0].namespace: Required value"]),
            ),
        ],
    );
    assert_eq!(
        update(
            "ClusterRoleBinding",
            json!({"roleRef": {"kind": "ClusterRole", "name": "r"}}),
            json!({"roleRef": {"kind": "ClusterRole", "name": "other"}})
        ),
        Err(texts(["roleRef: Invalid value: \
             {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"ClusterRole\",\"Name\":\"other\"}: \
             cannot change roleRef",]))
    );
}
