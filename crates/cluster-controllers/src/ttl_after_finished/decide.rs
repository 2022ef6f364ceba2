//! The expiry of a finished Job.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::views::{Metadata, or_default};

/// The fields of a Job that this controller reads.
#[derive(Debug, Deserialize)]
pub(super) struct Job {
    pub metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    ttl_seconds_after_finished: Option<i32>,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default, deserialize_with = "or_default")]
    conditions: Vec<Condition>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    last_transition_time: Option<Timestamp>,
}

/// The expiry of a Job; `None` if it has no TTL, is not finished, or is being deleted.
pub(super) fn end(job: &Job) -> Option<Timestamp> {
    let kept = job.spec.ttl_seconds_after_finished.filter(|_| job.metadata.deletion_timestamp.is_none())?;
    let is_done = |condition: &&Condition| {
        condition.status == "True" && ["Complete", "Failed"].contains(&condition.kind.as_str())
    };
    let done = job.status.conditions.iter().find(is_done)?;
    done.last_transition_time?.checked_add(SignedDuration::from_secs(kept.into())).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(ttl: Value, conditions: Value) -> Job {
        serde_json::from_value(json!({
            "metadata": {"name": "j"}, "spec": {"ttlSecondsAfterFinished": ttl, "template": {}},
            "status": {"conditions": conditions, "active": 1},
        }))
        .unwrap()
    }

    #[test]
    fn a_finished_job_expires_after_its_ttl() {
        let done = |kind: &str, status: &str| {
            json!([{"type": "Suspended", "status": "True"},
                {"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}])
        };
        let ended = |seconds: i64| Timestamp::from_second(1_767_225_600 + seconds).ok();
        for (ttl, conditions, expected) in [
            (json!(60), done("Complete", "True"), ended(60)),
            (json!(0), done("Failed", "True"), ended(0)),
            (json!(60), done("Complete", "False"), None),
            (json!(60), done("FailureTarget", "True"), None),
            (Value::Null, done("Complete", "True"), None),
            (json!(60), json!([]), None),
            (json!(60), json!([{"type": "Complete", "status": "True"}]), None),
        ] {
            assert_eq!(end(&job(ttl.clone(), conditions.clone())), expected, "{ttl} {conditions}");
        }
        let mut going = job(json!(60), done("Complete", "True"));
        going.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH);
        assert_eq!(end(&going), None);
    }
}
