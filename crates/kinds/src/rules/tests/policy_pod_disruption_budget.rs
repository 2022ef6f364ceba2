//! PodDisruptionBudgets.

use super::changes::{Rows, creates, made, statuses, with_status};

/// A minimal object.
const MINIMAL: &str = r#"{"metadata": {"name": "minimal"}, "spec": {"minAvailable": 1}}"#;

/// An object with most fields set.
const RICH: &str = r#"{
    "metadata": {"name": "rich", "labels": {"app": "oracle"}},
    "spec": {
        "maxUnavailable": "20%",
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": {"a": "b"}}
    },
    "status": {"expectedPods": 4}
}"#;

/// The created object, without the Pod spec of its template.
const MINIMAL_MADE: &str = r#"{
    "metadata": {"name": "minimal"},
    "spec": {"minAvailable": 1},
    "status": {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}
}"#;

/// The created object, without the Pod spec of its template.
const RICH_MADE: &str = r#"{
    "metadata": {"labels": {"app": "oracle"}, "name": "rich"},
    "spec": {
        "maxUnavailable": "20%",
        "selector": {"matchLabels": {"a": "b"}},
        "unhealthyPodEvictionPolicy": "AlwaysAllow"
    },
    "status": {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}
}"#;

#[test]
fn defaults_are_set() {
    made("PodDisruptionBudget", MINIMAL, MINIMAL_MADE);
    made("PodDisruptionBudget", RICH, RICH_MADE);
}

const NEW: Rows = &[
    (
        "both",
        r#"{"/spec/maxUnavailable": "10%"}"#,
        &["spec: Invalid value: \
             {\"MinAvailable\":1,\"Selector\":null,\"MaxUnavailable\":\"10%\",\"UnhealthyPodEvictionPolicy\":null}: \
             minAvailable and maxUnavailable cannot be both set"],
    ),
    (
        "both with more",
        r#"{
            "/spec/maxUnavailable": "10%",
            "/spec/selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]},
            "/spec/unhealthyPodEvictionPolicy": "AlwaysAllow"
        }"#,
        &["spec: Invalid value: \
             {\"MinAvailable\":1,\"Selector\":{\"matchLabels\":{\"a\":\"b\"},\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]},\"MaxUnavailable\":\"10%\",\"UnhealthyPodEvictionPolicy\":\"AlwaysAllow\"}: \
             minAvailable and maxUnavailable cannot be both set"],
    ),
    (
        "a negative minimum",
        r#"{"/spec/minAvailable": -1}"#,
        &["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        "a minimum that is none",
        r#"{"/spec/minAvailable": "many"}"#,
        &["spec.minAvailable: Invalid value: \"many\": $PERCENT"],
    ),
    (
        "more than all",
        r#"{"/spec/minAvailable": "101%"}"#,
        &["spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%"],
    ),
    (
        "a maximum that is none",
        r#"{"/spec": {"maxUnavailable": "10.5%"}}"#,
        &["spec.maxUnavailable: Invalid value: \"10.5%\": $PERCENT"],
    ),
    (
        "too much of a maximum",
        r#"{"/spec": {"maxUnavailable": "200%"}}"#,
        &["spec.maxUnavailable: Invalid value: \"200%\": must not be greater than 100%"],
    ),
    (
        "a bad selector",
        r#"{
            "/spec/selector": {
                "matchLabels": {"a": "x y"},
                "matchExpressions": [{"key": "a", "operator": "In"}, {"key": "a b", "operator": "Like"}]
            }
        }"#,
        &[
            "spec.selector.matchLabels: Invalid value: \"x y\": $LABEL",
            "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` \
             is 'In' or 'NotIn'",
            "spec.selector.matchExpressions[1].operator: Invalid value: \"Like\": not a valid selector \
             operator",
            "spec.selector.matchExpressions[1].key: Invalid value: \"a b\": name part $QUALIFIED",
        ],
    ),
    ("an empty selector", r#"{"/spec/selector": {}}"#, &[]),
    (
        "an unknown policy",
        r#"{"/spec/unhealthyPodEvictionPolicy": "Never"}"#,
        &["spec.unhealthyPodEvictionPolicy: Unsupported value: \"Never\": supported values: \
             \"AlwaysAllow\", \"IfHealthyBudget\""],
    ),
    (
        "a strange label",
        r#"{
            "/spec/selector": {
                "matchLabels": {"a": "b"},
                "matchExpressions": [
                    {
                        "key": "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match",
                        "operator": "Exists"
                    }
                ]
            }
        }"#,
        &[],
    ),
];

#[test]
fn creates_are_validated() {
    creates("PodDisruptionBudget", MINIMAL, NEW);
}

/// A status.
const STATUS: &str = r#"{
    "observedGeneration": 1,
    "disruptionsAllowed": 2,
    "currentHealthy": 3,
    "desiredHealthy": 4,
    "expectedPods": 5,
    "disruptedPods": {"p": "2020-01-01T00:00:00Z"},
    "conditions": [
        {
            "type": "DisruptionAllowed",
            "status": "True",
            "reason": "R",
            "message": "m",
            "lastTransitionTime": "2020-01-01T00:00:00Z"
        }
    ]
}"#;

const STATUSES: Rows = &[
    (
        "negative numbers",
        r#"{"disruptionsAllowed": -1, "currentHealthy": -1, "desiredHealthy": -1, "expectedPods": -1}"#,
        &[
            "status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0",
            "status.currentHealthy: Invalid value: -1: must be greater than or equal to 0",
            "status.desiredHealthy: Invalid value: -1: must be greater than or equal to 0",
            "status.expectedPods: Invalid value: -1: must be greater than or equal to 0",
        ],
    ),
    (
        "bad conditions",
        r#"{
            "conditions": [
                {"type": "a b", "status": "Maybe", "observedGeneration": -1},
                {
                    "type": "X",
                    "status": "True",
                    "reason": "a b",
                    "lastTransitionTime": "2020-01-01T00:00:00Z"
                },
                {
                    "type": "X",
                    "status": "True",
                    "reason": "A",
                    "lastTransitionTime": "2020-01-01T00:00:00Z"
                }
            ]
        }"#,
        &[
            "status.conditions[0].type: Invalid value: \"a b\": name part $QUALIFIED",
            "status.conditions[0].status: Unsupported value: \"Maybe\": supported values: \"False\", \
             \"True\", \"Unknown\"",
            "status.conditions[0].observedGeneration: Invalid value: -1: must be greater than or equal to \
             zero",
            "status.conditions[0].lastTransitionTime: Required value",
            "status.conditions[0].reason: Required value",
            "status.conditions[1].reason: Invalid value: \"a b\": a condition reason must start with \
             alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', \
             and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or \
             'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
             '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
            "status.conditions[2].type: Duplicate value: \"X\"",
        ],
    ),
];

#[test]
fn status_updates_are_validated() {
    let old = with_status("PodDisruptionBudget", RICH, STATUS);
    statuses("PodDisruptionBudget", &old, STATUSES);
}
