//! Jobs.

use super::changes::{Rows, creates, made, updates, written};

/// A minimal object.
const MINIMAL: &str = r#"{
    "metadata": {"name": "minimal", "uid": "uid"},
    "spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work:1"}]}}
    }
}"#;

/// An object with most fields set.
const RICH: &str = r#"{
    "metadata": {"name": "rich", "labels": {"app": "oracle"}, "uid": "uid"},
    "spec": {
        "completionMode": "Indexed",
        "completions": 5,
        "parallelism": 2,
        "backoffLimitPerIndex": 1,
        "maxFailedIndexes": 3,
        "activeDeadlineSeconds": 100,
        "ttlSecondsAfterFinished": 60,
        "suspend": true,
        "managedBy": "example.com/controller",
        "podFailurePolicy": {
            "rules": [
                {
                    "action": "FailIndex",
                    "onExitCodes": {"containerName": "work", "operator": "In", "values": [1, 42]}
                },
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
            ]
        },
        "successPolicy": {"rules": [{"succeededIndexes": "0,2-4", "succeededCount": 1}]},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work:1"}]}
        }
    }
}"#;

/// The created object, without the Pod spec of its template.
const MINIMAL_MADE: &str = r#"{
    "metadata": {
        "labels": {
            "batch.kubernetes.io/controller-uid": "uid",
            "batch.kubernetes.io/job-name": "minimal",
            "controller-uid": "uid",
            "job-name": "minimal"
        },
        "name": "minimal",
        "uid": "uid"
    },
    "spec": {
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "completions": 1,
        "manualSelector": false,
        "parallelism": 1,
        "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid"}},
        "suspend": false,
        "template": {
            "metadata": {
                "labels": {
                    "batch.kubernetes.io/controller-uid": "uid",
                    "batch.kubernetes.io/job-name": "minimal",
                    "controller-uid": "uid",
                    "job-name": "minimal"
                }
            }
        }
    },
    "status": {}
}"#;

/// The created object, without the Pod spec of its template.
const RICH_MADE: &str = r#"{
    "metadata": {"labels": {"app": "oracle"}, "name": "rich", "uid": "uid"},
    "spec": {
        "activeDeadlineSeconds": 100,
        "backoffLimit": 2147483647,
        "backoffLimitPerIndex": 1,
        "completionMode": "Indexed",
        "completions": 5,
        "managedBy": "example.com/controller",
        "manualSelector": false,
        "maxFailedIndexes": 3,
        "parallelism": 2,
        "podFailurePolicy": {
            "rules": [
                {
                    "action": "FailIndex",
                    "onExitCodes": {"containerName": "work", "operator": "In", "values": [1, 42]}
                },
                {
                    "action": "Ignore",
                    "onPodConditions": [{"status": "True", "type": "DisruptionTarget"}]
                }
            ]
        },
        "podReplacementPolicy": "Failed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid"}},
        "successPolicy": {"rules": [{"succeededCount": 1, "succeededIndexes": "0,2-4"}]},
        "suspend": true,
        "template": {
            "metadata": {
                "labels": {
                    "a": "b",
                    "batch.kubernetes.io/controller-uid": "uid",
                    "batch.kubernetes.io/job-name": "rich",
                    "controller-uid": "uid",
                    "job-name": "rich"
                }
            }
        },
        "ttlSecondsAfterFinished": 60
    },
    "status": {}
}"#;

#[test]
fn defaults_are_set() {
    made("Job", MINIMAL, MINIMAL_MADE);
    made("Job", RICH, RICH_MADE);
}

