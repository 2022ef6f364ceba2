//! The quotas that have to be recalculated.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use quota::Resource;
use serde::Deserialize;
use serde_json::Value;

/// The cached fields of a quota.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Raw")]
pub(super) struct Quota {
    /// The resources that it counts.
    pub resources: BTreeSet<Resource>,
    /// The hash of its spec.
    pub spec: u64,
    /// Whether its status matches its spec and has the use of all resources.
    pub is_counted: bool,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

impl From<Raw> for Quota {
    fn from(Raw { spec, status }: Raw) -> Self {
        let mut hasher = DefaultHasher::new();
        spec.to_string().hash(&mut hasher);
        Self {
            resources: quota::resources(spec.get("hard")),
            spec: hasher.finish(),
            is_counted: status.get("hard") == spec.get("hard") && status.get("used").is_some(),
        }
    }
}

/// The fields of a counted object that decide whether its change matters.
#[derive(Debug, Deserialize)]
pub(super) struct Object {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    deletion_timestamp: Option<Timestamp>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    active_deadline_seconds: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
}

/// The fields of a resource that must be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// Metadata only: objects are counted.
    Count,
    /// All fields; every change may free something.
    Changes,
    /// All fields; only the termination of a Pod, or the start of its deletion, frees something.
    Ends,
}

/// The required fields of a resource.
pub(super) fn sight((group, plural): &Resource) -> Sight {
    match (group.as_str(), plural.as_str()) {
        ("", "pods") => Sight::Ends,
        ("", "services" | "persistentvolumeclaims") | ("resource.k8s.io", "resourceclaims") => Sight::Changes,
        _ => Sight::Count,
    }
}

/// Whether an update of an object may have reduced its use.
pub(super) fn may_free(object: &Object, sight: Sight) -> bool {
    match sight {
        Sight::Count => false,
        Sight::Changes => true,
        Sight::Ends => {
            ["Failed", "Succeeded"].contains(&object.status.phase.as_str())
                || object.metadata.deletion_timestamp.is_some()
                || object.spec.active_deadline_seconds.is_some()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn quota(spec: &Value, status: &Value) -> Quota {
        serde_json::from_value(json!({"metadata": {"name": "q"}, "spec": spec, "status": status})).unwrap()
    }

    #[test]
    fn a_quota_is_counted_when_its_status_says_so() {
        let (spec, hard) = (json!({"hard": {"pods": "1"}}), json!({"pods": "1"}));
        assert!(quota(&spec, &json!({"hard": hard, "used": {}})).is_counted);
        assert!(!quota(&spec, &json!({"hard": hard})).is_counted);
        assert!(!quota(&spec, &json!({"hard": {"pods": "2"}, "used": {}})).is_counted);
        assert!(!quota(&spec, &json!({})).is_counted);
        let scoped = json!({"hard": {"pods": "1"}, "scopes": ["BestEffort"]});
        assert_ne!(quota(&spec, &json!({})).spec, quota(&scoped, &json!({})).spec);
    }

    #[test]
    fn pods_free_something_when_they_end_and_others_with_every_change() {
        let pods = ("".to_owned(), "pods".to_owned());
        let seen = |object: Value| may_free(&serde_json::from_value(object).unwrap(), sight(&pods));
        assert!(!seen(json!({"metadata": {}, "spec": {}, "status": {"phase": "Running"}})));
        assert!(seen(json!({"metadata": {}, "spec": {}, "status": {"phase": "Failed"}})));
        assert!(seen(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}})));
        assert!(seen(json!({"metadata": {}, "spec": {"activeDeadlineSeconds": 1}})));
        let of = |group: &str, plural: &str| sight(&(group.to_owned(), plural.to_owned()));
        assert_eq!(of("", "services"), Sight::Changes);
        assert_eq!(of("apps", "deployments"), Sight::Count);
    }
}
