//! Failure and success policies of Jobs.

use super::changes::{Rows, creates};

/// An indexed Job.
const INDEXED: &str = r#"{
    "metadata": {"name": "indexed", "uid": "uid"},
    "spec": {
        "completionMode": "Indexed",
        "completions": 5,
        "parallelism": 2,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "work", "image": "work:1"}],
                "initContainers": [{"name": "first", "image": "work:1"}]
            }
        }
    }
}"#;

const FAILURES: Rows = &[
    ("a policy", r#"{"/spec/podFailurePolicy": {"rules": []}}"#, &[]),
    (
        "with restarts",
        r#"{"/spec/podFailurePolicy": {"rules": []}, "/spec/template/spec/restartPolicy": "OnFailure"}"#,
        &["spec.template.spec.restartPolicy: Invalid value: \"OnFailure\": only \"Never\" is supported \
             when podFailurePolicy is specified"],
    ),
    (
        "with replacement",
        r#"{
            "/spec/podFailurePolicy": {"rules": []},
            "/spec/podReplacementPolicy": "TerminatingOrFailed"
        }"#,
        &["spec.podReplacementPolicy: Unsupported value: \"TerminatingOrFailed\": supported values: \
             \"Failed\""],
    ),
    (
        "no action",
        r#"{"/spec/podFailurePolicy": {"rules": [{"onPodConditions": [{"type": "A"}]}]}}"#,
        &["spec.podFailurePolicy.rules[0].action: Required value: valid values: [\"Count\" \"FailIndex\" \
             \"FailJob\" \"Ignore\"]"],
    ),
    (
        "an unknown action",
        r#"{
            "/spec/podFailurePolicy": {"rules": [{"action": "Cry", "onPodConditions": [{"type": "A"}]}]}
        }"#,
        &["spec.podFailurePolicy.rules[0].action: Unsupported value: \"Cry\": supported values: \
             \"Count\", \"FailIndex\", \"FailJob\", \"Ignore\""],
    ),
    (
        "an index",
        r#"{
            "/spec/podFailurePolicy": {"rules": [{"action": "FailIndex", "onPodConditions": [{"type": "A"}]}]}
        }"#,
        &["spec.podFailurePolicy.rules[0].action: Invalid value: \"FailIndex\": requires the \
             backoffLimitPerIndex to be set"],
    ),
    (
        "neither",
        r#"{"/spec/podFailurePolicy": {"rules": [{"action": "Ignore"}]}}"#,
        &["spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and \
             OnPodConditions is required"],
    ),
    (
        "both",
        r#"{
            "/spec/podFailurePolicy": {
                "rules": [
                    {
                        "action": "Ignore",
                        "onExitCodes": {"operator": "In", "values": [1]},
                        "onPodConditions": [{"type": "A"}]
                    }
                ]
            }
        }"#,
        &["spec.podFailurePolicy.rules[0]: Invalid value: specifying both OnExitCodes and \
             OnPodConditions is not supported"],
    ),
    (
        "bad conditions",
        r#"{
            "/spec/podFailurePolicy": {
                "rules": [{"action": "Ignore", "onPodConditions": [{"type": "a b", "status": "Maybe"}]}]
            }
        }"#,
        &[
            "spec.podFailurePolicy.rules[0].onPodConditions[0].type: Invalid value: \"a b\": name part \
             $QUALIFIED",
            "spec.podFailurePolicy.rules[0].onPodConditions[0].status: Unsupported value: \"Maybe\": \
             supported values: \"False\", \"True\", \"Unknown\"",
        ],
    ),
    (
        "no operator",
        r#"{
            "/spec/podFailurePolicy": {"rules": [{"action": "Ignore", "onExitCodes": {"values": [1]}}]}
        }"#,
        &["spec.podFailurePolicy.rules[0].onExitCodes.operator: Required value: valid values: [\"In\" \
             \"NotIn\"]"],
    ),
    (
        "an unknown operator",
        r#"{
            "/spec/podFailurePolicy": {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "Gt", "values": [1]}}]}
        }"#,
        &["spec.podFailurePolicy.rules[0].onExitCodes.operator: Unsupported value: \"Gt\": supported \
             values: \"In\", \"NotIn\""],
    ),
    (
        "another container",
        r#"{
            "/spec/podFailurePolicy": {
                "rules": [
                    {
                        "action": "Ignore",
                        "onExitCodes": {"containerName": "other", "operator": "In", "values": [1]}
                    }
                ]
            }
        }"#,
        &["spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: \"other\": must be \
             one of the container or initContainer names in the pod template"],
    ),
    (
        "a first container",
        r#"{
            "/spec/podFailurePolicy": {
                "rules": [
                    {
                        "action": "Ignore",
                        "onExitCodes": {"containerName": "first", "operator": "In", "values": [1]}
                    }
                ]
            }
        }"#,
        &[],
    ),
    (
        "no values",
        r#"{
            "/spec/podFailurePolicy": {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": []}}]}
        }"#,
        &["spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: []: at least one value is \
             required"],
    ),
    (
        "bad values",
        r#"{
            "/spec/podFailurePolicy": {
                "rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3, 0, 3]}}]
            }
        }"#,
        &[
            "spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the \
             In operator",
            "spec.podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 3",
            "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [3,0,3]: must be ordered",
        ],
    ),
    (
        "zero",
        r#"{
            "/spec/podFailurePolicy": {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [0]}}]}
        }"#,
        &[],
    ),
];

