//! Deployments.

use super::changes::{Rows, creates, made, statuses, updates, with_status, written};

/// A minimal object.
const MINIMAL: &str = r#"{
    "metadata": {"name": "minimal"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]}
        }
    }
}"#;

/// An object with most fields set.
const RICH: &str = r#"{
    "metadata": {"name": "rich", "labels": {"app": "oracle"}, "annotations": {"note": "x"}},
    "spec": {
        "replicas": 3,
        "minReadySeconds": 5,
        "paused": true,
        "progressDeadlineSeconds": 60,
        "revisionHistoryLimit": 0,
        "selector": {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["front", "back"]},
                {"key": "old", "operator": "DoesNotExist"}
            ]
        },
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 1}},
        "template": {
            "metadata": {"labels": {"app": "web", "tier": "front"}, "annotations": {"a": "b"}},
            "spec": {
                "containers": [{"name": "web", "image": "web:1"}, {"name": "side", "image": "side"}],
                "terminationGracePeriodSeconds": 5
            }
        }
    },
    "status": {"replicas": 7}
}"#;

/// The created object, without the Pod spec of its template.
const MINIMAL_MADE: &str = r#"{
    "metadata": {"name": "minimal"},
    "spec": {
        "progressDeadlineSeconds": 600,
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"},
        "template": {"metadata": {"labels": {"app": "web"}}}
    },
    "status": {}
}"#;

/// The created object, without the Pod spec of its template.
const RICH_MADE: &str = r#"{
    "metadata": {"annotations": {"note": "x"}, "labels": {"app": "oracle"}, "name": "rich"},
    "spec": {
        "minReadySeconds": 5,
        "paused": true,
        "progressDeadlineSeconds": 60,
        "replicas": 3,
        "revisionHistoryLimit": 0,
        "selector": {
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["front", "back"]},
                {"key": "old", "operator": "DoesNotExist"}
            ],
            "matchLabels": {"app": "web"}
        },
        "strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 1}, "type": "RollingUpdate"},
        "template": {"metadata": {"annotations": {"a": "b"}, "labels": {"app": "web", "tier": "front"}}}
    },
    "status": {}
}"#;

#[test]
fn defaults_are_set() {
    made("Deployment", MINIMAL, MINIMAL_MADE);
    made("Deployment", RICH, RICH_MADE);
}

