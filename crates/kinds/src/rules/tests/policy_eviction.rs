//! Evictions: cases that cannot be recorded from a server without the disruption controller.

use model::error::Error;
use serde_json::json;

use super::*;

const NOW: &str = "2026-11-16T00:20:08Z";

fn asked(status: Value) -> Result<Option<Object>, Error> {
    let pod = json!({
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    let budget = json!({
        "metadata": {"name": "budget", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": status,
    });
    evict(pod.as_object().unwrap(), &[budget.as_object().unwrap().clone()], NOW)
}

fn refused(status: Value) -> Value {
    let error = asked(status).unwrap_err().status();
    error.pointer("/details/causes/0/message").unwrap_or(&error["message"]).clone()
}

#[test]
fn a_budget_explains_a_refused_eviction() {
    let condition = |reason: &str| json!([{"type": "DisruptionAllowed", "status": "False", "reason": reason, "message": "no such owner"}]);
    let healthy = json!({"observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1});
    let with = |field: &str, value: Value| {
        let mut status = healthy.clone();
        status[field] = value;
        status
    };
    for (status, expected) in [
        (healthy.clone(), "The disruption budget budget does not allow evicting pods currently"),
        (
            with("conditions", condition("SyncFailed")),
            "The disruption budget budget does not allow evicting pods currently because it failed sync: no such owner",
        ),
        (
            with("conditions", condition("Other")),
            "The disruption budget budget does not allow evicting pods currently (Other): no such owner",
        ),
        (
            with("disruptionsAllowed", json!(-1)),
            "poddisruptionbudget.policy \"budget\" is forbidden: pdb disruptions allowed is negative",
        ),
    ] {
        assert_eq!(refused(status.clone()), expected, "{status}");
    }
}

#[test]
fn the_last_eviction_that_is_allowed_changes_the_condition() {
    let status = |allowed: i64| json!({"observedGeneration": 1, "disruptionsAllowed": allowed});
    let last = Value::Object(asked(status(1)).unwrap().unwrap());
    assert_eq!(last["status"]["disruptionsAllowed"], 0);
    assert_eq!(last["status"]["disruptedPods"], json!({"web": NOW}));
    assert_eq!(last["status"]["conditions"][0]["reason"], "InsufficientPods");
    let one_of_two = Value::Object(asked(status(2)).unwrap().unwrap());
    assert_eq!(one_of_two["status"].get("conditions"), None);
}
