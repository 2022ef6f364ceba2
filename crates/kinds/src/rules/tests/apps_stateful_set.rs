//! Stateful sets.

use super::changes::{Rows, creates, made, statuses, updates, with_status, written};

/// A minimal object.
const MINIMAL: &str = r#"{
    "metadata": {"name": "minimal"},
    "spec": {
        "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "db", "image": "db:1"}]}
        }
    }
}"#;

/// An object with most fields set.
const RICH: &str = r#"{
    "metadata": {"name": "rich", "labels": {"app": "oracle"}},
    "spec": {
        "replicas": 3,
        "minReadySeconds": 2,
        "revisionHistoryLimit": 4,
        "serviceName": "db",
        "podManagementPolicy": "Parallel",
        "ordinals": {"start": 5},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1, "maxUnavailable": 2}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"},
        "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {
                "hostname": "not a name",
                "subdomain": "not a name",
                "containers": [
                    {
                        "name": "db",
                        "image": "db:1",
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}]
                    }
                ]
            }
        },
        "volumeClaimTemplates": [
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            }
        ]
    }
}"#;

/// The created object, without the Pod spec of its template.
const MINIMAL_MADE: &str = r#"{
    "metadata": {"name": "minimal"},
    "spec": {
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "podManagementPolicy": "OrderedReady",
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "selector": {"matchLabels": {"app": "db"}},
        "serviceName": "",
        "template": {"metadata": {"labels": {"app": "db"}}},
        "updateStrategy": {"rollingUpdate": {"partition": 0}, "type": "RollingUpdate"}
    },
    "status": {"availableReplicas": 0, "replicas": 0}
}"#;

/// The created object, without the Pod spec of its template.
const RICH_MADE: &str = r#"{
    "metadata": {"labels": {"app": "oracle"}, "name": "rich"},
    "spec": {
        "minReadySeconds": 2,
        "ordinals": {"start": 5},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
        "podManagementPolicy": "Parallel",
        "replicas": 3,
        "revisionHistoryLimit": 4,
        "selector": {"matchLabels": {"app": "db"}},
        "serviceName": "db",
        "template": {"metadata": {"labels": {"app": "db"}}},
        "updateStrategy": {"rollingUpdate": {"partition": 1}, "type": "RollingUpdate"},
        "volumeClaimTemplates": [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                    "volumeMode": "Filesystem"
                },
                "status": {"phase": "Pending"}
            }
        ]
    },
    "status": {"availableReplicas": 0, "replicas": 0}
}"#;

#[test]
fn defaults_are_set() {
    made("StatefulSet", MINIMAL, MINIMAL_MADE);
    made("StatefulSet", RICH, RICH_MADE);
}