#[test]
fn failure_policies_are_validated() {
    creates("Job", INDEXED, FAILURES);
}

const INDEXES: Rows = &[
    (
        "no completions",
        r#"{"/spec/completions": "$unset"}"#,
        &["spec.completions: Required value: when completion mode is Indexed"],
    ),
    (
        "a long name",
        r#"{"/metadata/name": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#,
        &["metadata.name: Invalid value: \
             \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": will not able to create \
             pod with invalid DNS label: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-4"],
    ),
    (
        "too much at once",
        r#"{"/spec/parallelism": 100001}"#,
        &["spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion \
             mode is Indexed"],
    ),
    (
        "more failed than there are",
        r#"{"/spec/backoffLimitPerIndex": 1, "/spec/maxFailedIndexes": 6}"#,
        &["spec.maxFailedIndexes: Invalid value: 6: must be less than or equal to completions"],
    ),
    (
        "too many failed",
        r#"{
            "/spec/completions": 200000,
            "/spec/backoffLimitPerIndex": 1,
            "/spec/maxFailedIndexes": 100001
        }"#,
        &[
            "spec.maxFailedIndexes: Invalid value: 100001: must be less than or equal to 100000",
            "spec.maxFailedIndexes: Invalid value: 100001: must be less than or equal to 10000 when \
             completions are above 100000 and used with backoff limit per index",
        ],
    ),
    (
        "many",
        r#"{"/spec/completions": 200000, "/spec/parallelism": 20000, "/spec/backoffLimitPerIndex": 1}"#,
        &[
            "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000",
            "spec.parallelism: Invalid value: 20000: must be less than or equal to 10000 when completions \
             are above 100000 and used with backoff limit per index",
        ],
    ),
    ("many with a warning", r#"{"/spec/completions": 200000, "/spec/parallelism": 20000}"#, &[]),
    (
        "negative limits",
        r#"{"/spec/backoffLimitPerIndex": -1, "/spec/maxFailedIndexes": -1}"#,
        &[
            "spec.backoffLimitPerIndex: Invalid value: -1: must be greater than or equal to 0",
            "spec.maxFailedIndexes: Invalid value: -1: must be greater than or equal to 0",
        ],
    ),
    (
        "no rules",
        r#"{"/spec/successPolicy": {"rules": []}}"#,
        &["spec.successPolicy.rules: Required value: at least one rules must be specified when the \
             successPolicy is specified"],
    ),
    (
        "an empty rule",
        r#"{"/spec/successPolicy": {"rules": [{}]}}"#,
        &["spec.successPolicy.rules[0]: Required value: at least one of succeededCount or \
             succeededIndexes must be specified"],
    ),
    (
        "bad indexes",
        r#"{
            "/spec/successPolicy": {
                "rules": [
                    {"succeededIndexes": "a"},
                    {"succeededIndexes": "5"},
                    {"succeededIndexes": "1-2-3"},
                    {"succeededIndexes": "2-1"},
                    {"succeededIndexes": "1,1"},
                    {"succeededIndexes": "1-b"},
                    {"succeededIndexes": "1-9"}
                ]
            }
        }"#,
        &[
            "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"a\": error parsing \
             succeededIndexes: cannot convert string to integer for index: \"a\"",
            "spec.successPolicy.rules[1].succeededIndexes: Invalid value: \"5\": error parsing \
             succeededIndexes: too large index: \"5\"",
            "spec.successPolicy.rules[2].succeededIndexes: Invalid value: \"1-2-3\": error parsing \
             succeededIndexes: the fragment \"1-2-3\" violates the requirement that an index interval can \
             have at most two parts separated by '-'",
            "spec.successPolicy.rules[3].succeededIndexes: Invalid value: \"2-1\": error parsing \
             succeededIndexes: non-increasing order, previous: 2, current: 1",
            "spec.successPolicy.rules[4].succeededIndexes: Invalid value: \"1,1\": error parsing \
             succeededIndexes: non-increasing order, previous: 1, current: 1",
            "spec.successPolicy.rules[5].succeededIndexes: Invalid value: \"1-b\": error parsing \
             succeededIndexes: cannot convert string to integer for index: \"b\"",
            "spec.successPolicy.rules[6].succeededIndexes: Invalid value: \"1-9\": error parsing \
             succeededIndexes: too large index: \"9\"",
        ],
    ),
    (
        "bad counts",
        r#"{
            "/spec/successPolicy": {
                "rules": [
                    {"succeededCount": -1},
                    {"succeededCount": 6},
                    {"succeededCount": 3, "succeededIndexes": "0-1"}
                ]
            }
        }"#,
        &[
            "spec.successPolicy.rules[0].succeededCount: Invalid value: -1: must be greater than or equal \
             to 0",
            "spec.successPolicy.rules[1].succeededCount: Invalid value: 6: must be less than or equal to 5 \
             (the number of specified completions)",
            "spec.successPolicy.rules[2].succeededCount: Invalid value: 3: must be less than or equal to 2 \
             (the number of indexes in the specified succeededIndexes field)",
        ],
    ),
    ("a default limit", r#"{"/spec/backoffLimitPerIndex": 1}"#, &[]),
];

#[test]
fn indexes_are_validated() {
    creates("Job", INDEXED, INDEXES);
}
