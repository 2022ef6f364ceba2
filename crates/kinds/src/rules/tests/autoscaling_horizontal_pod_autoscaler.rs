//! Horizontal pod autoscalers.

use super::changes::{Rows, creates, made, statuses, written};

/// A minimal object.
const MINIMAL: &str = r#"{
    "metadata": {"name": "minimal"},
    "spec": {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    }
}"#;

/// An object with most fields set.
const RICH: &str = r#"{
    "metadata": {"name": "rich", "labels": {"app": "oracle"}},
    "spec": {
        "minReplicas": 2,
        "maxReplicas": 10,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "behavior": {
            "scaleUp": {"stabilizationWindowSeconds": 30, "tolerance": "0.05"},
            "scaleDown": {"selectPolicy": "Min", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}
        },
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
            },
            {
                "type": "Resource",
                "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}}
            },
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "cpu",
                    "container": "web",
                    "target": {"type": "Utilization", "averageUtilization": 60}
                }
            },
            {
                "type": "Pods",
                "pods": {
                    "metric": {"name": "packets", "selector": {"matchLabels": {"a": "b"}}},
                    "target": {"type": "AverageValue", "averageValue": "1k"}
                }
            },
            {
                "type": "Object",
                "object": {
                    "metric": {"name": "hits"},
                    "describedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"},
                    "target": {"type": "Value", "value": "10k"}
                }
            },
            {
                "type": "External",
                "external": {
                    "metric": {"name": "queue"},
                    "target": {"type": "AverageValue", "averageValue": "30"}
                }
            }
        ]
    }
}"#;

/// The created object, without the Pod spec of its template.
const MINIMAL_MADE: &str = r#"{
    "metadata": {"name": "minimal"},
    "spec": {
        "maxReplicas": 3,
        "metrics": [
            {
                "resource": {"name": "cpu", "target": {"averageUtilization": 80, "type": "Utilization"}},
                "type": "Resource"
            }
        ],
        "minReplicas": 1,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    },
    "status": {"currentMetrics": null, "desiredReplicas": 0}
}"#;

/// The created object, without the Pod spec of its template.
const RICH_MADE: &str = r#"{
    "metadata": {"labels": {"app": "oracle"}, "name": "rich"},
    "spec": {
        "behavior": {
            "scaleDown": {"policies": [{"periodSeconds": 60, "type": "Pods", "value": 4}], "selectPolicy": "Min"},
            "scaleUp": {
                "policies": [
                    {"periodSeconds": 15, "type": "Pods", "value": 4},
                    {"periodSeconds": 15, "type": "Percent", "value": 100}
                ],
                "selectPolicy": "Max",
                "stabilizationWindowSeconds": 30,
                "tolerance": "50m"
            }
        },
        "maxReplicas": 10,
        "metrics": [
            {
                "resource": {"name": "cpu", "target": {"averageUtilization": 50, "type": "Utilization"}},
                "type": "Resource"
            },
            {
                "resource": {"name": "memory", "target": {"averageValue": "100Mi", "type": "AverageValue"}},
                "type": "Resource"
            },
            {
                "containerResource": {
                    "container": "web",
                    "name": "cpu",
                    "target": {"averageUtilization": 60, "type": "Utilization"}
                },
                "type": "ContainerResource"
            },
            {
                "pods": {
                    "metric": {"name": "packets", "selector": {"matchLabels": {"a": "b"}}},
                    "target": {"averageValue": "1k", "type": "AverageValue"}
                },
                "type": "Pods"
            },
            {
                "object": {
                    "describedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"},
                    "metric": {"name": "hits"},
                    "target": {"type": "Value", "value": "10k"}
                },
                "type": "Object"
            },
            {
                "external": {
                    "metric": {"name": "queue"},
                    "target": {"averageValue": "30", "type": "AverageValue"}
                },
                "type": "External"
            }
        ],
        "minReplicas": 2,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    },
    "status": {"currentMetrics": null, "desiredReplicas": 0}
}"#;

#[test]
fn defaults_are_set() {
    made("HorizontalPodAutoscaler", MINIMAL, MINIMAL_MADE);
    made("HorizontalPodAutoscaler", RICH, RICH_MADE);
}

