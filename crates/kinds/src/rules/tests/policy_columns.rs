//! Tables of policies, certificates and devices.

use serde_json::json;

use super::columns::{NAME, headings, rows, text, wide};

#[test]
fn columns_are_those_of_kube_apiserver() {
    assert_eq!(headings("Role"), [NAME, ("Created At", "date", "", 0)]);
    assert_eq!(
        headings("RoleBinding"),
        [NAME, text("Role"), text("Age"), wide("Users"), wide("Groups"), wide("ServiceAccounts")]
    );
    assert_eq!(
        headings("ClusterRoleBinding"),
        [NAME, text("Role"), text("Age"), wide("Users"), wide("Groups"), wide("ServiceAccounts")]
    );
    assert_eq!(
        headings("ValidatingWebhookConfiguration"),
        [NAME, ("Webhooks", "integer", "", 0), text("Age")]
    );
    assert_eq!(
        headings("ValidatingAdmissionPolicy"),
        [NAME, ("Validations", "integer", "", 0), text("ParamKind"), text("Age")]
    );
    assert_eq!(
        headings("ValidatingAdmissionPolicyBinding"),
        [NAME, text("PolicyName"), text("ParamRef"), text("Age")]
    );
    assert_eq!(headings("ResourceQuota"), [NAME, text("Request"), text("Limit"), text("Age")]);
    assert_eq!(headings("LimitRange"), [NAME, ("Created At", "date", "", 0)]);
    assert_eq!(
        headings("CertificateSigningRequest"),
        [
            NAME,
            text("Age"),
            text("SignerName"),
            text("Requestor"),
            text("RequestedDuration"),
            text("Condition")
        ]
    );
    assert_eq!(
        headings("FlowSchema"),
        [
            NAME,
            text("PriorityLevel"),
            text("MatchingPrecedence"),
            text("DistinguisherMethod"),
            text("Age"),
            text("MissingPL")
        ]
    );
    assert_eq!(
        headings("PriorityLevelConfiguration"),
        [
            NAME,
            text("Type"),
            text("NominalConcurrencyShares"),
            text("Queues"),
            text("HandSize"),
            text("QueueLengthLimit"),
            text("Age")
        ]
    );
    assert_eq!(headings("RuntimeClass"), [NAME, text("Handler"), text("Age")]);
    assert_eq!(headings("APIService"), [NAME, text("Service"), text("Available"), text("Age")]);
    assert_eq!(headings("DeviceClass"), [NAME, text("Age")]);
    assert_eq!(headings("ResourceClaim"), [NAME, text("State"), text("Age")]);
    assert_eq!(headings("ResourceClaimTemplate"), [NAME, text("Age")]);
    assert_eq!(headings("ResourceSlice"), [NAME, text("Node"), text("Driver"), text("Pool"), text("Age")]);
}

