//! The quotas that have to be recalculated.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use quota::QuotaResource;
use serde::Deserialize;
use serde_json::Value;

/// The cached fields of a quota.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Raw")]
pub(super) struct Quota {
    /// The resources that it counts.
    pub resources: BTreeSet<QuotaResource>,
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
pub(super) enum WatchDetail {
    /// Metadata only: objects are counted.
    Count,
    /// All fields; every change may free something.
    Changes,
    /// All fields; only the termination of a Pod, or the start of its deletion, frees something.
    Ends,
}

/// The required fields of a resource.
pub(super) fn watch_detail(resource: &QuotaResource) -> WatchDetail {
    let QuotaResource { group, plural } = resource;
    match (group.as_str(), plural.as_str()) {
        ("", "pods") => WatchDetail::Ends,
        ("", "services" | "persistentvolumeclaims") | ("resource.k8s.io", "resourceclaims") => {
            WatchDetail::Changes
        }
        _ => WatchDetail::Count,
    }
}

/// Whether an update of an object may have reduced its use.
pub(super) fn may_free(object: &Object, watch_detail: WatchDetail) -> bool {
    match watch_detail {
        WatchDetail::Count => false,
        WatchDetail::Changes => true,
        WatchDetail::Ends => {
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
    fn a_quota_is_counted_if_its_status_matches_its_spec() {
        let (spec, hard) = (json!({"hard": {"pods": "1"}}), json!({"pods": "1"}));
        assert!(quota(&spec, &json!({"hard": hard, "used": {}})).is_counted);
        assert!(!quota(&spec, &json!({"hard": hard})).is_counted);
        assert!(!quota(&spec, &json!({"hard": {"pods": "2"}, "used": {}})).is_counted);
        assert!(!quota(&spec, &json!({})).is_counted);
        let scoped = json!({"hard": {"pods": "1"}, "scopes": ["BestEffort"]});
        assert_ne!(quota(&spec, &json!({})).spec, quota(&scoped, &json!({})).spec);
    }

    #[test]
    fn pods_free_usage_when_they_terminate_and_others_with_every_change() {
        let pods = QuotaResource::new("", "pods");
        let seen = |object: Value| may_free(&serde_json::from_value(object).unwrap(), watch_detail(&pods));
        assert!(!seen(json!({"metadata": {}, "spec": {}, "status": {"phase": "Running"}})));
        assert!(seen(json!({"metadata": {}, "spec": {}, "status": {"phase": "Failed"}})));
        assert!(seen(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}})));
        assert!(seen(json!({"metadata": {}, "spec": {"activeDeadlineSeconds": 1}})));
        let of = |group: &str, plural: &str| watch_detail(&QuotaResource::new(group, plural));
        assert_eq!(of("", "services"), WatchDetail::Changes);
        assert_eq!(of("apps", "deployments"), WatchDetail::Count);
    }
}
