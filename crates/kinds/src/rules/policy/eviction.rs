//! Eviction: deletion of a Pod within its PodDisruptionBudgets.

use model::Object;
use model::condition::{condition, is_condition_true, set_condition};
use model::error::Error;
use model::object::{items, list_mut, map_mut, number, text, text_in, value};
use serde_json::{Value, json};

use crate::rules::selection::Selection;

/// The most evictions that the disruption controller has not confirmed; above that it is considered dead.
const MOST_UNCONFIRMED: usize = 2000;
const ALLOWED: &str = "DisruptionAllowed";

/// Decides whether a Pod may be evicted. Returns the updated PodDisruptionBudget, or `None` if no budget counts the
/// eviction.
///
/// # Errors
/// The reason why it may not.
pub fn evict(pod: &Object, budgets: &[Object], now: &str) -> Result<Option<Object>, Error> {
    let is_over = matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed" | "Pending");
    if is_over || !text(pod, &["metadata", "deletionTimestamp"]).is_empty() {
        return Ok(None);
    }
    let labels = value(pod, &["metadata", "labels"]);
    let is_concerned = |budget: &&Object| {
        let selector = Selection::read(value(budget, &["spec", "selector"]));
        selector.is_some_and(|selector| selector.matches(labels))
    };
    let mut concerned = budgets.iter().filter(is_concerned);
    let Some(budget) = concerned.next() else { return Ok(None) };
    if concerned.next().is_some() {
        let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(Error::Failed { message: message.to_owned() });
    }
    if !is_ready(pod) && spares_unready(budget) {
        return Ok(None);
    }
    counted(budget, text(pod, &["metadata", "name"]), now).map(Some)
}

/// Sets the `DisruptionTarget` condition of an evicted Pod.
pub fn note_eviction(pod: &mut Object, now: &str) {
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": null,
        "lastTransitionTime": now,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    });
    set_condition(list_mut(map_mut(pod, "status"), "conditions"), condition);
}

fn is_ready(pod: &Object) -> bool {
    is_condition_true(items(pod, &["status", "conditions"]), "Ready")
}

/// Whether a budget allows the eviction of unready Pods without counting them.
fn spares_unready(budget: &Object) -> bool {
    if text(budget, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow" {
        return true;
    }
    let (current, desired) =
        (number(budget, &["status", "currentHealthy"]), number(budget, &["status", "desiredHealthy"]));
    current >= desired && desired > 0
}

/// A budget with one more disrupted Pod.
fn counted(budget: &Object, pod: &str, now: &str) -> Result<Object, Error> {
    let name = text(budget, &["metadata", "name"]);
    let generation = number(budget, &["metadata", "generation"]);
    let allowed = number(budget, &["status", "disruptionsAllowed"]);
    let unconfirmed = value(budget, &["status", "disruptedPods"]).and_then(Value::as_object);
    if number(budget, &["status", "observedGeneration"]) < generation {
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return Err(Error::DisruptionBudget { cause, retry_after_seconds: 10 });
    }
    let forbidden = |message: &str| Error::Forbidden {
        group: "policy".to_owned(),
        resource: "poddisruptionbudget".to_owned(),
        name: name.to_owned(),
        message: message.to_owned(),
    };
    if allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    if unconfirmed.is_some_and(|pods| pods.len() > MOST_UNCONFIRMED) {
        let message = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(forbidden(message));
    }
    if allowed == 0 {
        return Err(Error::DisruptionBudget { cause: refusal_reason(budget, name), retry_after_seconds: 0 });
    }
    let mut budget = budget.clone();
    let status = map_mut(&mut budget, "status");
    status.insert("disruptionsAllowed".to_owned(), (allowed - 1).into());
    map_mut(status, "disruptedPods").insert(pod.to_owned(), now.into());
    if allowed == 1 {
        let condition = json!({
            "type": ALLOWED, "status": "False", "observedGeneration": generation,
            "lastTransitionTime": now, "reason": "InsufficientPods", "message": "",
        });
        set_condition(list_mut(map_mut(&mut budget, "status"), "conditions"), condition);
    }
    Ok(budget)
}

/// The reason why a budget allows no eviction.
fn refusal_reason(budget: &Object, name: &str) -> String {
    let (current, desired) =
        (number(budget, &["status", "currentHealthy"]), number(budget, &["status", "desiredHealthy"]));
    let condition = condition(items(budget, &["status", "conditions"]), ALLOWED);
    let told =
        condition.map(|condition| ["status", "reason", "message"].map(|field| text_in(condition, field)));
    match told {
        Some(["False", "SyncFailed", message]) if !message.is_empty() => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        ),
        _ if current <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently")
        }
        Some(["False", reason, message]) if !message.is_empty() => {
            format!(
                "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
            )
        }
        _ => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}