const NEW: Rows = &[
    ("a name with dots", r#"{"/metadata/name": "a.b"}"#, &[]),
    (
        "negative numbers",
        r#"{
            "/spec/parallelism": -1,
            "/spec/completions": -1,
            "/spec/activeDeadlineSeconds": -1,
            "/spec/backoffLimit": -1,
            "/spec/ttlSecondsAfterFinished": -1
        }"#,
        &[
            "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
            "spec.completions: Invalid value: -1: must be greater than or equal to 0",
            "spec.activeDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
            "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
            "spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0",
        ],
    ),
    ("only parallelism", r#"{"/spec/parallelism": 3}"#, &[]),
    ("only completions", r#"{"/spec/completions": 3}"#, &[]),
    (
        "always",
        r#"{"/spec/template/spec/restartPolicy": "Always"}"#,
        &["spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""],
    ),
    (
        "no restarts",
        r#"{"/spec/template/spec/restartPolicy": "$unset"}"#,
        &["spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""],
    ),
    (
        "an unknown mode",
        r#"{"/spec/completionMode": "Other"}"#,
        &["spec.completionMode: Unsupported value: \"Other\": supported values: \"NonIndexed\", \
             \"Indexed\""],
    ),
    (
        "per index",
        r#"{"/spec/backoffLimitPerIndex": 1}"#,
        &["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
    ),
    (
        "failed indexes",
        r#"{"/spec/maxFailedIndexes": 1}"#,
        &[
            "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
            "spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode",
        ],
    ),
    (
        "a manager",
        r#"{"/spec/managedBy": "a b"}"#,
        &["spec.managedBy: Invalid value: \"a b\": must be a domain-prefixed path (such as \
             \"acme.io/foo\")"],
    ),
    (
        "a manager with a bad domain",
        r#"{"/spec/managedBy": "a b/c d"}"#,
        &[
            "spec.managedBy: Invalid value: \"a b\": $SUBDOMAIN",
            "spec.managedBy: Invalid value: \"c d\": Invalid path (regex used for validation is \
             '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')",
        ],
    ),
    (
        "a manager with a bad path",
        r#"{"/spec/managedBy": "a/c d"}"#,
        &["spec.managedBy: Invalid value: \"c d\": Invalid path (regex used for validation is \
             '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"],
    ),
    (
        "a long manager",
        r#"{
            "/spec/managedBy": "example.com/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        }"#,
        &["spec.managedBy: Too long: may not be more than 63 bytes"],
    ),
    ("no manager", r#"{"/spec/managedBy": ""}"#, &["spec.managedBy: Required value"]),
    (
        "a success policy",
        r#"{"/spec/successPolicy": {"rules": [{"succeededCount": 1, "succeededIndexes": "0"}]}}"#,
        &["spec.successPolicy: Invalid value: \
             {\"Rules\":[{\"SucceededIndexes\":\"0\",\"SucceededCount\":1}]}: requires indexed completion \
             mode"],
    ),
    (
        "a selector",
        r#"{"/spec/selector": {"matchLabels": {"a": "b"}}}"#,
        &[
            "spec.selector: Invalid value: \
             {\"matchLabels\":{\"a\":\"b\",\"batch.kubernetes.io/controller-uid\":\"uid\"}}: `selector` \
             not auto-generated",
            "spec.template.metadata.labels: Invalid value: \
             {\"batch.kubernetes.io/controller-uid\":\"uid\",\"batch.kubernetes.io/job-name\":\"minimal\",\"controller-uid\":\"uid\",\"job-name\":\"minimal\"}: \
             `selector` does not match template `labels`",
        ],
    ),
    (
        "a selector by hand",
        r#"{"/spec/manualSelector": true, "/spec/selector": {"matchLabels": {"a": "b"}}}"#,
        &["spec.template.metadata.labels: Invalid value: null: `selector` does not match template \
             `labels`"],
    ),
    (
        "no selector by hand",
        r#"{"/spec/manualSelector": true}"#,
        &[
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: null: `selector` does not match template \
             `labels`",
        ],
    ),
    ("an empty selector by hand", r#"{"/spec/manualSelector": true, "/spec/selector": {}}"#, &[]),
    (
        "a bad selector by hand",
        r#"{"/spec/manualSelector": true, "/spec/selector": {"matchLabels": {"a": "x y"}}}"#,
        &["spec.selector.matchLabels: Invalid value: \"x y\": $LABEL"],
    ),
    (
        "a foreign name",
        r#"{"/spec/template/metadata/labels": {"job-name": "other"}}"#,
        &["spec.template.metadata.labels[job-name]: Invalid value: \
             {\"batch.kubernetes.io/controller-uid\":\"uid\",\"batch.kubernetes.io/job-name\":\"minimal\",\"controller-uid\":\"uid\",\"job-name\":\"other\"}: \
             must be 'minimal'"],
    ),
    (
        "a foreign uid",
        r#"{
            "/spec/template/metadata/labels": {
                "controller-uid": "other",
                "batch.kubernetes.io/controller-uid": "other",
                "batch.kubernetes.io/job-name": "other"
            }
        }"#,
        &[
            "spec.template.metadata.labels[controller-uid]: Invalid value: \
             {\"batch.kubernetes.io/controller-uid\":\"other\",\"batch.kubernetes.io/job-name\":\"other\",\"controller-uid\":\"other\",\"job-name\":\"minimal\"}: \
             must be 'uid'",
            "spec.template.metadata.labels[batch.kubernetes.io/controller-uid]: Invalid value: \
             {\"batch.kubernetes.io/controller-uid\":\"other\",\"batch.kubernetes.io/job-name\":\"other\",\"controller-uid\":\"other\",\"job-name\":\"minimal\"}: \
             must be 'uid'",
            "spec.template.metadata.labels[batch.kubernetes.io/job-name]: Invalid value: \
             {\"batch.kubernetes.io/controller-uid\":\"other\",\"batch.kubernetes.io/job-name\":\"other\",\"controller-uid\":\"other\",\"job-name\":\"minimal\"}: \
             must be 'minimal'",
            "spec.template.metadata.labels: Invalid value: \
             {\"batch.kubernetes.io/controller-uid\":\"other\",\"batch.kubernetes.io/job-name\":\"other\",\"controller-uid\":\"other\",\"job-name\":\"minimal\"}: \
             `selector` does not match template `labels`",
        ],
    ),
    ("a replacement", r#"{"/spec/podReplacementPolicy": "Failed"}"#, &[]),
    (
        "an unknown replacement",
        r#"{"/spec/podReplacementPolicy": "Never"}"#,
        &["spec.podReplacementPolicy: Unsupported value: \"Never\": supported values: \"Failed\", \
             \"TerminatingOrFailed\""],
    ),
    ("a status", r#"{"/status": {"active": 3}}"#, &[]),
    (
        "labels of its own",
        r#"{"/metadata/labels": {"x": "z"}, "/spec/template/metadata/labels": {"a": "b"}}"#,
        &[],
    ),
    (
        "the same labels",
        r#"{"/metadata/labels": {"a": "b"}, "/spec/template/metadata/labels": {"a": "b"}}"#,
        &[],
    ),
    ("labels of pods", r#"{"/spec/template/metadata/labels": {"a": "b"}}"#, &[]),
];

#[test]
fn creates_are_validated() {
    creates("Job", MINIMAL, NEW);
}

const CHANGED: Rows = &[
    (
        "other completions",
        r#"{"/spec/completions": 7}"#,
        &["spec.completions: Invalid value: 7: can only be modified in tandem with spec.parallelism"],
    ),
    (
        "another selector",
        r#"{"/spec/selector": {"matchLabels": {"a": "b"}}}"#,
        &[
            "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: `selector` not auto-generated",
            "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: field is immutable",
        ],
    ),
    (
        "another mode",
        r#"{
            "/spec/completionMode": "NonIndexed",
            "/spec/backoffLimitPerIndex": "$unset",
            "/spec/maxFailedIndexes": "$unset",
            "/spec/successPolicy": "$unset",
            "/spec/podFailurePolicy": "$unset"
        }"#,
        &[
            "spec.completionMode: Invalid value: \"NonIndexed\": field is immutable",
            "spec.podFailurePolicy: Invalid value: null: field is immutable",
            "spec.backoffLimitPerIndex: Invalid value: null: field is immutable",
            "spec.successPolicy: Invalid value: null: field is immutable",
        ],
    ),
    (
        "no failure policy",
        r#"{"/spec/podFailurePolicy": "$unset"}"#,
        &["spec.podFailurePolicy: Invalid value: null: field is immutable"],
    ),
    (
        "another limit",
        r#"{"/spec/backoffLimitPerIndex": 2}"#,
        &["spec.backoffLimitPerIndex: Invalid value: 2: field is immutable"],
    ),
    (
        "another manager",
        r#"{"/spec/managedBy": "example.com/other"}"#,
        &["spec.managedBy: Invalid value: \"example.com/other\": field is immutable"],
    ),
    (
        "no success policy",
        r#"{"/spec/successPolicy": "$unset"}"#,
        &["spec.successPolicy: Invalid value: null: field is immutable"],
    ),
    ("another deadline", r#"{"/spec/activeDeadlineSeconds": 5}"#, &[]),
    ("another ttl", r#"{"/spec/ttlSecondsAfterFinished": "$unset"}"#, &[]),
];

#[test]
fn immutable_fields_cannot_change() {
    let old = written("Job", RICH);
    updates("Job", &old, CHANGED);
}
