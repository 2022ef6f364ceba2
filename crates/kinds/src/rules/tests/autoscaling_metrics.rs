//! Metrics of HorizontalPodAutoscalers.

use super::changes::{Rows, creates};

/// A minimal object.
const MINIMAL: &str = r#"{
    "metadata": {"name": "minimal"},
    "spec": {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    }
}"#;

const METRICS: Rows = &[
    (
        "a metric without type",
        r#"{"/spec/metrics": [{}]}"#,
        &[
            "spec.metrics[0].type: Required value: must specify a metric source type",
            "spec.metrics[0].type: Unsupported value: \"\": supported values: \"ContainerResource\", \
             \"External\", \"Object\", \"Pods\", \"Resource\"",
            "spec.metrics[0].type: Unsupported value: \"\": supported values: \"ContainerResource\", \
             \"External\", \"Object\", \"Pods\", \"Resource\"",
        ],
    ),
    (
        "an unknown metric",
        r#"{"/spec/metrics": [{"type": "Moon"}]}"#,
        &[
            "spec.metrics[0].type: Unsupported value: \"Moon\": supported values: \"ContainerResource\", \
             \"External\", \"Object\", \"Pods\", \"Resource\"",
            "spec.metrics[0].type: Unsupported value: \"Moon\": supported values: \"ContainerResource\", \
             \"External\", \"Object\", \"Pods\", \"Resource\"",
        ],
    ),
    (
        "an unknown metric with a source",
        r#"{
            "/spec/metrics": [
                {
                    "type": "Moon",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}}
                }
            ]
        }"#,
        &[
            "spec.metrics[0].type: Unsupported value: \"Moon\": supported values: \"ContainerResource\", \
             \"External\", \"Object\", \"Pods\", \"Resource\"",
            "spec.metrics[0].type: Unsupported value: \"Moon\": supported values: \"ContainerResource\", \
             \"External\", \"Object\", \"Pods\", \"Resource\"",
        ],
    ),
    (
        "metrics without source",
        r#"{
            "/spec/metrics": [
                {"type": "Resource"},
                {"type": "ContainerResource"},
                {"type": "Pods"},
                {"type": "Object"},
                {"type": "External"}
            ]
        }"#,
        &[
            "spec.metrics[0].resource: Required value: must populate information for the given metric \
             source",
            "spec.metrics[1].containerResource: Required value: must populate information for the given \
             metric source",
            "spec.metrics[2].pods: Required value: must populate information for the given metric source",
            "spec.metrics[3].object: Required value: must populate information for the given metric source",
            "spec.metrics[4].external: Required value: must populate information for the given metric \
             source",
        ],
    ),
    (
        "the wrong source",
        r#"{
            "/spec/metrics": [
                {
                    "type": "Resource",
                    "pods": {"metric": {"name": "a"}, "target": {"type": "AverageValue", "averageValue": 1}}
                }
            ]
        }"#,
        &["spec.metrics[0].resource: Required value: must populate information for the given metric \
             source"],
    ),
    (
        "two sources",
        r#"{
            "/spec/metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}},
                    "pods": {"metric": {"name": "a"}, "target": {"type": "AverageValue", "averageValue": 1}}
                }
            ]
        }"#,
        &["spec.metrics[0].pods: Forbidden: must populate the given metric source only"],
    ),
    (
        "empty sources",
        r#"{
            "/spec/metrics": [
                {"type": "Resource", "resource": {}},
                {"type": "ContainerResource", "containerResource": {}},
                {"type": "Pods", "pods": {}},
                {"type": "Object", "object": {}},
                {"type": "External", "external": {}}
            ]
        }"#,
        &[
            "spec.metrics[0].resource.name: Required value: must specify a resource name",
            "spec.metrics[0].resource.target.type: Required value: must specify a metric target type",
            "spec.metrics[0].resource.target.type: Invalid value: \"\": must be either Utilization, Value, \
             or AverageValue",
            "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target \
             raw value or a target utilization",
            "spec.metrics[1].containerResource.name: Required value: must specify a resource name",
            "spec.metrics[1].containerResource.container: Required value: must specify a container",
            "spec.metrics[1].containerResource.target.type: Required value: must specify a metric target \
             type",
            "spec.metrics[1].containerResource.target.type: Invalid value: \"\": must be either \
             Utilization, Value, or AverageValue",
            "spec.metrics[1].containerResource.target.averageUtilization: Required value: must set either \
             a target raw value or a target utilization",
            "spec.metrics[2].pods.metric.name: Required value: must specify a metric name",
            "spec.metrics[2].pods.target.type: Required value: must specify a metric target type",
            "spec.metrics[2].pods.target.type: Invalid value: \"\": must be either Utilization, Value, or \
             AverageValue",
            "spec.metrics[2].pods.target.averageValue: Required value: must specify a positive target \
             averageValue",
            "spec.metrics[3].object.describedObject.kind: Required value",
            "spec.metrics[3].object.describedObject.name: Required value",
            "spec.metrics[3].object.metric.name: Required value: must specify a metric name",
            "spec.metrics[3].object.target.type: Required value: must specify a metric target type",
            "spec.metrics[3].object.target.type: Invalid value: \"\": must be either Utilization, Value, \
             or AverageValue",
            "spec.metrics[3].object.target.averageValue: Required value: must set either a target value or \
             averageValue",
            "spec.metrics[4].external.metric.name: Required value: must specify a metric name",
            "spec.metrics[4].external.target.type: Required value: must specify a metric target type",
            "spec.metrics[4].external.target.type: Invalid value: \"\": must be either Utilization, Value, \
             or AverageValue",
            "spec.metrics[4].external.target.averageValue: Required value: must set either a target value \
             for metric or a per-pod target",
        ],
    ),
    (
        "bad targets",
        r#"{
            "/spec/metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Many", "averageUtilization": 0}}
                },
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 5, "averageValue": 0}
                    }
                }
            ]
        }"#,
        &[
            "spec.metrics[0].resource.target.type: Invalid value: \"Many\": must be either Utilization, \
             Value, or AverageValue",
            "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
            "spec.metrics[1].resource.target.averageValue: Invalid value: \"0\": must be positive",
            "spec.metrics[1].resource.target.averageValue: Forbidden: may not set both a target raw value \
             and a target utilization",
        ],
    ),
    (
        "bad amounts",
        r#"{
            "/spec/metrics": [
                {
                    "type": "External",
                    "external": {
                        "metric": {"name": "a/b"},
                        "target": {"type": "Value", "value": -1, "averageValue": 0}
                    }
                }
            ]
        }"#,
        &[
            "spec.metrics[0].external.metric.name: Invalid value: \"a/b\": may not contain '/'",
            "spec.metrics[0].external.target.value: Invalid value: \"-1\": must be positive",
            "spec.metrics[0].external.target.averageValue: Invalid value: \"0\": must be positive",
            "spec.metrics[0].external.target.value: Forbidden: may not set both a target value for metric \
             and a per-pod target",
        ],
    ),
    (
        "a bad container",
        r#"{
            "/spec/metrics": [
                {
                    "type": "ContainerResource",
                    "containerResource": {
                        "name": "a b",
                        "container": "A",
                        "target": {"type": "Utilization", "averageUtilization": 5, "averageValue": 1}
                    }
                }
            ]
        }"#,
        &[
            "spec.metrics[0].containerResource.name: Invalid value: \"a b\": name part $QUALIFIED",
            "spec.metrics[0].containerResource.name: Invalid value: \"a b\": must be a standard resource \
             for containers",
            "spec.metrics[0].containerResource.container: Invalid value: \"A\": $DNS_LABEL",
            "spec.metrics[0].containerResource.target.averageValue: Forbidden: may not set both a target \
             raw value and a target utilization",
        ],
    ),
    (
        "a bad object",
        r#"{
            "/spec/metrics": [
                {
                    "type": "Object",
                    "object": {
                        "metric": {"name": ""},
                        "describedObject": {"apiVersion": "a/b/c", "kind": "", "name": ""},
                        "target": {"type": "Value"}
                    }
                }
            ]
        }"#,
        &[
            "spec.metrics[0].object.describedObject.kind: Required value",
            "spec.metrics[0].object.describedObject.name: Required value",
            "spec.metrics[0].object.describedObject.apiVersion: Invalid value: \"a/b/c\": unexpected \
             GroupVersion string: a/b/c",
            "spec.metrics[0].object.metric.name: Required value: must specify a metric name",
            "spec.metrics[0].object.target.averageValue: Required value: must set either a target value or \
             averageValue",
        ],
    ),
];

#[test]
fn metrics_are_validated() {
    creates("HorizontalPodAutoscaler", MINIMAL, METRICS);
}
