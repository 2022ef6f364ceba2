//! ServiceAccount. Only the names of its Secrets are kept.

use model::Object;
use model::object::value;
use serde_json::{Map, Value};

use crate::rules::columns::{AGE, NAME, age, name};
use crate::rules::{KindRules, Subresource};

const ENFORCE_MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

pub(super) const RULES: KindRules = KindRules {
    kind: "ServiceAccount",
    prepare_create: keep_secret_names,
    prepare_update: |new, _| keep_secret_names(new),
    warnings,
    // A verb in the form of a subresource.
    subresources: &[Subresource {
        name: "token",
        prepare_update: |_, _| {},
        validate_update: |_, _| Vec::new(),
    }],
    columns: &[NAME, AGE],
    cells: |object, now| vec![name(object), age(object, now)],
    ..KindRules::PLAIN
};

fn keep_secret_names(object: &mut Object) {
    let secrets = object.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten() {
        let mut kept = Map::new();
        if let Some((key, name)) = secret.as_object_mut().and_then(|secret| secret.remove_entry("name")) {
            kept.insert(key, name);
        }
        *secret = Value::Object(kept);
    }
}

fn warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    let has = |object: &Object| value(object, &["metadata", "annotations", ENFORCE_MOUNTABLE]).is_some();
    if !has(new) || old.is_some_and(has) {
        return Vec::new();
    }
    let advice = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
    vec![format!("metadata.annotations[{ENFORCE_MOUNTABLE}]: {advice}")]
}