const NEW: Rows = &[
    (
        "an unknown management",
        r#"{"/spec/podManagementPolicy": "Chaos"}"#,
        &["spec.podManagementPolicy: Invalid value: \"Chaos\": must be 'OrderedReady' or 'Parallel'"],
    ),
    (
        "an unknown strategy",
        r#"{"/spec/updateStrategy": {"type": "Now"}}"#,
        &["spec.updateStrategy: Invalid value: {\"Type\":\"Now\",\"RollingUpdate\":null}: must be \
             'RollingUpdate' or 'OnDelete'"],
    ),
    (
        "an unknown strategy with numbers",
        r#"{"/spec/updateStrategy": {"type": "Now", "rollingUpdate": {"partition": 2}}}"#,
        &["spec.updateStrategy: Invalid value: \
             {\"Type\":\"Now\",\"RollingUpdate\":{\"Partition\":2,\"MaxUnavailable\":null}}: must be \
             'RollingUpdate' or 'OnDelete'"],
    ),
    (
        "by hand with numbers",
        r#"{"/spec/updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}}"#,
        &["spec.updateStrategy.rollingUpdate: Invalid value: {\"Partition\":1,\"MaxUnavailable\":null}: \
             only allowed for updateStrategy 'RollingUpdate'"],
    ),
    (
        "by hand with the default",
        r#"{"/spec/updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}}"#,
        &["spec.updateStrategy.rollingUpdate: Invalid value: {\"Partition\":0,\"MaxUnavailable\":null}: \
             only allowed for updateStrategy 'RollingUpdate'"],
    ),
    ("by hand", r#"{"/spec/updateStrategy": {"type": "OnDelete"}}"#, &[]),
    ("rolled", r#"{"/spec/updateStrategy": {"type": "RollingUpdate"}}"#, &[]),
    ("a partition", r#"{"/spec/updateStrategy": {"rollingUpdate": {"partition": 7}}}"#, &[]),
    (
        "a negative partition",
        r#"{"/spec/updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": -1}}}"#,
        &["spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal \
             to 0"],
    ),
    (
        "unavailable ones",
        r#"{"/spec/updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}}}"#,
        &[],
    ),
    (
        "an unknown retention",
        r#"{
            "/spec/persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Keep", "whenScaled": "Burn"}
        }"#,
        &[
            "spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: \"Keep\": supported \
             values: \"Retain\", \"Delete\"",
            "spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: \"Burn\": supported \
             values: \"Retain\", \"Delete\"",
        ],
    ),
    (
        "negative numbers",
        r#"{"/spec/replicas": -1, "/spec/minReadySeconds": -1, "/spec/ordinals": {"start": -1}}"#,
        &[
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
            "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0",
        ],
    ),
    (
        "a bad service",
        r#"{"/spec/serviceName": "a.b"}"#,
        &["spec.serviceName: Invalid value: \"a.b\": must not contain dots"],
    ),
    (
        "an empty selector",
        r#"{"/spec/selector": {}}"#,
        &["spec.selector: Invalid value: {}: empty selector is invalid for statefulset"],
    ),
    (
        "a selector that does not match",
        r#"{"/spec/selector": {"matchLabels": {"app": "web"}}}"#,
        &["spec.template.metadata.labels: Invalid value: {\"app\":\"db\"}: `selector` does not match \
             template `labels`"],
    ),
    (
        "a bad label",
        r#"{"/spec/selector": {"matchLabels": {"app": "a b"}}}"#,
        &[
            "spec.selector.matchLabels: Invalid value: \"a b\": $LABEL",
            "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"a b\"}}",
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
        &["spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is \
             not Supported"],
    ),
    ("a negative history", r#"{"/spec/revisionHistoryLimit": -1}"#, &[]),
    ("a hostname", r#"{"/spec/template/spec/hostname": "a b"}"#, &[]),
];

#[test]
fn creates_are_validated() {
    creates("StatefulSet", MINIMAL, NEW);
}

const CHANGED: Rows = &[
    (
        "another selector",
        r#"{"/spec/selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}"#,
        &["spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', \
             'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' \
             and 'minReadySeconds' are forbidden"],
    ),
    (
        "another service",
        r#"{"/spec/serviceName": "other"}"#,
        &["spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', \
             'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' \
             and 'minReadySeconds' are forbidden"],
    ),
    (
        "another policy",
        r#"{"/spec/podManagementPolicy": "OrderedReady"}"#,
        &["spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', \
             'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' \
             and 'minReadySeconds' are forbidden"],
    ),
    ("another retention", r#"{"/spec/persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}"#, &[]),
    ("a negative history", r#"{"/spec/revisionHistoryLimit": -1}"#, &[]),
];

#[test]
fn immutable_fields_cannot_change() {
    let old = written("StatefulSet", RICH);
    updates("StatefulSet", &old, CHANGED);
}

/// A status.
const STATUS: &str = r#"{
    "observedGeneration": 2,
    "replicas": 5,
    "readyReplicas": 3,
    "availableReplicas": 2,
    "currentReplicas": 4,
    "updatedReplicas": 1,
    "currentRevision": "a",
    "updateRevision": "b",
    "collisionCount": 2
}"#;

const STATUSES: Rows = &[
    (
        "negative numbers",
        r#"{
            "observedGeneration": -1,
            "replicas": -1,
            "readyReplicas": -3,
            "availableReplicas": -4,
            "currentReplicas": -5,
            "updatedReplicas": -6,
            "collisionCount": -7
        }"#,
        &[
            "status.replicas: Invalid value: -1: must be greater than or equal to 0",
            "status.readyReplicas: Invalid value: -3: must be greater than or equal to 0",
            "status.currentReplicas: Invalid value: -5: must be greater than or equal to 0",
            "status.updatedReplicas: Invalid value: -6: must be greater than or equal to 0",
            "status.availableReplicas: Invalid value: -4: must be greater than or equal to 0",
            "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
            "status.collisionCount: Invalid value: -7: must be greater than or equal to 0",
            "status.collisionCount: Invalid value: -7: cannot be decremented",
        ],
    ),
    (
        "more than there are",
        r#"{
            "replicas": 1,
            "readyReplicas": 2,
            "availableReplicas": 3,
            "currentReplicas": 2,
            "updatedReplicas": 2
        }"#,
        &[
            "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
            "status.currentReplicas: Invalid value: 2: cannot be greater than status.replicas",
            "status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 3: cannot be greater than status.readyReplicas",
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
    let old = with_status("StatefulSet", RICH, STATUS);
    statuses("StatefulSet", &old, STATUSES);
}
