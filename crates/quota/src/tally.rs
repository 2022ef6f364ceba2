//! Recalculation of a quota's usage from all objects of its namespace.

use std::collections::{BTreeMap, BTreeSet};

use model::Object;
use model::object::present;
use serde_json::{Value, json};

use crate::Counted;
use crate::amounts::{Amount, Amounts, add, amounts};
use crate::scope::{Scope, scopes};

/// The resources that have quota names besides `count/…`, as group and plural name.
const NAMED: [(&str, &str); 8] = [
    ("", "configmaps"),
    ("", "persistentvolumeclaims"),
    ("", "pods"),
    ("", "replicationcontrollers"),
    ("", "resourcequotas"),
    ("", "secrets"),
    ("", "services"),
    ("resource.k8s.io", "resourceclaims"),
];

/// A resource to list for a recalculation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuotaResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name.
    pub plural: String,
}

impl QuotaResource {
    /// The resource with this group and plural name.
    pub fn new(group: &str, plural: &str) -> Self {
        Self { group: group.to_owned(), plural: plural.to_owned() }
    }
}

/// The resources that `spec.hard` of a quota constrains, served or not. Events are never counted.
pub fn resources(hard: Option<&Value>) -> BTreeSet<QuotaResource> {
    let names: Vec<&String> =
        hard.and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name).collect();
    let known = NAMED.iter().filter(|(group, plural)| {
        let counted = Counted { group, plural, now: 0 };
        names.iter().any(|name| counted.matches(name))
    });
    let known = known.map(|(group, plural)| QuotaResource::new(group, plural));
    let counted = names.iter().filter_map(|name| {
        let name = name.strip_prefix("count/")?;
        let (plural, group) = name.split_once('.').unwrap_or((name, ""));
        (plural != "events").then(|| QuotaResource::new(group, plural))
    });
    known.chain(counted).collect()
}

/// The recalculated usage of one quota.
pub struct Tally {
    hard: Amounts,
    scopes: Vec<Scope>,
    used: Amounts,
}

impl Tally {
    /// Starts with no usage.
    pub fn of(quota: &Object) -> Self {
        Self { hard: amounts(present(quota, &["spec", "hard"])), scopes: scopes(quota), used: Amounts::new() }
    }

    /// Declares that the objects of a resource are counted, so that its usage is reported even if it is zero.
    pub fn begin(&mut self, counted: Counted<'_>) {
        let names = self.hard.keys().filter(|name| counted.matches(name));
        for name in names {
            self.used.entry(name.clone()).or_insert_with(|| Amount::count(0));
        }
    }

    /// Adds the usage of one object.
    pub fn add(&mut self, counted: Counted<'_>, object: &Object) {
        if self.scopes.iter().all(|scope| scope.has(counted, object)) {
            let mut usage = counted.usage(object);
            usage.retain(|name, _| self.used.contains_key(name));
            add(&mut self.used, &usage);
        }
    }

    /// The new status of the quota; `None` if the present one is right. Resources that were not recalculated
    /// keep their usage.
    pub fn status(self, quota: &Object) -> Option<Value> {
        let [old_hard, mut used] = ["hard", "used"].map(|part| amounts(present(quota, &["status", part])));
        let old_used = used.clone();
        used.extend(self.used);
        used.retain(|name, _| self.hard.contains_key(name));
        let is_complete = ["hard", "used"].iter().all(|part| present(quota, &["status", part]).is_some());
        let is_right = is_complete && are_equal(&self.hard, &old_hard) && are_equal(&used, &old_used);
        (!is_right).then(|| json!({"hard": shown(&self.hard), "used": shown(&used)}))
    }
}

fn are_equal(a: &Amounts, b: &Amounts) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|((a, one), (b, two))| a == b && one.value == two.value)
}