const NEW: Rows = &[
    ("a name with dots", r#"{"/metadata/name": "a.b"}"#, &[]),
    (
        "negative replicas",
        r#"{"/spec/replicas": -1}"#,
        &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        "no selector",
        r#"{"/spec/selector": "$unset"}"#,
        &[
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match \
             template `labels`",
        ],
    ),
    (
        "an empty selector",
        r#"{"/spec/selector": {}}"#,
        &["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
    ),
    (
        "a selector that does not match",
        r#"{"/spec/selector": {"matchLabels": {"app": "db"}}}"#,
        &["spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match \
             template `labels`"],
    ),
    (
        "expressions that do not match",
        r#"{
            "/spec/selector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}
        }"#,
        &["spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match \
             template `labels`"],
    ),
    (
        "a bad label",
        r#"{"/spec/selector": {"matchLabels": {"app": "a b"}}}"#,
        &[
            "spec.selector.matchLabels: Invalid value: \"a b\": $LABEL",
            "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"a b\"}}: invalid label selector",
        ],
    ),
    (
        "a bad key",
        r#"{"/spec/selector": {"matchLabels": {"a b": "web"}}}"#,
        &[
            "spec.selector.matchLabels: Invalid value: \"a b\": name part $QUALIFIED",
            "spec.selector: Invalid value: {\"matchLabels\":{\"a b\":\"web\"}}: invalid label selector",
        ],
    ),
    (
        "an unknown operator",
        r#"{
            "/spec/selector": {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]
            }
        }"#,
        &[
            "spec.selector.matchExpressions[0].operator: Invalid value: \"Like\": not a valid selector \
             operator",
            "spec.selector: Invalid value: \
             {\"matchLabels\":{\"app\":\"web\"},\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Like\",\"values\":[\"web\"]}]}: \
             invalid label selector",
        ],
    ),
    (
        "no values",
        r#"{"/spec/selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}}"#,
        &[
            "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` \
             is 'In' or 'NotIn'",
            "spec.selector: Invalid value: {\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\"}]}: \
             invalid label selector",
        ],
    ),
    (
        "values of nothing",
        r#"{
            "/spec/selector": {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["web"]}]}
        }"#,
        &[
            "spec.selector.matchExpressions[0].values: Forbidden: may not be specified when `operator` is \
             'Exists' or 'DoesNotExist'",
            "spec.selector: Invalid value: \
             {\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Exists\",\"values\":[\"web\"]}]}: \
             invalid label selector",
        ],
    ),
    (
        "bad values",
        r#"{
            "/spec/selector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a b", "-"]}]}
        }"#,
        &[
            "spec.selector.matchExpressions[0].values[0]: Invalid value: \"a b\": $LABEL",
            "spec.selector.matchExpressions[0].values[1]: Invalid value: \"-\": $LABEL",
            "spec.selector: Invalid value: \
             {\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"NotIn\",\"values\":[\"a b\",\"-\"]}]}: \
             invalid label selector",
        ],
    ),
    (
        "no labels",
        r#"{"/spec/template/metadata": "$unset"}"#,
        &["spec.template.metadata.labels: Invalid value: null: `selector` does not match template \
             `labels`"],
    ),
    (
        "restarted on failure",
        r#"{"/spec/template/spec/restartPolicy": "OnFailure"}"#,
        &["spec.template.spec.restartPolicy: Unsupported value: \"OnFailure\": supported values: \
             \"Always\""],
    ),
    (
        "a deadline for pods",
        r#"{"/spec/template/spec/activeDeadlineSeconds": 5}"#,
        &["spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is \
             not Supported"],
    ),
    (
        "an unknown strategy",
        r#"{"/spec/strategy": {"type": "Now"}}"#,
        &["spec.strategy: Unsupported value: {\"Type\":\"Now\",\"RollingUpdate\":null}: supported \
             values: \"Recreate\", \"RollingUpdate\""],
    ),
    (
        "an unknown strategy with numbers",
        r#"{
            "/spec/strategy": {"type": "Now", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "10%"}}
        }"#,
        &["spec.strategy: Unsupported value: \
             {\"Type\":\"Now\",\"RollingUpdate\":{\"MaxUnavailable\":\"10%\",\"MaxSurge\":1}}: supported \
             values: \"Recreate\", \"RollingUpdate\""],
    ),
    (
        "recreated and rolled",
        r#"{"/spec/strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}"#,
        &["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is \
             'Recreate'"],
    ),
    (
        "negative numbers",
        r#"{"/spec/strategy": {"rollingUpdate": {"maxSurge": -1, "maxUnavailable": -1}}}"#,
        &[
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: -1: must be greater than or equal \
             to 0",
            "spec.strategy.rollingUpdate.maxSurge: Invalid value: -1: must be greater than or equal to 0",
        ],
    ),
    (
        "numbers that are none",
        r#"{"/spec/strategy": {"rollingUpdate": {"maxSurge": "a%", "maxUnavailable": "5"}}}"#,
        &[
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"5\": $PERCENT",
            "spec.strategy.rollingUpdate.maxSurge: Invalid value: \"a%\": $PERCENT",
        ],
    ),
    (
        "nothing to roll",
        r#"{"/spec/strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}}"#,
        &["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 when \
             `maxSurge` is 0"],
    ),
    (
        "more than all",
        r#"{"/spec/strategy": {"rollingUpdate": {"maxSurge": "101%", "maxUnavailable": "101%"}}}"#,
        &["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be greater than \
             100%"],
    ),
    (
        "negative seconds",
        r#"{"/spec/minReadySeconds": -1}"#,
        &["spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        "a negative history",
        r#"{"/spec/revisionHistoryLimit": -1}"#,
        &["spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        "a negative deadline",
        r#"{"/spec/progressDeadlineSeconds": -1}"#,
        &[
            "spec.progressDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
            "spec.progressDeadlineSeconds: Invalid value: -1: must be greater than minReadySeconds",
        ],
    ),
    (
        "a deadline too soon",
        r#"{"/spec/progressDeadlineSeconds": 10, "/spec/minReadySeconds": 10}"#,
        &["spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds"],
    ),
    (
        "a deadline of zero",
        r#"{"/spec/progressDeadlineSeconds": 0}"#,
        &["spec.progressDeadlineSeconds: Invalid value: 0: must be greater than minReadySeconds"],
    ),
    ("replicas of null", r#"{"/spec/replicas": null}"#, &[]),
    ("no replicas", r#"{"/spec/replicas": 0}"#, &[]),
    ("an empty strategy", r#"{"/spec/strategy": {}}"#, &[]),
    ("half a strategy", r#"{"/spec/strategy": {"rollingUpdate": {"maxSurge": 3}}}"#, &[]),
    ("recreated", r#"{"/spec/strategy": {"type": "Recreate"}}"#, &[]),
];

#[test]
fn creates_are_validated() {
    creates("Deployment", MINIMAL, NEW);
}

const CHANGED: Rows = &[
    (
        "another selector",
        r#"{"/spec/selector": {"matchLabels": {"app": "web"}}}"#,
        &["spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"web\"}}: field is immutable"],
    ),
    (
        "no selector",
        r#"{"/spec/selector": "$unset"}"#,
        &[
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: {\"app\":\"web\",\"tier\":\"front\"}: \
             `selector` does not match template `labels`",
            "spec.selector: Invalid value: null: field is immutable",
        ],
    ),
    (
        "other labels",
        r#"{"/spec/template/metadata/labels": {"app": "db"}}"#,
        &["spec.template.metadata.labels: Invalid value: {\"app\":\"db\"}: `selector` does not match \
             template `labels`"],
    ),
];

#[test]
fn immutable_fields_cannot_change() {
    let old = written("Deployment", RICH);
    updates("Deployment", &old, CHANGED);
}

/// A status.
const STATUS: &str = r#"{
    "observedGeneration": 2,
    "replicas": 5,
    "updatedReplicas": 4,
    "readyReplicas": 3,
    "availableReplicas": 2,
    "unavailableReplicas": 3,
    "terminatingReplicas": 1,
    "collisionCount": 2,
    "conditions": [
        {
            "type": "Available",
            "status": "True",
            "reason": "R",
            "message": "m",
            "lastUpdateTime": "2020-01-01T00:00:00Z",
            "lastTransitionTime": "2020-01-01T00:00:00Z"
        }
    ]
}"#;

const STATUSES: Rows = &[
    (
        "negative numbers",
        r#"{
            "observedGeneration": -1,
            "replicas": -1,
            "updatedReplicas": -2,
            "readyReplicas": -3,
            "availableReplicas": -4,
            "unavailableReplicas": -5,
            "terminatingReplicas": -6,
            "collisionCount": -7
        }"#,
        &[
            "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
            "status.replicas: Invalid value: -1: must be greater than or equal to 0",
            "status.updatedReplicas: Invalid value: -2: must be greater than or equal to 0",
            "status.readyReplicas: Invalid value: -3: must be greater than or equal to 0",
            "status.availableReplicas: Invalid value: -4: must be greater than or equal to 0",
            "status.unavailableReplicas: Invalid value: -5: must be greater than or equal to 0",
            "status.terminatingReplicas: Invalid value: -6: must be greater than or equal to 0",
            "status.collisionCount: Invalid value: -7: must be greater than or equal to 0",
            "status.collisionCount: Invalid value: -7: cannot be decremented",
        ],
    ),
    (
        "more than there are",
        r#"{"replicas": 1, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 3}"#,
        &[
            "status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas",
            "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
        ],
    ),
    (
        "fewer collisions",
        r#"{"collisionCount": 1}"#,
        &["status.collisionCount: Invalid value: 1: cannot be decremented"],
    ),
    (
        "no collisions",
        r#"{"collisionCount": null}"#,
        &["status.collisionCount: Invalid value: 0: cannot be decremented"],
    ),
];

#[test]
fn status_updates_are_validated() {
    let old = with_status("Deployment", RICH, STATUS);
    statuses("Deployment", &old, STATUSES);
}