#[test]
fn cells_are_those_of_kube_apiserver() {
    rows(vec![
        (
            "Role",
            json!({"metadata": {"name": "policy-x", "creationTimestamp": "2026-11-16T00:14:47Z"}}),
            json!(["policy-x", "2026-11-16T00:14:47Z"]),
        ),
        (
            "RoleBinding",
            json!({
                "metadata": {"name": "policy-x", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "subjects": [
                    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"},
                    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "v"},
                    {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "g"},
                    {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
                ],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            }),
            json!(["policy-x", "Role/r", "5m21s", "u, v", "g", "n/s"]),
        ),
        (
            "ClusterRoleBinding",
            json!({
                "metadata": {"name": "policy-x", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
            }),
            json!(["policy-x", "ClusterRole/r", "5m21s", "", "", ""]),
        ),
        (
            "ValidatingWebhookConfiguration",
            json!({"metadata": {"name": "policy-x", "creationTimestamp": "2026-11-16T00:14:47Z"}}),
            json!(["policy-x", 0, "5m21s"]),
        ),
        (
            "ValidatingAdmissionPolicy",
            json!({
                "metadata": {"name": "policy-x", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "spec": {
                    "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                    "matchConstraints": {
                        "namespaceSelector": {}, "objectSelector": {},
                        "resourceRules": [
                            {
                                "operations": ["CREATE"], "apiGroups": ["x.example.com"],
                                "apiVersions": ["v1"], "resources": ["foos"], "scope": "*",
                            },
                        ],
                        "matchPolicy": "Equivalent",
                    },
                    "validations": [{"expression": "true"}], "failurePolicy": "Fail",
                },
                "status": {},
            }),
            json!(["policy-x", 1, "v1/ConfigMap", "5m21s"]),
        ),
        (
            "ValidatingAdmissionPolicyBinding",
            json!({
                "metadata": {"name": "policy-x", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "spec": {
                    "policyName": "p", "paramRef": {"name": "x", "parameterNotFoundAction": "Deny"},
                    "validationActions": ["Deny"],
                },
            }),
            json!(["policy-x", "p", "*/x", "5m21s"]),
        ),
        (
            "ResourceQuota",
            json!({
                "metadata": {"name": "policy-x", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "spec": {},
                "status": {"hard": {"cpu": "1", "limits.cpu": "2", "pods": "5"}, "used": {"pods": "1"}},
            }),
            json!(["policy-x", "cpu: 0/1, pods: 1/5", "limits.cpu: 0/2", "5m21s"]),
        ),
        (
            "LimitRange",
            json!({
                "metadata": {"name": "policy-x", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "spec": {"limits": null},
            }),
            json!(["policy-x", "2026-11-16T00:14:47Z"]),
        ),
        (
            "CertificateSigningRequest",
            json!({
                "metadata": {"name": "policy-x", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "spec": {"signerName": "example.com/x", "expirationSeconds": 86400, "username": "admin"},
                "status": {"conditions": [{"type": "Failed", "status": "True"}], "certificate": "eA=="},
            }),
            json!(["policy-x", "5m21s", "example.com/x", "admin", "24h", "Pending,Failed,Issued"]),
        ),
        (
            "FlowSchema",
            json!({
                "metadata": {"name": "exempt", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "spec": {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 1},
                "status": {"conditions": [{"type": "Dangling", "status": "False", "reason": "Found"}]},
            }),
            json!(["exempt", "exempt", 1, "<none>", "5m21s", "False"]),
        ),
        (
            "FlowSchema",
            json!({
                "metadata": {"name": "catch-all", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "spec": {
                    "priorityLevelConfiguration": {"name": "catch-all"}, "matchingPrecedence": 10000,
                    "distinguisherMethod": {"type": "ByUser"},
                },
                "status": {"conditions": [{"type": "Dangling", "status": "False", "reason": "Found"}]},
            }),
            json!(["catch-all", "catch-all", 10000, "ByUser", "5m21s", "False"]),
        ),
        (
            "PriorityLevelConfiguration",
            json!({
                "metadata": {"name": "exempt", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "spec": {
                    "type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0},
                },
                "status": {},
            }),
            json!(["exempt", "Exempt", "<none>", "<none>", "<none>", "<none>", "5m21s"]),
        ),
        (
            "PriorityLevelConfiguration",
            json!({
                "metadata": {"name": "system", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "spec": {
                    "type": "Limited",
                    "limited": {
                        "nominalConcurrencyShares": 30,
                        "limitResponse": {
                            "type": "Queue",
                            "queuing": {"queues": 64, "handSize": 6, "queueLengthLimit": 50},
                        },
                        "lendablePercent": 33,
                    },
                },
                "status": {},
            }),
            json!(["system", "Limited", 30, 64, 6, 50, "5m21s"]),
        ),
        (
            "RuntimeClass",
            json!({
                "metadata": {"name": "policy-x", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "handler": "h",
            }),
            json!(["policy-x", "h", "5m21s"]),
        ),
        (
            "APIService",
            json!({
                "metadata": {"name": "v1.", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "spec": {"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1},
                "status": {"conditions": [{"type": "Available", "status": "True", "reason": "Local"}]},
            }),
            json!(["v1.", "Local", "True", "5m21s"]),
        ),
        (
            "DeviceClass",
            json!({"metadata": {"name": "policy-x", "creationTimestamp": "2026-11-16T00:14:47Z"}, "spec": {}}),
            json!(["policy-x", "5m21s"]),
        ),
        (
            "ResourceClaim",
            json!({
                "metadata": {"name": "policy-x", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "spec": {"devices": {"requests": null}}, "status": {},
            }),
            json!(["policy-x", "pending", "5m21s"]),
        ),
        (
            "ResourceClaimTemplate",
            json!({
                "metadata": {"name": "policy-x", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "spec": {"metadata": {}, "spec": {"devices": {"requests": null}}},
            }),
            json!(["policy-x", "5m21s"]),
        ),
        (
            "ResourceSlice",
            json!({
                "metadata": {"name": "policy-x", "creationTimestamp": "2026-11-16T00:14:47Z"},
                "spec": {
                    "driver": "d", "pool": {"name": "p", "generation": 0, "resourceSliceCount": 1},
                    "nodeName": "n",
                },
            }),
            json!(["policy-x", "n", "d", "p", "5m21s"]),
        ),
    ]);
}
