//! Which quotas have to be counted again.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use quota::Resource;
use serde::Deserialize;
use serde_json::Value;

/// The cached part of a quota.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Raw")]
pub(super) struct Quota {
    /// The types that it counts.
    pub resources: BTreeSet<Resource>,
    /// Tells one spec from another.
    pub spec: u64,
    /// Whether its status says what its spec says, and what is in use.
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

/// An object that is counted, as far as changes of it count.
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

/// How much of the objects of a type has to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// That they are there.
    Count,
    /// All of them; every change may free something.
    Changes,
    /// All of them; of changes only those that end a Pod, or that make it one that ends.
    Ends,
}

/// How much has to be seen of a type.
pub(super) fn sight((group, plural): &Resource) -> Sight {
    match (group.as_str(), plural.as_str()) {
        ("", "pods") => Sight::Ends,
        ("", "services" | "persistentvolumeclaims") | ("resource.k8s.io", "resourceclaims") => Sight::Changes,
        _ => Sight::Count,
    }
}

/// Whether an object that is there may use less of something than before.
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
