//! The status of jobs.

use super::changes::{Rows, statuses, with_status};

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
        "completions": 6,
        "parallelism": 6,
        "backoffLimitPerIndex": 1,
        "maxFailedIndexes": 3,
        "activeDeadlineSeconds": 100,
        "ttlSecondsAfterFinished": 60,
        "suspend": false,
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

/// The status of a running Job.
const RUNNING: &str = r#"{
    "active": 2,
    "ready": 1,
    "terminating": 0,
    "succeeded": 2,
    "failed": 1,
    "startTime": "2020-01-01T00:00:00Z",
    "completedIndexes": "0,2",
    "failedIndexes": "1",
    "uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["b"]}
}"#;

/// The status of a complete Job.
const DONE: &str = r#"{
    "active": 0,
    "ready": 0,
    "terminating": 0,
    "succeeded": 2,
    "failed": 1,
    "startTime": "2020-01-01T00:00:00Z",
    "completedIndexes": "0,2",
    "failedIndexes": "1",
    "completionTime": "2020-01-01T01:00:00Z",
    "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]
}"#;

const STATUSES: Rows = &[
    (
        "negative numbers",
        r#"{"active": -1, "succeeded": -1, "failed": -1, "ready": -1, "terminating": -1}"#,
        &[
            "status.active: Invalid value: -1: must be greater than or equal to 0",
            "status.succeeded: Invalid value: -1: must be greater than or equal to 0",
            "status.failed: Invalid value: -1: must be greater than or equal to 0",
            "status.ready: Invalid value: -1: must be greater than or equal to 0",
            "status.terminating: Invalid value: -1: must be greater than or equal to 0",
            "status.failed: Invalid value: -1: cannot decrease the failed counter",
        ],
    ),
    (
        "uncounted pods",
        r#"{"uncountedTerminatedPods": {"succeeded": ["", "a", "a"], "failed": ["", "a", "c", "c"]}}"#,
        &[
            "status.uncountedTerminatedPods.succeeded[0]: Invalid value: \"\": must not be empty",
            "status.uncountedTerminatedPods.succeeded[2]: Duplicate value: \"a\"",
            "status.uncountedTerminatedPods.failed[0]: Invalid value: \"\": must not be empty",
            "status.uncountedTerminatedPods.failed[1]: Duplicate value: \"a\"",
            "status.uncountedTerminatedPods.failed[3]: Duplicate value: \"c\"",
        ],
    ),
    (
        "complete",
        r#"{"conditions": [{"type": "Complete", "status": "True"}]}"#,
        &[
            "status.completionTime: Required value: completionTime is required for Complete jobs",
            "status.conditions: Invalid value: cannot set Complete=True condition without the \
             SuccessCriteriaMet=true condition",
            "status.active: Invalid value: 2: active>0 is invalid for finished job",
            "status.uncountedTerminatedPods: Invalid value: {\"Succeeded\":[\"a\"],\"Failed\":[\"b\"]}: \
             must be empty for finished job",
            "status.conditions: Invalid value: cannot set Complete=True for Job with SuccessPolicy unless \
             SuccessCriteriaMet=True",
        ],
    ),
    (
        "complete and failed",
        r#"{
            "active": 0,
            "ready": 0,
            "completionTime": "2020-01-01T01:00:00Z",
            "uncountedTerminatedPods": {"succeeded": null, "failed": null},
            "conditions": [
                {"type": "Complete", "status": "True"},
                {"type": "Failed", "status": "True"},
                {"type": "FailureTarget", "status": "True"},
                {"type": "SuccessCriteriaMet", "status": "True"}
            ]
        }"#,
        &[
            "status.conditions: Invalid value: cannot set Complete=True and Failed=true conditions",
            "status.conditions: Invalid value: cannot set Complete=True and FailureTarget=true conditions",
            "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and Failed=true \
             conditions",
            "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true \
             conditions",
        ],
    ),
    (
        "failed",
        r#"{"conditions": [{"type": "Failed", "status": "True"}]}"#,
        &[
            "status.conditions: Invalid value: cannot set Failed=True condition without the \
             FailureTarget=true condition",
            "status.active: Invalid value: 2: active>0 is invalid for finished job",
            "status.uncountedTerminatedPods: Invalid value: {\"Succeeded\":[\"a\"],\"Failed\":[\"b\"]}: \
             must be empty for finished job",
        ],
    ),
    (
        "completed too early",
        r#"{"completionTime": "2019-01-01T00:00:00Z"}"#,
        &[
            "status.completionTime: Invalid value: \"2019-01-01T00:00:00Z\": cannot set completionTime \
             when there is no Complete=True condition",
            "status.completionTime: Invalid value: \"2019-01-01T00:00:00Z\": must be equal to or after \
             `startTime`",
        ],
    ),
    (
        "fewer failures",
        r#"{"failed": 0}"#,
        &["status.failed: Invalid value: 0: cannot decrease the failed counter"],
    ),
    ("fewer successes", r#"{"succeeded": 0}"#, &[]),
    (
        "another start",
        r#"{"startTime": "2021-01-01T00:00:00Z"}"#,
        &["status.startTime: Required value: startTime cannot be removed for unsuspended job"],
    ),
    (
        "bad indexes",
        r#"{"completedIndexes": "3,1", "failedIndexes": "x"}"#,
        &[
            "status.completedIndexes: Invalid value: \"3,1\": error parsing completedIndexes: \
             non-increasing order, previous: 3, current: 1",
            "status.failedIndexes: Invalid value: \"x\": error parsing failedIndexes: cannot convert \
             string to integer for index: \"x\"",
        ],
    ),
    (
        "large indexes",
        r#"{"completedIndexes": "1-2-3", "failedIndexes": "0-99"}"#,
        &[
            "status.completedIndexes: Invalid value: \"1-2-3\": error parsing completedIndexes: the \
             fragment \"1-2-3\" violates the requirement that an index interval can have at most two parts \
             separated by '-'",
            "status.failedIndexes: Invalid value: \"0-99\": error parsing failedIndexes: too large index: \
             \"99\"",
        ],
    ),
    (
        "the same indexes",
        r#"{"completedIndexes": "0-3", "failedIndexes": "2"}"#,
        &["status.failedIndexes: Invalid value: \"2\": failedIndexes and completedIndexes overlap at \
             index: 2"],
    ),
    (
        "more ready",
        r#"{"ready": 3}"#,
        &["status.ready: Invalid value: 3: cannot set more ready pods than active"],
    ),
    (
        "done",
        r#"{
            "active": 0,
            "ready": 0,
            "completionTime": "2020-01-01T01:00:00Z",
            "uncountedTerminatedPods": {"succeeded": null, "failed": null},
            "conditions": [
                {"type": "Complete", "status": "True"},
                {"type": "SuccessCriteriaMet", "status": "True"}
            ]
        }"#,
        &[],
    ),
];

