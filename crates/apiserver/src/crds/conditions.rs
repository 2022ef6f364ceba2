//! The status of a CRD: accepted names and conditions. Pure.

use std::collections::BTreeSet;

use model::condition::{condition, is_condition_true, set_condition};
use model::object::{items, items_in, list_mut, map_mut, text_in};
use serde_json::{Map, Value, json};

use crate::registry::Object;

/// The finalizer that keeps a CRD until its objects are deleted.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Accepts the names of a CRD as far as no other CRD of its group has them, and sets the conditions. `others` are the
/// accepted names of the other CRDs.
pub(crate) fn set_names<'a>(crd: &mut Object, others: impl Iterator<Item = &'a Value>, now: &str) {
    let wanted = crd.get("spec").and_then(|spec| spec.get("names")).cloned().unwrap_or_default();
    let approval = kinds::approval_condition(crd);
    let status = map_mut(crd, "status");
    if let Some((state, reason, message)) = approval {
        set(status, "KubernetesAPIApprovalPolicyConformant", state, reason, &message, now);
    }
    let had = status.get("acceptedNames").cloned().unwrap_or_default();
    if wanted == had && !wanted.is_null() {
        return;
    }
    let (accepted, conflict) = accept(&wanted, &had, &TakenNames::of(others));
    status.insert("acceptedNames".to_owned(), accepted);
    match &conflict {
        Some((reason, message)) => set(status, "NamesAccepted", "False", reason, message, now),
        None => set(status, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now),
    }
    if conflict.is_none() && !is_condition_true(items(status, &["conditions"]), "Established") {
        let message = "the initial names have been accepted";
        set(status, "Established", "True", "InitialNamesAccepted", message, now);
    } else if condition(items(status, &["conditions"]), "Established").is_none() {
        set(status, "Established", "False", "NotAccepted", "not all names are accepted", now);
    }
}

/// Sets deletionTimestamp and the condition Terminating: the objects are deleted first.
pub(crate) fn begin_termination(crd: &mut Object, now: &str) {
    let metadata = map_mut(crd, "metadata");
    metadata.insert("deletionTimestamp".to_owned(), now.into());
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(names) = finalizers
        && !names.iter().any(|name| name == CLEANUP)
    {
        names.push(CLEANUP.into());
    }
    set_terminating(crd, &Termination::Pending, now);
}

/// The progress of the deletion of a CRD.
pub(crate) enum Termination {
    /// The deletion is requested.
    Pending,
    /// The objects are being deleted.
    InProgress,
    /// Some objects could not be deleted, for this reason.
    Failed(String),
    /// The deletion of all objects is requested, but some still exist.
    Unconfirmed,
    /// No object is left.
    Completed,
}

/// Sets the condition Terminating.
pub(crate) fn set_terminating(crd: &mut Object, termination: &Termination, now: &str) {
    let failure;
    let (state, reason, message) = match termination {
        Termination::Pending => (
            "True",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        ),
        Termination::InProgress => {
            ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
        }
        Termination::Failed(problem) => {
            failure = format!("could not issue all deletes: {problem}");
            ("True", "InstanceDeletionFailed", failure.as_str())
        }
        Termination::Unconfirmed => (
            "True",
            "InstanceDeletionCheck",
            "could not confirm zero CustomResources remaining: context deadline exceeded",
        ),
        Termination::Completed => ("False", "InstanceDeletionCompleted", "removed all instances"),
    };
    set(map_mut(crd, "status"), "Terminating", state, reason, message, now);
}

/// The names of other CRDs: of resources, and of kinds.
#[derive(Default)]
struct TakenNames<'a> {
    resources: BTreeSet<&'a str>,
    kinds: BTreeSet<&'a str>,
}

impl<'a> TakenNames<'a> {
    fn of(others: impl Iterator<Item = &'a Value>) -> Self {
        let mut taken = Self::default();
        for names in others {
            taken.resources.extend(["plural", "singular"].map(|key| text_in(names, key)));
            taken.resources.extend(texts(names, "shortNames"));
            taken.kinds.extend(["kind", "listKind"].map(|key| text_in(names, key)));
        }
        taken
    }
}

