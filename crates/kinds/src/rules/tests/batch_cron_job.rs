//! Cron jobs.

use super::changes::{Rows, creates, made};

/// A minimal object.
const MINIMAL: &str = r#"{
    "metadata": {"name": "minimal"},
    "spec": {
        "schedule": "*/5 * * * *",
        "jobTemplate": {
            "spec": {
                "template": {
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work:1"}]}
                }
            }
        }
    }
}"#;

/// An object with most fields set.
const RICH: &str = r#"{
    "metadata": {"name": "rich", "labels": {"app": "oracle"}},
    "spec": {
        "schedule": "@daily",
        "timeZone": "Europe/Berlin",
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": 30,
        "successfulJobsHistoryLimit": 0,
        "failedJobsHistoryLimit": 7,
        "suspend": true,
        "jobTemplate": {
            "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
            "spec": {
                "completions": 2,
                "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
                "template": {
                    "metadata": {"labels": {"e": "f"}},
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "work", "image": "work:1"}, {"name": "more", "image": "more"}]
                    }
                }
            }
        }
    }
}"#;

/// The created object, without the Pod spec of its template.
const MINIMAL_MADE: &str = r#"{
    "metadata": {"name": "minimal"},
    "spec": {
        "concurrencyPolicy": "Allow",
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {"metadata": {}, "spec": {"template": {"metadata": {}}}},
        "schedule": "*/5 * * * *",
        "successfulJobsHistoryLimit": 3,
        "suspend": false
    },
    "status": {}
}"#;

/// The created object, without the Pod spec of its template.
const RICH_MADE: &str = r#"{
    "metadata": {"labels": {"app": "oracle"}, "name": "rich"},
    "spec": {
        "concurrencyPolicy": "Forbid",
        "failedJobsHistoryLimit": 7,
        "jobTemplate": {
            "metadata": {"annotations": {"c": "d"}, "labels": {"a": "b"}},
            "spec": {
                "completions": 2,
                "podFailurePolicy": {
                    "rules": [
                        {
                            "action": "Ignore",
                            "onPodConditions": [{"status": "True", "type": "DisruptionTarget"}]
                        }
                    ]
                },
                "template": {"metadata": {"labels": {"e": "f"}}}
            }
        },
        "schedule": "@daily",
        "startingDeadlineSeconds": 30,
        "successfulJobsHistoryLimit": 0,
        "suspend": true,
        "timeZone": "Europe/Berlin"
    },
    "status": {}
}"#;

#[test]
fn defaults_are_set() {
    made("CronJob", MINIMAL, MINIMAL_MADE);
    made("CronJob", RICH, RICH_MADE);
}

