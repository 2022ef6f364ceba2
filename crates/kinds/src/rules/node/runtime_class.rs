//! RuntimeClass.

use model::Object;
use model::error::{FieldError, Path, quote};
use model::names::dns1123_label;
use model::object::{entries, maps, text, value};
use serde_json::Value;

use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::{bad_labels, immutable};
use crate::rules::core::{check_container_resources, check_tolerations};
use crate::rules::label_selector::invalid;
use crate::rules::storage::old_label;

pub(super) const RULES: KindRules = KindRules {
    group: "node.k8s.io",
    kind: "RuntimeClass",
    validate_create: validate,
    validate_update: |new, old| {
        let mut errors = validate(new);
        errors.extend(immutable(new, old, "handler"));
        errors
    },
    warnings: |object, _| {
        let keys = entries(object, &["scheduling", "nodeSelector"]).map(|(key, _)| key);
        let advice = keys.filter_map(|key| old_label(key));
        advice.map(|advice| format!("scheduling.nodeSelector: {advice}")).collect()
    },
    create_on_update: true,
    unconditional_update: false,
    columns: &[NAME, Column::new("Handler", "string", "The handler of the container runtime."), AGE],
    cells: |object, now| vec![name(object), text(object, &["handler"]).into(), age(object, now)],
    ..KindRules::PLAIN
};

fn validate(object: &Object) -> Vec<FieldError> {
    let handler = text(object, &["handler"]);
    let mut errors: Vec<FieldError> =
        invalid(&Path::root("handler"), handler, dns1123_label(handler)).collect();
    if let Some(amounts) = value(object, &["overhead", "podFixed"]) {
        // Kubernetes validates and reports the overhead as limits of a container, too.
        let limits = Object::from_iter([("limits".to_owned(), amounts.clone())]);
        check_container_resources(&mut errors, &limits, &Path::root("overhead"), &[]);
    }
    errors.extend(bad_labels(
        &Path::root("scheduling.nodeSelector"),
        entries(object, &["scheduling", "nodeSelector"]),
    ));
    if let Some(scheduling) = value(object, &["scheduling"]).and_then(Value::as_object) {
        check_tolerations(&mut errors, scheduling, &Path::root("scheduling.tolerations"));
    }
    let mut seen = Vec::new();
    let key_of = |toleration: &Object| -> [String; 4] {
        ["key", "operator", "value", "effect"].map(|field| text(toleration, &[field]).to_owned())
    };
    for (index, toleration) in maps(object, &["scheduling", "tolerations"]) {
        let key = key_of(toleration);
        if seen.contains(&key) {
            let path = format!("scheduling.tolerations[{index}]");
            errors.push(FieldError::duplicate_shown(path, &shown_toleration(toleration)));
        }
        seen.push(key);
    }
    errors
}

/// A toleration as Go formats it.
fn shown_toleration(toleration: &Object) -> String {
    let fields = [("Key", "key"), ("Operator", "operator"), ("Value", "value"), ("Effect", "effect")];
    let texts = fields.map(|(name, field)| format!("\"{name}\":{}", quote(text(toleration, &[field]))));
    let seconds = value(toleration, &["tolerationSeconds"]).map_or("null".to_owned(), ToString::to_string);
    format!("{{{},\"TolerationSeconds\":{seconds}}}", texts.join(","))
}