#[test]
fn status_updates_are_validated() {
    let old = with_status("Job", RICH, RUNNING);
    statuses("Job", &old, STATUSES);
}

const AFTER_THE_END: Rows = &[
    (
        "not done",
        r#"{"conditions": []}"#,
        &[
            "status.completionTime: Invalid value: \"2020-01-01T01:00:00Z\": cannot set completionTime \
             when there is no Complete=True condition",
            "status.conditions: Invalid value: cannot disable the terminal Complete=True condition",
            "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition",
        ],
    ),
    (
        "another time",
        r#"{"completionTime": "2020-01-01T02:00:00Z"}"#,
        &["status.completionTime: Invalid value: \"2020-01-01T02:00:00Z\": field is immutable"],
    ),
    (
        "active again",
        r#"{"active": 1}"#,
        &["status.active: Invalid value: 1: active>0 is invalid for finished job"],
    ),
    (
        "terminating",
        r#"{"terminating": 1}"#,
        &["status.terminating: Invalid value: 1: terminating>0 is invalid for finished job"],
    ),
    (
        "no time",
        r#"{"completionTime": null}"#,
        &["status.completionTime: Required value: completionTime is required for Complete jobs"],
    ),
    (
        "no start",
        r#"{"startTime": null}"#,
        &[
            "status.startTime: Required value: startTime is required for finished job",
            "status.startTime: Required value: startTime cannot be removed for unsuspended job",
        ],
    ),
];

#[test]
fn a_finished_job_stays_finished() {
    let old = with_status("Job", RICH, DONE);
    statuses("Job", &old, AFTER_THE_END);
}

const OF_A_PLAIN_ONE: Rows = &[
    (
        "indexes",
        r#"{"completedIndexes": "0", "failedIndexes": "0"}"#,
        &[
            "status.completedIndexes: Invalid value: \"0\": cannot set non-empty completedIndexes when \
             non-indexed completion mode",
            "status.failedIndexes: Invalid value: \"0\": cannot set non-null failedIndexes when \
             backoffLimitPerIndex is null",
            "status.failedIndexes: Invalid value: \"0\": failedIndexes and completedIndexes overlap at \
             index: 0",
        ],
    ),
    (
        "done",
        r#"{
            "startTime": "2020-01-01T00:00:00Z",
            "completionTime": "2020-01-01T01:00:00Z",
            "conditions": [
                {"type": "SuccessCriteriaMet", "status": "True"},
                {"type": "Complete", "status": "True"}
            ]
        }"#,
        &[],
    ),
    (
        "failed",
        r#"{
            "startTime": "2020-01-01T00:00:00Z",
            "conditions": [{"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": "True"}]
        }"#,
        &[],
    ),
];

#[test]
fn the_status_of_a_non_indexed_job_is_validated() {
    let old = with_status("Job", MINIMAL, "{}");
    statuses("Job", &old, OF_A_PLAIN_ONE);
}