fn shown(amounts: &Amounts) -> BTreeMap<&String, &String> {
    amounts.iter().map(|(name, amount)| (name, &amount.text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap()
    }

    fn counted(plural: &str) -> Counted<'_> {
        Counted { group: "", plural, now: 0 }
    }

    fn pod(cpu: &str, phase: &str) -> Object {
        object(json!({
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
            "status": {"phase": phase},
        }))
    }

    #[test]
    fn the_hard_limits_of_a_quota_select_the_counted_resources() {
        let of = |hard: &[&str]| {
            let hard: Value = hard.iter().map(|name| ((*name).to_owned(), json!("1"))).collect();
            resources(Some(&hard))
                .into_iter()
                .map(|QuotaResource { group, plural }| format!("{plural}.{group}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&["cpu", "pods", "limits.memory", "requests.nvidia.com/gpu"]), ["pods."]);
        assert_eq!(
            of(&["count/widgets.example.com", "gold.storageclass.storage.k8s.io/requests.storage"]),
            ["persistentvolumeclaims.", "widgets.example.com"]
        );
        assert_eq!(of(&["count/events", "count/events.events.k8s.io", "unknown"]), [""; 0]);
        assert_eq!(of(&["gpu.deviceclass.resource.k8s.io/devices"]), ["resourceclaims.resource.k8s.io"]);
    }

    #[test]
    fn the_usage_of_objects_in_scope_is_added_up() {
        let hard = json!({"cpu": "1000m", "pods": "10", "configmaps": "5", "strange": "1"});
        let quota = object(json!({"spec": {"hard": hard}}));
        let mut tally = Tally::of(&quota);
        tally.begin(counted("pods"));
        tally.add(counted("pods"), &pod("100m", "Running"));
        tally.add(counted("pods"), &pod("1500m", "Pending"));
        tally.add(counted("pods"), &pod("1", "Succeeded"));
        tally.begin(counted("configmaps"));
        assert_eq!(
            tally.status(&quota),
            Some(json!({
                "hard": {"configmaps": "5", "cpu": "1", "pods": "10", "strange": "1"},
                "used": {"configmaps": "0", "cpu": "1600m", "pods": "2"},
            }))
        );
        let scoped =
            object(json!({"spec": {"hard": {"pods": "1", "secrets": "2"}, "scopes": ["BestEffort"]}}));
        let mut tally = Tally::of(&scoped);
        tally.begin(counted("pods"));
        tally.add(counted("pods"), &pod("1", ""));
        tally.begin(counted("secrets"));
        tally.add(counted("secrets"), &object(json!({})));
        let used = tally.status(&scoped).map(|status| status["used"].clone());
        assert_eq!(used, Some(json!({"pods": "0", "secrets": "0"})));
    }

    #[test]
    fn a_correct_status_and_the_usage_of_uncounted_resources_are_kept() {
        let with = |status: Value| {
            object(json!({"spec": {"hard": {"configmaps": "2", "odd": "1"}}, "status": status}))
        };
        let counted_again = |quota: &Object| {
            let mut tally = Tally::of(quota);
            tally.begin(counted("configmaps"));
            tally.add(counted("configmaps"), &object(json!({})));
            tally.status(quota)
        };
        let hard = json!({"configmaps": "2", "odd": "1"});
        let right = with(json!({"hard": hard, "used": {"configmaps": "1", "odd": "7"}}));
        assert_eq!(counted_again(&right), None);
        let stale =
            with(json!({"hard": {"configmaps": "9"}, "used": {"configmaps": "3", "gone": "1", "odd": "7"}}));
        assert_eq!(
            counted_again(&stale),
            Some(json!({"hard": hard, "used": {"configmaps": "1", "odd": "7"}}))
        );
        assert!(counted_again(&with(json!({}))).is_some());
    }

    #[test]
    fn device_claims_are_charged_for_their_largest_alternative() {
        let exactly = |class: &str, mode: &str, count: i64| json!({"deviceClassName": class, "allocationMode": mode, "count": count});
        let claim = object(json!({"spec": {"devices": {"requests": [
            {"name": "a", "exactly": exactly("gpu", "ExactCount", 2)},
            {"name": "b", "firstAvailable": [exactly("gpu", "ExactCount", 4), exactly("tpu", "All", 0),
                exactly("gpu", "ExactCount", 3)]},
        ]}}}));
        let names = ["gpu.deviceclass.resource.k8s.io/devices", "tpu.deviceclass.resource.k8s.io/devices"];
        let quota = object(json!({"spec": {"hard": {names[0]: "1", names[1]: "1"}}}));
        let mut tally = Tally::of(&quota);
        let counted = Counted { group: "resource.k8s.io", plural: "resourceclaims", now: 0 };
        tally.begin(counted);
        tally.add(counted, &claim);
        let used = tally.status(&quota).map(|status| status["used"].clone());
        assert_eq!(used, Some(json!({names[0]: "6", names[1]: "32"})));
    }
}
