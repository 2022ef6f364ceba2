//! Validation of a Job's status: most rules apply only to changed fields.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::object::{is_true, items, number, text, value};
use serde_json::Value;

use super::{INDEXED, is_condition};
use crate::rules::batch::indexes;
use crate::rules::go::{Fields, Go, OPTIONAL};
use crate::rules::workload::{invalid_shown, map_at, negative, optional, present};

const UNCOUNTED: Fields = &[("succeeded", OPTIONAL), ("failed", OPTIONAL)];

/// A Job before and after a status update.
struct StatusUpdate<'a> {
    new: &'a Object,
    old: &'a Object,
}

/// Validates a new status.
pub(super) fn validate(new: &Object, old: &Object) -> Vec<FieldError> {
    let Some(status) = map_at(new, &["status"]) else { return Vec::new() };
    let change = StatusUpdate { new, old };
    let mut errors =
        negative(status, &Path::STATUS, &["active", "succeeded", "failed", "ready", "terminating"]);
    errors.extend(bad_uncounted_pods(new));
    errors.extend(change.bad_ends());
    errors.extend(change.bad_end_of_pods());
    errors.extend(change.bad_indexes());
    errors.extend(change.bad_counts());
    errors.extend(change.bad_success());
    errors.extend(change.bad_reversals());
    errors
}

/// Reports empty or duplicate uids.
fn bad_uncounted_pods(object: &Object) -> Vec<FieldError> {
    let mut seen = BTreeSet::new();
    let mut errors = Vec::new();
    let pods = Path::STATUS.field("uncountedTerminatedPods");
    for list in ["succeeded", "failed"] {
        for (index, uid) in items(object, &["status", "uncountedTerminatedPods", list]).iter().enumerate() {
            let path = pods.item(list, index);
            let uid = uid.as_str().unwrap_or_default();
            if uid.is_empty() {
                errors.push(FieldError::invalid(path, uid, "must not be empty"));
            } else if !seen.insert(uid) {
                errors.push(FieldError::duplicate(path, uid));
            }
        }
    }
    errors
}

fn bad_conditions(detail: &str) -> FieldError {
    FieldError { value: None, ..FieldError::invalid("status.conditions", "", detail) }
}

fn status<'a>(object: &'a Object, field: &str) -> Option<&'a Value> {
    present(object, &["status", field])
}

fn is_finished(object: &Object) -> bool {
    is_condition(object, "Complete") || is_condition(object, "Failed")
}

