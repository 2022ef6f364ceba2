//! Scopes: which objects a quota is about.

use serde_json::Value;

use crate::{Counted, Object, at, text};

/// A scope that an object has to be in.
pub(crate) struct Scope {
    name: String,
    operator: String,
    values: Vec<String>,
}

/// The scopes that a quota has, in both notations.
pub(crate) fn scopes(quota: &Object) -> Vec<Scope> {
    let scopes = at(quota, &["spec", "scopes"]).and_then(Value::as_array).into_iter().flatten();
    let scope =
        |name: &str| Scope { name: name.to_owned(), operator: "Exists".to_owned(), values: Vec::new() };
    let plain = scopes.filter_map(Value::as_str).map(scope);
    let expressions = at(quota, &["spec", "scopeSelector", "matchExpressions"]).and_then(Value::as_array);
    let selected = expressions.into_iter().flatten().map(|expression| {
        let text = |key: &str| expression.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
        Scope { name: text("scopeName"), operator: text("operator"), values }
    });
    plain.chain(selected).collect()
}

impl Scope {
    /// Whether an object is in it.
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
            at(pod, &["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64).is_some_and(|s| s >= 0);
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
        let list = |name: &str| {
            at(pod, &["spec", "affinity", key, name]).and_then(Value::as_array).into_iter().flatten()
        };
        let preferred = list("preferredDuringSchedulingIgnoredDuringExecution");
        list("requiredDuringSchedulingIgnoredDuringExecution").any(crosses)
            || preferred.filter_map(|term| term.get("podAffinityTerm")).any(crosses)
    })
}