const NEW: Rows = &[
    ("a name with dots", r#"{"/metadata/name": "a.b"}"#, &[]),
    (
        "a long name",
        r#"{"/metadata/name": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#,
        &["metadata.name: Invalid value: \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": must \
             be no more than 52 characters"],
    ),
    (
        "a negative deadline",
        r#"{"/spec/startingDeadlineSeconds": -1}"#,
        &["spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        "negative limits",
        r#"{"/spec/successfulJobsHistoryLimit": -1, "/spec/failedJobsHistoryLimit": -1}"#,
        &[
            "spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
            "spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
        ],
    ),
    (
        "an unknown policy",
        r#"{"/spec/concurrencyPolicy": "Maybe"}"#,
        &["spec.concurrencyPolicy: Unsupported value: \"Maybe\": supported values: \"Allow\", \
             \"Forbid\", \"Replace\""],
    ),
    (
        "a selector",
        r#"{"/spec/jobTemplate/spec/selector": {"matchLabels": {"a": "b"}}}"#,
        &["spec.jobTemplate.spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: `selector` \
             will be auto-generated"],
    ),
    (
        "a manual selector",
        r#"{"/spec/jobTemplate/spec/manualSelector": true}"#,
        &["spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: \"nil\", \
             \"false\""],
    ),
    ("a selector that is not manual", r#"{"/spec/jobTemplate/spec/manualSelector": false}"#, &[]),
    (
        "no restarts",
        r#"{"/spec/jobTemplate/spec/template/spec/restartPolicy": "$unset"}"#,
        &["spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: \
             \"OnFailure\", \"Never\""],
    ),
    (
        "negative completions",
        r#"{"/spec/jobTemplate/spec/completions": -1}"#,
        &["spec.jobTemplate.spec.completions: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        "an empty zone",
        r#"{"/spec/timeZone": ""}"#,
        &["spec.timeZone: Invalid value: \"\": timeZone must be nil or non-empty string"],
    ),
    (
        "the local zone",
        r#"{"/spec/timeZone": "Local"}"#,
        &["spec.timeZone: Invalid value: \"Local\": timeZone must be an explicit time zone as defined in \
             https://www.iana.org/time-zones"],
    ),
    (
        "the local zone in small letters",
        r#"{"/spec/timeZone": "local"}"#,
        &[
            "spec.timeZone: Invalid value: \"local\": timeZone must be an explicit time zone as defined in \
             https://www.iana.org/time-zones",
            "spec.timeZone: Invalid value: \"local\": unknown time zone local",
        ],
    ),
    ("UTC", r#"{"/spec/timeZone": "UTC"}"#, &[]),
    ("Etc/UTC", r#"{"/spec/timeZone": "Etc/UTC"}"#, &[]),
    (
        "a zone with small letters",
        r#"{"/spec/timeZone": "europe/berlin"}"#,
        &["spec.timeZone: Invalid value: \"europe/berlin\": unknown time zone europe/berlin"],
    ),
    (
        "an unknown zone",
        r#"{"/spec/timeZone": "Europe/Atlantis"}"#,
        &["spec.timeZone: Invalid value: \"Europe/Atlantis\": unknown time zone Europe/Atlantis"],
    ),
    (
        "a zone with dots",
        r#"{"/spec/timeZone": "../etc"}"#,
        &["spec.timeZone: Invalid value: \"../etc\": unknown time zone ../etc"],
    ),
    (
        "a zone with a dash",
        r#"{"/spec/timeZone": "Europe/-Berlin"}"#,
        &["spec.timeZone: Invalid value: \"Europe/-Berlin\": unknown time zone Europe/-Berlin"],
    ),
    (
        "a zone with a slash",
        r#"{"/spec/timeZone": "/Europe/Berlin"}"#,
        &["spec.timeZone: Invalid value: \"/Europe/Berlin\": unknown time zone /Europe/Berlin"],
    ),
    (
        "a zone with a space",
        r#"{"/spec/timeZone": "Europe Berlin"}"#,
        &["spec.timeZone: Invalid value: \"Europe Berlin\": unknown time zone Europe Berlin"],
    ),
    ("a zone with three parts", r#"{"/spec/timeZone": "America/Argentina/Buenos_Aires"}"#, &[]),
    ("a zone with a number", r#"{"/spec/timeZone": "Etc/GMT+5"}"#, &[]),
    (
        "a zone in the schedule",
        r#"{"/spec/schedule": "TZ=UTC 0 0 * * *"}"#,
        &["spec.schedule: Invalid value: \"TZ=UTC 0 0 * * *\": cannot use TZ or CRON_TZ in schedule, use \
             timeZone field instead"],
    ),
    (
        "an unknown zone in the schedule",
        r#"{"/spec/schedule": "CRON_TZ=Nowhere 0 0 * * *"}"#,
        &[
            "spec.schedule: Invalid value: \"CRON_TZ=Nowhere 0 0 * * *\": provided bad location Nowhere: \
             unknown time zone Nowhere",
            "spec.schedule: Invalid value: \"CRON_TZ=Nowhere 0 0 * * *\": cannot use TZ or CRON_TZ in \
             schedule, use timeZone field instead",
        ],
    ),
    (
        "a zone and nothing else",
        r#"{"/spec/schedule": "TZ=UTC"}"#,
        &[
            "spec.schedule: Invalid value: \"TZ=UTC\": invalid schedule format: runtime error: slice \
             bounds out of range [:-1]",
            "spec.schedule: Invalid value: \"TZ=UTC\": cannot use TZ or CRON_TZ in schedule, use timeZone \
             field instead",
        ],
    ),
];

#[test]
fn creates_are_validated() {
    creates("CronJob", MINIMAL, NEW);
}