impl StatusUpdate<'_> {
    fn is(&self, condition: &str) -> bool {
        is_condition(self.new, condition)
    }

    fn was(&self, condition: &str) -> bool {
        is_condition(self.old, condition)
    }

    /// Whether one of these conditions became true or false.
    fn has_changed_condition(&self, conditions: &[&str]) -> bool {
        conditions.iter().any(|condition| self.is(condition) != self.was(condition))
    }

    /// Whether one of these fields changed.
    fn changes(&self, fields: &[&str]) -> bool {
        fields.iter().any(|field| status(self.new, field) != status(self.old, field))
    }

    fn turns_finished(&self) -> bool {
        is_finished(self.new) != is_finished(self.old)
    }

    fn is_indexed(&self) -> bool {
        text(self.new, &["spec", "completionMode"]) == INDEXED
    }

    /// Reports contradictory conditions and times.
    fn bad_ends(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let is_complete = self.is("Complete");
        if self.has_changed_condition(&["Complete", "Failed"]) && is_complete && self.is("Failed") {
            errors.push(bad_conditions("cannot set Complete=True and Failed=true conditions"));
        }
        if self.has_changed_condition(&["Complete", "FailureTarget"])
            && is_complete
            && self.is("FailureTarget")
        {
            errors.push(bad_conditions("cannot set Complete=True and FailureTarget=true conditions"));
        }
        let end = status(self.new, "completionTime");
        let start = status(self.new, "startTime");
        let mut wrong_end = |detail: &str| {
            let end = end.cloned().unwrap_or_default();
            errors.push(FieldError::invalid("status.completionTime", end, detail));
        };
        if self.has_changed_condition(&["Complete"]) || self.changes(&["completionTime"]) {
            match (end, is_complete) {
                (Some(_), false) => {
                    wrong_end("cannot set completionTime when there is no Complete=True condition");
                }
                (None, true) => errors.push(FieldError::required(
                    "status.completionTime",
                    "completionTime is required for Complete jobs",
                )),
                _ => {}
            }
        }
        // Times have one format, so that their text order is their time order.
        if self.changes(&["startTime", "completionTime"])
            && let (Some(start), Some(end)) = (start.and_then(Value::as_str), end.and_then(Value::as_str))
            && end < start
        {
            let detail = "must be equal to or after `startTime`";
            errors.push(FieldError::invalid("status.completionTime", end, detail));
        }
        if (self.has_changed_condition(&["Failed"]) || self.changes(&["failedIndexes"]))
            && self.is("Failed")
            && !self.is("FailureTarget")
        {
            let detail = "cannot set Failed=True condition without the FailureTarget=true condition";
            errors.push(bad_conditions(detail));
        }
        if self.has_changed_condition(&["Complete", "SuccessCriteriaMet"])
            && is_complete
            && !self.is("SuccessCriteriaMet")
        {
            let detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
            errors.push(bad_conditions(detail));
        }
        errors
    }

    /// Reports a finished Job with unfinished Pods.
    fn bad_end_of_pods(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if !is_finished(self.new) {
            return errors;
        }
        let ends = self.turns_finished();
        let active = number(self.new, &["status", "active"]);
        if (ends || self.changes(&["active"])) && active > 0 {
            let detail = "active>0 is invalid for finished job";
            errors.push(FieldError::invalid("status.active", active, detail));
        }
        let has_nothing_to_do = is_true(self.new, &["spec", "suspend"])
            && optional(self.new, &["spec", "completions"]) == Some(0);
        if (ends || self.changes(&["startTime"]))
            && !has_nothing_to_do
            && status(self.new, "startTime").is_none()
        {
            let detail = "startTime is required for finished job";
            errors.push(FieldError::required("status.startTime", detail));
        }
        let uncounted = status(self.new, "uncountedTerminatedPods");
        let lists = ["succeeded", "failed"];
        let has_uncounted = lists
            .iter()
            .any(|list| !items(self.new, &["status", "uncountedTerminatedPods", list]).is_empty());
        if (ends || self.changes(&["uncountedTerminatedPods"])) && has_uncounted {
            let shown = Go::Pointer(UNCOUNTED).write(uncounted);
            let path = &Path::root("status.uncountedTerminatedPods");
            errors.push(invalid_shown(path, &shown, "must be empty for finished job"));
        }
        errors
    }

    /// Reports invalid index lists.
    fn bad_indexes(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let list = |field: &str| status(self.new, field).and_then(Value::as_str);
        let (completed, failed) = (list("completedIndexes").unwrap_or_default(), list("failedIndexes"));
        let completions = optional(self.new, &["spec", "completions"]);
        let has_limit = present(self.new, &["spec", "backoffLimitPerIndex"]).is_some();
        let wrong = |field: &str, list: &str, detail: String| {
            FieldError::invalid(Path::STATUS.field(field), list, detail)
        };
        let unread = |field: &str, list: &str| {
            let problem = indexes::count(list, completions?).err()?;
            Some(wrong(field, list, format!("error parsing {field}: {problem}")))
        };
        let (completed_changes, failed_changes) =
            (self.changes(&["completedIndexes"]), self.changes(&["failedIndexes"]));
        if completed_changes {
            errors.extend(unread("completedIndexes", completed));
        }
        if let Some(failed) = failed.filter(|_| failed_changes && has_limit) {
            errors.extend(unread("failedIndexes", failed));
        }
        if completed_changes && !completed.is_empty() && !self.is_indexed() {
            let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
            errors.push(wrong("completedIndexes", completed, detail.to_owned()));
        }
        let Some(failed) = failed else { return errors };
        if failed_changes && !has_limit {
            let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            errors.push(wrong("failedIndexes", failed, detail.to_owned()));
        }
        if let Some(completions) = completions.filter(|_| completed_changes || failed_changes)
            && let Some(index) = indexes::overlap(completed, failed, completions)
        {
            let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
            errors.push(wrong("failedIndexes", failed, detail));
        }
        errors
    }

    fn bad_counts(&self) -> Vec<FieldError> {
        let count = |field: &str| number(self.new, &["status", field]);
        let mut errors = Vec::new();
        let terminating = count("terminating");
        if (self.turns_finished() || self.changes(&["terminating"]))
            && terminating > 0
            && is_finished(self.new)
        {
            let detail = "terminating>0 is invalid for finished job";
            errors.push(FieldError::invalid("status.terminating", terminating, detail));
        }
        let ready = optional(self.new, &["status", "ready"]).filter(|ready| *ready > count("active"));
        if let Some(ready) = ready.filter(|_| self.changes(&["ready", "active"])) {
            let detail = "cannot set more ready pods than active";
            errors.push(FieldError::invalid("status.ready", ready, detail));
        }
        errors
    }

    /// Reports `SuccessCriteriaMet` beside a failure, and a missing one beside `Complete` with a success policy.
    fn bad_success(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let is_met = self.is("SuccessCriteriaMet");
        if is_met && self.is("Failed") {
            errors.push(bad_conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions"));
        }
        if is_met && self.is("FailureTarget") {
            errors
                .push(bad_conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"));
        }
        let has_policy = present(self.new, &["spec", "successPolicy"]).is_some();
        if has_policy && !is_met && self.is("Complete") {
            let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
            errors.push(bad_conditions(detail));
        }
        errors
    }

    /// Reports changes in a forbidden direction.
    fn bad_reversals(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for condition in ["Failed", "Complete", "FailureTarget"] {
            if self.was(condition) && !self.is(condition) {
                let detail = format!("cannot disable the terminal {condition}=True condition");
                errors.push(bad_conditions(&detail));
            }
        }
        // An elastic indexed Job can be scaled down.
        let of_spec = |field: &str| value(self.new, &["spec", field]);
        let may_shrink = self.is_indexed() && of_spec("completions") == of_spec("parallelism");
        for (field, may_decrease) in [("failed", false), ("succeeded", may_shrink)] {
            let count = |object| number(object, &["status", field]);
            if !may_decrease && count(self.new) < count(self.old) {
                let detail = format!("cannot decrease the {field} counter");
                errors.push(FieldError::invalid(Path::STATUS.field(field), count(self.new), detail));
            }
        }
        let end = |object| status(object, "completionTime");
        if let (Some(new), Some(old)) = (end(self.new), end(self.old))
            && new != old
        {
            errors.push(FieldError::invalid("status.completionTime", new.clone(), "field is immutable"));
        }
        if self.changes(&["startTime"])
            && !self.is_resumed()
            && status(self.old, "startTime").is_some()
            && !is_true(self.new, &["spec", "suspend"])
        {
            let detail = "startTime cannot be removed for unsuspended job";
            errors.push(FieldError::required("status.startTime", detail));
        }
        let (is_met, was_met) = (self.is("SuccessCriteriaMet"), self.was("SuccessCriteriaMet"));
        if was_met && !is_met {
            errors.push(bad_conditions("cannot disable the SuccessCriteriaMet=True condition"));
        }
        if self.was("Complete") && !was_met && is_met {
            let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
            errors.push(bad_conditions(detail));
        }
        errors
    }

    /// Whether the `Suspended` condition changes from true to false.
    fn is_resumed(&self) -> bool {
        let is_false = items(self.new, &["status", "conditions"]).iter().any(|item| {
            let field = |field: &str| item.get(field).and_then(Value::as_str);
            field("type") == Some("Suspended") && field("status") == Some("False")
        });
        self.was("Suspended") && is_false
    }
}
