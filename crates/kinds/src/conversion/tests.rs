//! Round trips of conversions.

use serde_json::json;

use super::conversion;

#[test]
fn an_event_has_other_field_names_in_events_k8s_io() {
    let event = conversion("events.k8s.io", "v1", "Event").unwrap();
    let own = json!({
        "metadata": {"name": "a"}, "regarding": {"kind": "Pod"}, "note": "text", "reportingController": "c",
        "deprecatedCount": 3, "action": "Binding",
    });
    let stored = json!({
        "metadata": {"name": "a"}, "involvedObject": {"kind": "Pod"}, "message": "text", "reportingComponent": "c",
        "count": 3, "action": "Binding", "reportingInstance": "",
    });
    let mut object = own.as_object().unwrap().clone();
    (event.to_stored)(&mut object);
    assert_eq!(json!(object), stored);
    (event.from_stored)(&mut object);
    assert_eq!(json!(object), own);
    assert_eq!(event.stored_field("regarding.name"), Ok("involvedObject.name"));
    assert!(event.stored_field("involvedObject.name").is_err());
}

#[test]
fn autoscaling_v1_keeps_fields_of_v2_in_annotations() {
    let autoscaler = conversion("autoscaling", "v1", "HorizontalPodAutoscaler").unwrap();
    let metrics = r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"100Mi"}},{"type":"Pods","pods":{"metricName":"p","targetAverageValue":"1k","selector":{"matchLabels":{"a":"b"}}}},{"type":"Object","object":{"target":{"kind":"Service","name":"s","apiVersion":"v1"},"metricName":"o","targetValue":"10"}},{"type":"External","external":{"metricName":"e","metricSelector":{"matchLabels":{"q":"r"}},"targetAverageValue":"30"}},{"type":"ContainerResource","containerResource":{"name":"cpu","targetAverageUtilization":50,"container":"c"}}]"#;
    let behavior = r#"{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":60,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":30}],"Tolerance":null}}"#;
    let current = r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":55,"currentAverageValue":"200m"}}]"#;
    let old = json!({
        "metadata": {"name": "a", "annotations": {
            "autoscaling.alpha.kubernetes.io/metrics": metrics,
            "autoscaling.alpha.kubernetes.io/behavior": behavior,
            "autoscaling.alpha.kubernetes.io/current-metrics": current,
        }},
        "spec": {"maxReplicas": 5, "targetCPUUtilizationPercentage": 60},
        "status": {"currentReplicas": 0, "desiredReplicas": 4, "currentCPUUtilizationPercentage": 55},
    });
    let new = json!({
        "metadata": {"name": "a"},
        "spec": {
            "maxReplicas": 5,
            "metrics": [
                {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}}},
                {"type": "Pods", "pods": {
                    "metric": {"name": "p", "selector": {"matchLabels": {"a": "b"}}},
                    "target": {"type": "AverageValue", "averageValue": "1k"},
                }},
                {"type": "Object", "object": {
                    "metric": {"name": "o"},
                    "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"},
                    "target": {"type": "Value", "value": "10"},
                }},
                {"type": "External", "external": {
                    "metric": {"name": "e", "selector": {"matchLabels": {"q": "r"}}},
                    "target": {"type": "AverageValue", "averageValue": "30"},
                }},
                {"type": "ContainerResource", "containerResource": {
                    "name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 50},
                }},
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
            ],
            "behavior": {"scaleDown": {
                "stabilizationWindowSeconds": 60, "selectPolicy": "Max",
                "policies": [{"type": "Pods", "value": 1, "periodSeconds": 30}],
            }},
        },
        "status": {
            "desiredReplicas": 4,
            "currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 55, "averageValue": "200m"}}},
            ],
        },
    });
    let mut object = old.as_object().unwrap().clone();
    (autoscaler.to_stored)(&mut object);
    assert_eq!(json!(object), new);
    (autoscaler.from_stored)(&mut object);
    assert_eq!(json!(object), old);
}
