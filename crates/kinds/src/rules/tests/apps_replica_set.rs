//! Replica sets.

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
    "metadata": {"name": "rich", "labels": {"app": "oracle"}},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]}
        },
        "replicas": 0,
        "minReadySeconds": 3
    },
    "status": {"replicas": 3}
}"#;

/// The created object, without the Pod spec of its template.
const MINIMAL_MADE: &str = r#"{
    "metadata": {"name": "minimal"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}}
    },
    "status": {"replicas": 0}
}"#;

/// The created object, without the Pod spec of its template.
const RICH_MADE: &str = r#"{
    "metadata": {"labels": {"app": "oracle"}, "name": "rich"},
    "spec": {
        "minReadySeconds": 3,
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}}
    },
    "status": {"replicas": 0}
}"#;

#[test]
fn defaults_are_set() {
    made("ReplicaSet", MINIMAL, MINIMAL_MADE);
    made("ReplicaSet", RICH, RICH_MADE);
}

const NEW: Rows = &[
    ("a name with dots", r#"{"/metadata/name": "a.b"}"#, &[]),
    (
        "negative numbers",
        r#"{"/spec/replicas": -1, "/spec/minReadySeconds": -1}"#,
        &[
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
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
        "a bad label",
        r#"{"/spec/selector": {"matchLabels": {"app": "a b"}}}"#,
        &[
            "spec.selector.matchLabels: Invalid value: \"a b\": $LABEL",
            "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"a b\"}}: invalid label selector",
        ],
    ),
    (
        "restarted never",
        r#"{"/spec/template/spec/restartPolicy": "Never"}"#,
        &["spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\""],
    ),
    (
        "a deadline for pods",
        r#"{"/spec/template/spec/activeDeadlineSeconds": 5}"#,
        &["spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is \
             not Supported"],
    ),
];

#[test]
fn creates_are_validated() {
    creates("ReplicaSet", MINIMAL, NEW);
}

const CHANGED: Rows = &[
    (
        "another selector",
        r#"{"/spec/selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}"#,
        &["spec.selector: Invalid value: \
             {\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Exists\"}]}: field is immutable"],
    ),
    (
        "no selector",
        r#"{"/spec/selector": "$unset"}"#,
        &[
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match \
             template `labels`",
            "spec.selector: Invalid value: null: field is immutable",
        ],
    ),
];

#[test]
fn immutable_fields_cannot_change() {
    let old = written("ReplicaSet", RICH);
    updates("ReplicaSet", &old, CHANGED);
}

/// A status.
const STATUS: &str = r#"{
    "observedGeneration": 2,
    "replicas": 5,
    "fullyLabeledReplicas": 4,
    "readyReplicas": 3,
    "availableReplicas": 2,
    "terminatingReplicas": 1
}"#;

const STATUSES: Rows = &[
    (
        "negative numbers",
        r#"{
            "observedGeneration": -1,
            "replicas": -1,
            "fullyLabeledReplicas": -2,
            "readyReplicas": -3,
            "availableReplicas": -4,
            "terminatingReplicas": -6
        }"#,
        &[
            "status.replicas: Invalid value: -1: must be greater than or equal to 0",
            "status.fullyLabeledReplicas: Invalid value: -2: must be greater than or equal to 0",
            "status.readyReplicas: Invalid value: -3: must be greater than or equal to 0",
            "status.availableReplicas: Invalid value: -4: must be greater than or equal to 0",
            "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
            "status.terminatingReplicas: Invalid value: -6: must be greater than or equal to 0",
        ],
    ),
    (
        "more than there are",
        r#"{"replicas": 1, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 3}"#,
        &[
            "status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas",
            "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
        ],
    ),
];

#[test]
fn status_updates_are_validated() {
    let old = with_status("ReplicaSet", RICH, STATUS);
    statuses("ReplicaSet", &old, STATUSES);
}
