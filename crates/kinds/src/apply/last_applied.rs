//! The annotation `last-applied-configuration` of client-side apply, for the migration to server-side apply.

use std::collections::BTreeSet;

use model::Object;
use serde_json::Value;

use super::check::check;
use super::compare::compare;
use super::fields::fields_of;
use super::set::path_text;
use super::types::Node;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The size limit of all annotations of an object, in bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;

fn annotations(object: &Object) -> Option<&Object> {
    object.get("metadata").and_then(|metadata| metadata.get("annotations")).and_then(Value::as_object)
}

fn annotation(object: &Object) -> &str {
    annotations(object).and_then(|all| all.get(ANNOTATION)).and_then(Value::as_str).unwrap_or("")
}

/// Whether the object has the annotation.
pub(super) fn is_set(object: &Object) -> bool {
    !annotation(object).is_empty()
}

/// The paths of fields that have the same value in the annotation and in the live object.
pub(super) fn owned(node: Node<'_>, api_version: &str, live: &Object) -> BTreeSet<String> {
    let Ok(Value::Object(mut applied)) =
        model::json::parse(annotation(live).as_bytes()).map(|parsed| parsed.value)
    else {
        return BTreeSet::new();
    };
    if applied.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return BTreeSet::new();
    }
    applied.remove("apiVersion");
    applied.remove("kind");
    if check(node, &applied).is_err() || check(node, live).is_err() {
        return BTreeSet::new();
    }
    let Ok(comparison) = compare(node, &applied, live) else { return BTreeSet::new() };
    let same = fields_of(node, &applied).difference(&comparison.changed).difference(&comparison.removed);
    same.paths().iter().map(|path| path_text(path)).collect()
}

/// Sets the annotation to the applied configuration.
pub(super) fn refresh(object: &mut Object, config: &Object) {
    let mut applied = config.clone();
    if let Some(Value::Object(annotations)) =
        applied.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"))
    {
        annotations.remove(ANNOTATION);
    }
    let text = go_json(&Value::Object(applied));
    let Some(Value::Object(annotations)) =
        object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"))
    else {
        return;
    };
    annotations.insert(ANNOTATION.to_owned(), text.into());
    let length = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    if annotations.iter().map(length).sum::<usize>() > ANNOTATIONS_MAX {
        annotations.remove(ANNOTATION);
    }
}

/// JSON as Go's encoder writes it: HTML characters escaped, with a line break at the end.
fn go_json(value: &Value) -> String {
    let text = value.to_string();
    let mut out = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            other => out.push(other),
        }
    }
    out.push('\n');
    out
}
