//! Tables: the conditions of a terminating namespace, and its next step.

use std::time::Duration;

use kube::api::ApiResource;

use super::decide::*;
use controller::ResourceKind;

const NOW: &str = "2026-01-01T00:00:00Z";

fn resource(group: &'static str, plural: &'static str) -> ApiResource {
    ResourceKind { group, version: "v1", kind: "Thing", plural }.resource()
}

fn found(objects: &[&[&str]]) -> RemainingObjects {
    let mut found = RemainingObjects::default();
    for finalizers in objects {
        found.add(&finalizers.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    }
    found
}

fn sweep(plural: &'static str, objects: &[&[&str]], estimate: i64) -> Sweep {
    Sweep::of("n", resource("", plural), found(objects), estimate)
}

/// The conditions that are true: type, reason and message.
fn troubles(findings: &Findings) -> Vec<(String, String, String)> {
    let all = conditions(&[], findings, NOW).expect("there were none before");
    assert_eq!(all.len(), 5);
    let bad = all.into_iter().filter(|condition| condition.status == "True");
    bad.map(|condition| (condition.name, condition.reason, condition.message)).collect()
}

fn trouble(name: &str, reason: &str, message: &str) -> (String, String, String) {
    (name.to_owned(), reason.to_owned(), message.to_owned())
}

#[test]
fn an_empty_namespace_is_finalized_with_all_conditions_false() {
    let findings = Findings { sweeps: vec![sweep("configmaps", &[], 0)], ..Findings::default() };
    assert_eq!(findings.step(), DeletionStep::Finalize);
    assert_eq!(troubles(&findings), []);
}

#[test]
fn a_namespace_waits_for_finalizers_and_reports_them_sorted() {
    let held = sweep("configmaps", &[&["b/x"], &["a/y", "b/x"]], 0);
    let other = Sweep::of("n", resource("apps", "deployments"), found(&[&["b/x"]]), 0);
    let findings = Findings { sweeps: vec![other, held], ..Findings::default() };
    assert_eq!(findings.step(), DeletionStep::Wait(Duration::from_secs(8)));
    assert_eq!(
        troubles(&findings),
        [
            trouble(
                "NamespaceContentRemaining",
                "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 2 resource instances, deployments.apps has 1 resource instances"
            ),
            trouble(
                "NamespaceFinalizersRemaining",
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: a/y in 1 resource instances, b/x in 3 resource instances"
            ),
        ]
    );
}

#[test]
fn other_objects_are_not_counted_while_pods_remain() {
    let findings =
        Findings { sweeps: vec![sweep("pods", &[&[]], 30)], are_pods_left: true, ..Findings::default() };
    assert_eq!(findings.step(), DeletionStep::Wait(Duration::from_secs(16)));
    assert_eq!(troubles(&findings), []);
}

#[test]
fn an_object_that_remains_without_a_finalizer_is_a_failure() {
    let findings = Findings { sweeps: vec![sweep("secrets", &[&[]], 0)], ..Findings::default() };
    let reason = "unexpected items still remain in namespace: n for gvr: /v1, Resource=secrets";
    assert_eq!(findings.step(), DeletionStep::Retry(reason.to_owned()));
    let message = format!("Failed to delete all resource types, 1 remaining: {reason}");
    let failure = trouble("NamespaceDeletionContentFailure", "ContentDeletionFailed", &message);
    assert_eq!(troubles(&findings)[0], failure);
}

#[test]
fn a_failed_discovery_of_a_group_is_reported_and_does_not_stop_the_deletion() {
    let mut findings = Findings::default();
    let group = "metrics.k8s.io/v1beta1";
    findings.unknown.insert(group.to_owned(), format!("stale GroupVersion discovery: {group}"));
    let text = format!(
        "unable to retrieve the complete list of server APIs: {group}: stale GroupVersion discovery: {group}"
    );
    assert_eq!(findings.step(), DeletionStep::Retry(text.clone()));
    let message = format!("Discovery failed for some groups, 1 failing: {text}");
    assert_eq!(
        troubles(&findings),
        [trouble("NamespaceDeletionDiscoveryFailure", "DiscoveryFailed", &message)]
    );
}

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let well = conditions(&[], &Findings::default(), NOW).unwrap();
    assert_eq!(conditions(&well, &Findings::default(), "2027-01-01T00:00:00Z"), None);
    let findings = Findings { sweeps: vec![sweep("configmaps", &[&["a/y"]], 0)], ..Findings::default() };
    let later = conditions(&well, &findings, "2027-01-01T00:00:00Z").unwrap();
    let times: Vec<_> = later.iter().map(|condition| condition.last_transition_time.as_deref()).collect();
    let (old, new) = (Some(NOW), Some("2027-01-01T00:00:00Z"));
    assert_eq!(times, [old, old, old, new, new]);
}
