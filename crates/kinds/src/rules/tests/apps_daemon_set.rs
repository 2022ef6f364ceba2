//! Daemon sets.

use super::changes::{Rows, creates, made, statuses, updates, with_status, written};

/// A minimal object.
const MINIMAL: &str = r#"{
    "metadata": {"name": "minimal"},
    "spec": {
        "selector": {"matchLabels": {"app": "log"}},
        "template": {
            "metadata": {"labels": {"app": "log"}},
            "spec": {"containers": [{"name": "log", "image": "log:1"}]}
        }
    }
}"#;

/// An object with most fields set.
const RICH: &str = r#"{
    "metadata": {"name": "rich", "annotations": {"note": "x", "deprecated.daemonset.template.generation": "5"}},
    "spec": {
        "selector": {"matchLabels": {"app": "log"}},
        "template": {
            "metadata": {"labels": {"app": "log"}},
            "spec": {
                "containers": [{"name": "log", "image": "log:1"}],
                "nodeSelector": {"disk": "ssd", "a": "b"}
            }
        },
        "minReadySeconds": 3,
        "revisionHistoryLimit": 0,
        "updateStrategy": {"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}}
    },
    "status": {"numberReady": 3}
}"#;

/// The created object, without the Pod spec of its template.
const MINIMAL_MADE: &str = r#"{
    "metadata": {"annotations": {"deprecated.daemonset.template.generation": "1"}, "name": "minimal"},
    "spec": {
        "revisionHistoryLimit": 10,
        "selector": {"matchLabels": {"app": "log"}},
        "template": {"metadata": {"labels": {"app": "log"}}},
        "updateStrategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}, "type": "RollingUpdate"}
    },
    "status": {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0
    }
}"#;

/// The created object, without the Pod spec of its template.
const RICH_MADE: &str = r#"{
    "metadata": {"annotations": {"deprecated.daemonset.template.generation": "5", "note": "x"}, "name": "rich"},
    "spec": {
        "minReadySeconds": 3,
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": {"app": "log"}},
        "template": {"metadata": {"labels": {"app": "log"}}},
        "updateStrategy": {"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}, "type": "RollingUpdate"}
    },
    "status": {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0
    }
}"#;

#[test]
fn defaults_are_set() {
    made("DaemonSet", MINIMAL, MINIMAL_MADE);
    made("DaemonSet", RICH, RICH_MADE);
}

const NEW: Rows = &[
    (
        "no selector",
        r#"{"/spec/selector": "$unset"}"#,
        &["spec.template.metadata.labels: Invalid value: {\"app\":\"log\"}: `selector` does not match \
             template `labels`"],
    ),
    (
        "an empty selector",
        r#"{"/spec/selector": {}}"#,
        &["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"],
    ),
    (
        "a selector that does not match",
        r#"{"/spec/selector": {"matchLabels": {"app": "web"}}}"#,
        &["spec.template.metadata.labels: Invalid value: {\"app\":\"log\"}: `selector` does not match \
             template `labels`"],
    ),
    (
        "a bad label",
        r#"{"/spec/selector": {"matchLabels": {"app": "a b"}}}"#,
        &["spec.selector.matchLabels: Invalid value: \"a b\": $LABEL"],
    ),
    (
        "restarted never",
        r#"{"/spec/template/spec/restartPolicy": "Never"}"#,
        &["spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\""],
    ),
    (
        "a deadline for pods",
        r#"{"/spec/template/spec/activeDeadlineSeconds": 5}"#,
        &["spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is \
             not Supported"],
    ),
    (
        "negative numbers",
        r#"{"/spec/minReadySeconds": -1, "/spec/revisionHistoryLimit": -1}"#,
        &[
            "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
            "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
        ],
    ),
    (
        "an unknown strategy",
        r#"{"/spec/updateStrategy": {"type": "Now"}}"#,
        &["spec.updateStrategy: Unsupported value: {\"Type\":\"Now\",\"RollingUpdate\":null}: supported \
             values: \"RollingUpdate\", \"OnDelete\""],
    ),
    (
        "an unknown strategy with numbers",
        r#"{
            "/spec/updateStrategy": {"type": "Now", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 2}}
        }"#,
        &["spec.updateStrategy: Unsupported value: \
             {\"Type\":\"Now\",\"RollingUpdate\":{\"MaxUnavailable\":2,\"MaxSurge\":1}}: supported values: \
             \"RollingUpdate\", \"OnDelete\""],
    ),
    (
        "both",
        r#"{"/spec/updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}"#,
        &["spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when \
             maxUnavailable is non-zero"],
    ),
    (
        "neither",
        r#"{"/spec/updateStrategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}"#,
        &["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge \
             is 0"],
    ),
    (
        "numbers that are none",
        r#"{"/spec/updateStrategy": {"rollingUpdate": {"maxSurge": "x", "maxUnavailable": -1}}}"#,
        &[
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: -1: must be greater than or \
             equal to 0",
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: \"x\": $PERCENT",
        ],
    ),
    (
        "more than all",
        r#"{"/spec/updateStrategy": {"rollingUpdate": {"maxSurge": "101%", "maxUnavailable": "102%"}}}"#,
        &[
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: \"102%\": must not be \
             greater than 100%",
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: \"101%\": must not be greater than \
             100%",
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: \"101%\": may not be set when \
             maxUnavailable is non-zero",
        ],
    ),
    (
        "by hand with numbers",
        r#"{"/spec/updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxSurge": 1}}}"#,
        &[],
    ),
    (
        "a generation of zero",
        r#"{"/metadata/annotations": {"deprecated.daemonset.template.generation": "0"}}"#,
        &[],
    ),
];

