//! The disruptions that a PodDisruptionBudget allows.

use std::collections::BTreeMap;

use controller::conditions;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::view::{Amount, Budget, Pod, Status};

/// The time after which an allowed eviction without a deletion is dropped.
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);
/// The condition that tells whether a Pod may be evicted.
const ALLOWED: &str = "DisruptionAllowed";

/// The decision about the status of a PodDisruptionBudget.
#[derive(Debug, PartialEq)]
pub struct Decision {
    /// The new status, if it changes.
    pub status: Option<Status>,
    /// The time of the next reconciliation, if time alone changes the status.
    pub again: Option<Timestamp>,
}

/// Whether a budget depends on the scale of the Pods' owners, and not on the number of existing Pods.
pub fn counts_by_owner(budget: &Budget) -> bool {
    budget.spec.max_unavailable.is_some() || matches!(budget.spec.min_available, Some(Amount::Share(_)))
}

/// Decides about the status of a budget with these Pods; `scale` is the total scale of their owners if the budget
/// [needs it](counts_by_owner), or the reason why it is unknown.
pub fn decide(budget: &Budget, pods: &[&Pod], scale: Result<i32, String>, now: Timestamp) -> Decision {
    let expected = match counts_by_owner(budget) {
        true => scale,
        false => Ok(i32::try_from(pods.len()).unwrap_or(i32::MAX)),
    };
    let desired = expected.and_then(|expected| Ok((expected, desired(budget, expected)?)));
    let (expected_pods, desired_healthy) = match desired {
        Ok(numbers) => numbers,
        Err(problem) => return Decision { status: failed(budget, problem, now), again: None },
    };
    let (disrupted_pods, again) = disrupted(budget, pods, now);
    let is_healthy =
        |pod: &&&Pod| !pod.is_ending() && !disrupted_pods.contains_key(&pod.metadata.name) && pod.is_ready();
    let current_healthy = i32::try_from(pods.iter().filter(is_healthy).count()).unwrap_or(i32::MAX);
    let room = current_healthy.saturating_sub(desired_healthy);
    let disruptions_allowed = if expected_pods > 0 { room.max(0) } else { 0 };
    let mut status = Status {
        observed_generation: budget.metadata.generation,
        disrupted_pods,
        disruptions_allowed,
        current_healthy,
        desired_healthy,
        expected_pods,
        conditions: budget.status.conditions.clone(),
    };
    let reason = if disruptions_allowed > 0 { "SufficientPods" } else { "InsufficientPods" };
    set_condition(&mut status, disruptions_allowed > 0, reason, String::new(), now);
    Decision { status: (!is_same(&status, &budget.status)).then_some(status), again }
}

/// The number of Pods that must be healthy.
fn desired(budget: &Budget, expected: i32) -> Result<i32, String> {
    match (&budget.spec.max_unavailable, &budget.spec.min_available) {
        (Some(most), _) => Ok((expected - of(most, expected)?).max(0)),
        (None, Some(least)) => of(least, expected),
        (None, None) => Ok(0),
    }
}

/// The number of Pods for an amount, rounded up.
fn of(amount: &Amount, all: i32) -> Result<i32, String> {
    let share = match amount {
        Amount::Number(number) => return Ok(*number),
        Amount::Share(share) => share.strip_suffix('%').and_then(|number| number.parse::<i64>().ok()),
    };
    let share = share.ok_or("invalid value for IntOrString: invalid type: string is not a percentage")?;
    let part = (i64::from(all) * share).div_euclid(100) + i64::from((i64::from(all) * share) % 100 > 0);
    Ok(i32::try_from(part).unwrap_or(i32::MAX))
}

/// The disrupted Pods that still exist, and the time at which the first of them is dropped.
fn disrupted(
    budget: &Budget,
    pods: &[&Pod],
    now: Timestamp,
) -> (BTreeMap<String, Timestamp>, Option<Timestamp>) {
    let still_there = |(name, since): &(&String, &Timestamp)| {
        let waits = since.checked_add(DELETION_TIMEOUT).is_ok_and(|end| end >= now);
        waits && pods.iter().any(|pod| pod.metadata.name == **name && !pod.is_ending())
    };
    let left = budget.status.disrupted_pods.iter().filter(still_there);
    let left: BTreeMap<String, Timestamp> = left.map(|(name, since)| (name.clone(), *since)).collect();
    let first = left.values().min().copied();
    (left, first.and_then(|first| first.checked_add(DELETION_TIMEOUT).ok()))
}

/// A status that allows no disruption, with the reason.
fn failed(budget: &Budget, problem: String, now: Timestamp) -> Option<Status> {
    let mut status = budget.status.clone();
    status.disruptions_allowed = 0;
    set_condition(&mut status, false, "SyncFailed", problem, now);
    (!is_same(&status, &budget.status)).then_some(status)
}

fn set_condition(status: &mut Status, allowed: bool, reason: &str, message: String, now: Timestamp) {
    let generation = Some(status.observed_generation).filter(|generation| *generation != 0);
    let new = conditions::new(ALLOWED, allowed.into(), reason, message, now);
    conditions::set(&mut status.conditions, Condition { observed_generation: generation, ..new });
}

/// Whether two statuses are equal, except for the observed generation of conditions.
fn is_same(a: &Status, b: &Status) -> bool {
    let bare = |status: &Status| {
        let mut status = status.clone();
        status.conditions.iter_mut().for_each(|condition| condition.observed_generation = None);
        status
    };
    bare(a) == bare(b)
}
