//! Decisions about PodDisruptionBudgets.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::decide::{Decision, decide};
use super::view::{Budget, Pod, Status};

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn budget(spec: Value, status: Value) -> Budget {
    let value = json!({"metadata": {"name": "b", "generation": 3}, "spec": spec, "status": status});
    serde_json::from_value(value).unwrap()
}

fn pod(name: &str, ready: bool, ending: bool) -> Pod {
    let ready = if ready { "True" } else { "False" };
    let mut value =
        json!({"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}]}});
    if ending {
        value["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    serde_json::from_value(value).unwrap()
}

fn of(budget: &Budget, pods: &[Pod], scale: Result<i32, String>) -> Decision {
    decide(budget, &pods.iter().collect::<Vec<_>>(), scale, now())
}

/// Expected, healthy, desired, allowed.
fn numbers(spec: Value, pods: &[Pod], scale: i32) -> (i32, i32, i32, i32) {
    let status = of(&budget(spec, json!({})), pods, Ok(scale)).status.unwrap();
    (status.expected_pods, status.current_healthy, status.desired_healthy, status.disruptions_allowed)
}

#[test]
fn amounts_are_numbers_or_percentages_of_the_scale() {
    let pods = ["a", "b", "c"].map(|name| pod(name, true, false));
    for (spec, wanted) in [
        (json!({"minAvailable": 2}), (3, 3, 2, 1)),
        (json!({"minAvailable": 5}), (3, 3, 5, 0)),
        (json!({"minAvailable": "50%"}), (5, 3, 3, 0)),
        (json!({"minAvailable": "40%"}), (5, 3, 2, 1)),
        (json!({"maxUnavailable": 1}), (5, 3, 4, 0)),
        (json!({"maxUnavailable": 9}), (5, 3, 0, 3)),
        (json!({"maxUnavailable": "50%"}), (5, 3, 2, 1)),
        (json!({}), (3, 3, 0, 3)),
    ] {
        assert_eq!(numbers(spec.clone(), &pods, 5), wanted, "{spec}");
    }
}

#[test]
fn no_disruption_is_allowed_without_pods() {
    assert_eq!(numbers(json!({"minAvailable": 0}), &[], 0), (0, 0, 0, 0));
    assert_eq!(numbers(json!({"maxUnavailable": 1}), &[], 0), (0, 0, 0, 0));
}

#[test]
fn only_ready_pods_that_are_not_deleted_count_as_healthy() {
    let pods = [pod("a", true, false), pod("b", false, false), pod("c", true, true)];
    assert_eq!(numbers(json!({"minAvailable": 1}), &pods, 0), (3, 1, 1, 0));
}

#[test]
fn an_allowed_eviction_counts_until_the_pod_is_deleted_or_a_timeout() {
    let ago = |seconds: i64| (now() - SignedDuration::from_secs(seconds)).to_string();
    let evicted = json!({"disruptedPods": {"a": ago(30), "b": ago(121), "c": ago(20), "gone": ago(1)}});
    let pods = [pod("a", true, false), pod("b", true, false), pod("c", true, true), pod("d", true, false)];
    let Decision { status, again } = of(&budget(json!({"minAvailable": 1}), evicted), &pods, Ok(0));
    let status = status.unwrap();
    assert_eq!(status.disrupted_pods.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!((status.current_healthy, status.disruptions_allowed), (2, 1));
    assert_eq!(again, Some(now() + SignedDuration::from_secs(90)));
}

#[test]
fn an_unchanged_status_is_not_written() {
    let pods = [pod("a", true, false)];
    let first = of(&budget(json!({"minAvailable": 0}), json!({})), &pods, Ok(0)).status.unwrap();
    assert_eq!(
        serde_json::to_value(&first).unwrap(),
        json!({
            "observedGeneration": 3, "disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0, "expectedPods": 1,
            "conditions": [{
                "type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods", "message": "",
                "observedGeneration": 3, "lastTransitionTime": "2026-01-01T12:00:00Z",
            }],
        })
    );
    let written = serde_json::to_value(&first).unwrap();
    let again = budget(json!({"minAvailable": 0}), written);
    assert_eq!(of(&again, &pods, Ok(0)), Decision { status: None, again: None });
}

#[test]
fn no_disruption_is_allowed_with_an_unknown_owner() {
    let before: Status = serde_json::from_value(json!({"disruptionsAllowed": 2, "expectedPods": 4})).unwrap();
    let old = budget(json!({"maxUnavailable": 1}), serde_json::to_value(before).unwrap());
    let status = of(&old, &[], Err("found no controllers for pod \"a\"".to_owned())).status.unwrap();
    assert_eq!((status.disruptions_allowed, status.expected_pods), (0, 4));
    let condition = &status.conditions[0];
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", "SyncFailed"));
    assert_eq!(condition.message, "found no controllers for pod \"a\"");
}
