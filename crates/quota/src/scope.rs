//! Quota scopes: the objects that a ResourceQuota applies to.

use model::Object;
use model::object::{items, items_in, present, text, text_in};
use serde_json::Value;

use crate::Counted;

/// A scope selector requirement.
pub(crate) struct Scope {
    name: String,
    operator: String,
    values: Vec<String>,
}

/// The scopes of a quota, from `spec.scopes` and `spec.scopeSelector`.
pub(crate) fn scopes(quota: &Object) -> Vec<Scope> {
    let scopes = items(quota, &["spec", "scopes"]).iter();
    let scope =
        |name: &str| Scope { name: name.to_owned(), operator: "Exists".to_owned(), values: Vec::new() };
    let plain = scopes.filter_map(Value::as_str).map(scope);
    let expressions = items(quota, &["spec", "scopeSelector", "matchExpressions"]).iter();
    let selected = expressions.map(|expression| {
        let text = |key: &str| text_in(expression, key).to_owned();
        let values =
            items_in(expression, "values").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Scope { name: text("scopeName"), operator: text("operator"), values }
    });
    plain.chain(selected).collect()
}

impl Scope {
    /// Whether the object is in this scope.
    pub(crate) fn has(&self, counted: Counted<'_>, object: &Object) -> bool {
        match (counted.group, counted.plural) {
            ("", "pods") => self.has_pod(object),
            ("", "persistentvolumeclaims") if self.name == "VolumeAttributesClass" => {
                let names = [
                    &["spec", "volumeAttributesClassName"][..],
                    &["status", "currentVolumeAttributesClassName"],
                    &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
                ];
                let named: Vec<&str> =
                    names.iter().map(|path| text(object, path)).filter(|name| !name.is_empty()).collect();
                if named.is_empty() { self.selects("") } else { named.iter().any(|name| self.selects(name)) }
            }
            _ => false,
        }
    }

    fn has_pod(&self, pod: &Object) -> bool {
        let ends =
            present(pod, &["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64).is_some_and(|s| s >= 0);
        let is_best_effort = || text(pod, &["status", "qosClass"]) == "BestEffort";
        match self.name.as_str() {
            "Terminating" => ends,
            "NotTerminating" => !ends,
            "BestEffort" => is_best_effort(),
            "NotBestEffort" => !is_best_effort(),
            "PriorityClass" => self.selects(text(pod, &["spec", "priorityClassName"])),
            "CrossNamespacePodAffinity" => crosses_namespaces(pod),
            _ => false,
        }
    }

    fn selects(&self, name: &str) -> bool {
        let is_listed = self.values.iter().any(|value| value == name);
        match self.operator.as_str() {
            "In" => !name.is_empty() && is_listed,
            "NotIn" => !is_listed,
            "Exists" => !name.is_empty(),
            _ => name.is_empty(),
        }
    }
}

fn crosses_namespaces(pod: &Object) -> bool {
    let crosses = |term: &Value| {
        let namespaces =
            term.get("namespaces").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        namespaces || term.get("namespaceSelector").is_some_and(|selector| !selector.is_null())
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|key| {
        let list = |name: &str| items(pod, &["spec", "affinity", key, name]).iter();
        let preferred = list("preferredDuringSchedulingIgnoredDuringExecution");
        list("requiredDuringSchedulingIgnoredDuringExecution").any(crosses)
            || preferred.filter_map(|term| term.get("podAffinityTerm")).any(crosses)
    })
}