const NEW: Rows = &[
    (
        "nothing",
        r#"{"/spec": "$unset"}"#,
        &[
            "spec.maxReplicas: Invalid value: 0: must be greater than 0",
            "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
            "spec.scaleTargetRef.kind: Required value",
            "spec.scaleTargetRef.name: Required value",
            "spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group",
        ],
    ),
    (
        "no minimum",
        r#"{"/spec/minReplicas": 0}"#,
        &[
            "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
            "spec.metrics: Forbidden: must specify at least one Object or External metric to support \
             scaling to zero replicas",
        ],
    ),
    (
        "a negative minimum",
        r#"{"/spec/minReplicas": -1}"#,
        &["spec.minReplicas: Invalid value: -1: must be greater than or equal to 1"],
    ),
    (
        "more than the maximum",
        r#"{"/spec/minReplicas": 4}"#,
        &["spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"],
    ),
    (
        "no maximum",
        r#"{"/spec/maxReplicas": 0}"#,
        &[
            "spec.maxReplicas: Invalid value: 0: must be greater than 0",
            "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
        ],
    ),
    (
        "no target",
        r#"{"/spec/scaleTargetRef": {}}"#,
        &[
            "spec.scaleTargetRef.kind: Required value",
            "spec.scaleTargetRef.name: Required value",
            "spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group",
        ],
    ),
    (
        "a bad target",
        r#"{"/spec/scaleTargetRef": {"apiVersion": "a/b/c", "kind": "a/b", "name": "a%b"}}"#,
        &[
            "spec.scaleTargetRef.kind: Invalid value: \"a/b\": may not contain '/'",
            "spec.scaleTargetRef.name: Invalid value: \"a%b\": may not contain '%'",
            "spec.scaleTargetRef.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: \
             a/b/c",
        ],
    ),
    (
        "a target without group",
        r#"{"/spec/scaleTargetRef": {"apiVersion": "v1", "kind": "Deployment", "name": "web"}}"#,
        &["spec.scaleTargetRef.apiVersion: Invalid value: \"v1\": apiVersion must specify API group"],
    ),
    (
        "a target without version",
        r#"{"/spec/scaleTargetRef": {"kind": "Deployment", "name": "web"}}"#,
        &["spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group"],
    ),
    (
        "a replication controller",
        r#"{
            "/spec/scaleTargetRef": {"apiVersion": "v1", "kind": "ReplicationController", "name": "web"}
        }"#,
        &[],
    ),
    ("an empty behavior", r#"{"/spec/behavior": {}}"#, &[]),
    (
        "behavior",
        r#"{
            "/spec/behavior": {
                "scaleUp": {"stabilizationWindowSeconds": -1, "selectPolicy": "Any"},
                "scaleDown": {"stabilizationWindowSeconds": 3601}
            }
        }"#,
        &[
            "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1: must be greater than or \
             equal to zero",
            "spec.behavior.scaleUp.selectPolicy: Unsupported value: \"Any\": supported values: \
             \"Disabled\", \"Max\", \"Min\"",
            "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: must be less than or \
             equal to 3600",
        ],
    ),
    (
        "bad policies",
        r#"{
            "/spec/behavior": {
                "scaleDown": {
                    "policies": [
                        {"type": "Half", "value": 0, "periodSeconds": 0},
                        {"type": "Pods", "value": 1, "periodSeconds": 1801}
                    ]
                }
            }
        }"#,
        &[
            "spec.behavior.scaleDown.policies[0].type: Unsupported value: \"Half\": supported values: \
             \"Percent\", \"Pods\"",
            "spec.behavior.scaleDown.policies[0].value: Invalid value: 0: must be greater than zero",
            "spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 0: must be greater than zero",
            "spec.behavior.scaleDown.policies[1].periodSeconds: Invalid value: 1801: must be less than or \
             equal to 1800",
        ],
    ),
    ("a tolerance", r#"{"/spec/behavior": {"scaleUp": {"tolerance": "10m"}}}"#, &[]),
    (
        "a negative tolerance",
        r#"{"/spec/behavior": {"scaleUp": {"tolerance": -1}}}"#,
        &["spec.behavior.scaleUp.tolerance: Invalid value: \"-1\": must be greater than or equal to 0"],
    ),
    ("a status", r#"{"/status": {"desiredReplicas": 3}}"#, &[]),
];

#[test]
fn creates_are_validated() {
    creates("HorizontalPodAutoscaler", MINIMAL, NEW);
}

const STATUSES: Rows = &[(
    "negative numbers",
    r#"{"currentReplicas": -1, "desiredReplicas": -1}"#,
    &[
        "status.currentReplicas: Invalid value: -1: must be greater than or equal to 0",
        "status.desiredReplicas: Invalid value: -1: must be greater than or equal to 0",
    ],
)];

#[test]
fn status_updates_are_validated() {
    let old = written("HorizontalPodAutoscaler", RICH);
    statuses("HorizontalPodAutoscaler", &old, STATUSES);
}