/// The accepted names, and the reason and message if some are not accepted.
fn accept(wanted: &Value, had: &Value, taken: &TakenNames<'_>) -> (Value, Option<(&'static str, String)>) {
    let mut accepted = had.as_object().cloned().unwrap_or_default();
    let mut conflict = None;
    let in_use = |name: &str| format!("{} is already in use", model::error::quote(name));
    let fields = [
        ("plural", &taken.resources, "PluralConflict"),
        ("singular", &taken.resources, "SingularConflict"),
        ("shortNames", &taken.resources, "ShortNamesConflict"),
        ("kind", &taken.kinds, "KindConflict"),
        ("listKind", &taken.kinds, "ListKindConflict"),
    ];
    for (key, taken, reason) in fields {
        let problems: Vec<String> = if key == "shortNames" {
            let own: BTreeSet<&str> = texts(had, key).collect();
            let fresh = texts(wanted, key).filter(|name| !own.contains(name));
            fresh.filter(|name| taken.contains(name)).map(in_use).collect()
        } else {
            let name = text_in(wanted, key);
            (name != text_in(had, key) && taken.contains(name)).then(|| in_use(name)).into_iter().collect()
        };
        match problems.as_slice() {
            [] => copy(&mut accepted, wanted, key),
            [one] => conflict = Some((reason, one.clone())),
            several => conflict = Some((reason, format!("[{}]", several.join(", ")))),
        }
    }
    copy(&mut accepted, wanted, "categories");
    // Kubernetes shows these two even if they are not accepted.
    for key in ["kind", "plural"] {
        accepted.entry(key).or_insert_with(|| "".into());
    }
    (accepted.into(), conflict)
}

fn copy(to: &mut Map<String, Value>, from: &Value, key: &str) {
    match from.get(key) {
        Some(value) => to.insert(key.to_owned(), value.clone()),
        None => to.remove(key),
    };
}

fn set(status: &mut Object, kind: &str, state: &str, reason: &str, message: &str, now: &str) {
    let condition = json!({
        "type": kind, "status": state, "lastTransitionTime": now, "reason": reason, "message": message,
    });
    set_condition(list_mut(status, "conditions"), condition);
}

fn texts<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    items_in(value, key).iter().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(names: Value) -> Object {
        json!({"spec": {"names": names}, "status": {}}).as_object().unwrap().clone()
    }

    fn reasons(crd: &Object) -> Vec<String> {
        let conditions = crd["status"]["conditions"].as_array().unwrap().iter();
        conditions
            .map(|c| format!("{}={} {}", text_in(c, "type"), text_in(c, "status"), text_in(c, "reason")))
            .collect()
    }

    #[test]
    fn free_names_are_taken() {
        let mut fresh = crd(json!({"plural": "as", "kind": "A", "listKind": "AList", "singular": "a"}));
        set_names(&mut fresh, [].iter(), "now");
        assert_eq!(
            reasons(&fresh),
            ["NamesAccepted=True NoConflicts", "Established=True InitialNamesAccepted"]
        );
        assert_eq!(fresh["status"]["acceptedNames"], fresh["spec"]["names"]);
    }

    #[test]
    fn names_of_other_crds_are_refused_until_they_are_free() {
        let names = json!({"plural": "bs", "kind": "A", "listKind": "BList", "singular": "b", "shortNames": ["a", "c"]});
        let other =
            [json!({"plural": "as", "kind": "A", "listKind": "AList", "singular": "a", "shortNames": ["c"]})];
        let mut second = crd(names);
        set_names(&mut second, other.iter(), "then");
        assert_eq!(reasons(&second), ["NamesAccepted=False KindConflict", "Established=False NotAccepted"]);
        assert_eq!(second["status"]["conditions"][0]["message"], "\"A\" is already in use");
        assert_eq!(
            second["status"]["acceptedNames"],
            json!({"kind": "", "plural": "bs", "listKind": "BList", "singular": "b"})
        );
        set_names(&mut second, [].iter(), "now");
        assert_eq!(
            reasons(&second),
            ["NamesAccepted=True NoConflicts", "Established=True InitialNamesAccepted"]
        );
        assert_eq!(second["status"]["conditions"][0]["lastTransitionTime"], "now");
    }
}