#[test]
fn creates_are_validated() {
    creates("DaemonSet", MINIMAL, NEW);
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
            "spec.selector: Invalid value: null: field is immutable",
            "spec.template.metadata.labels: Invalid value: {\"app\":\"log\"}: `selector` does not match \
             template `labels`",
        ],
    ),
];

#[test]
fn immutable_fields_cannot_change() {
    let old = written("DaemonSet", RICH);
    updates("DaemonSet", &old, CHANGED);
}

/// A status.
const STATUS: &str = r#"{
    "observedGeneration": 2,
    "currentNumberScheduled": 1,
    "desiredNumberScheduled": 2,
    "numberMisscheduled": 3,
    "numberReady": 4,
    "numberAvailable": 5,
    "numberUnavailable": 6,
    "updatedNumberScheduled": 7,
    "collisionCount": 2
}"#;

const STATUSES: Rows = &[
    (
        "negative numbers",
        r#"{
            "observedGeneration": -1,
            "currentNumberScheduled": -1,
            "desiredNumberScheduled": -2,
            "numberMisscheduled": -3,
            "numberReady": -4,
            "numberAvailable": -5,
            "numberUnavailable": -6,
            "updatedNumberScheduled": -7,
            "collisionCount": -8
        }"#,
        &[
            "status.currentNumberScheduled: Invalid value: -1: must be greater than or equal to 0",
            "status.numberMisscheduled: Invalid value: -3: must be greater than or equal to 0",
            "status.desiredNumberScheduled: Invalid value: -2: must be greater than or equal to 0",
            "status.numberReady: Invalid value: -4: must be greater than or equal to 0",
            "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
            "status.updatedNumberScheduled: Invalid value: -7: must be greater than or equal to 0",
            "status.numberAvailable: Invalid value: -5: must be greater than or equal to 0",
            "status.numberUnavailable: Invalid value: -6: must be greater than or equal to 0",
            "status.collisionCount: Invalid value: -8: must be greater than or equal to 0",
            "status.collisionCount: Invalid value: -8: cannot be decremented",
        ],
    ),
    (
        "fewer collisions",
        r#"{"collisionCount": 1}"#,
        &["status.collisionCount: Invalid value: 1: cannot be decremented"],
    ),
];

#[test]
fn status_updates_are_validated() {
    let old = with_status("DaemonSet", RICH, STATUS);
    statuses("DaemonSet", &old, STATUSES);
}
