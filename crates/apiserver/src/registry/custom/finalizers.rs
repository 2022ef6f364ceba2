//! Warnings about finalizer names of custom objects.

use std::collections::BTreeSet;

use model::names::qualified_name;
use serde_json::Value;

use crate::registry::Object;

/// Warns of finalizers without a domain, which may clash.
pub fn finalizer_warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    let had: BTreeSet<&str> = old.map(finalizers).unwrap_or_default();
    finalizers(new).difference(&had).flat_map(|name| finalizer_warning(name)).collect()
}

fn finalizers(object: &Object) -> BTreeSet<&str> {
    let list = object.get("metadata").and_then(|metadata| metadata.get("finalizers"));
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn finalizer_warning(name: &str) -> Vec<String> {
    let at = format!("metadata.finalizers: {}", model::error::quote(name));
    let mut warnings: Vec<String> =
        qualified_name(name).into_iter().map(|problem| format!("{at}: {problem}")).collect();
    if !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        warnings.push(format!(
            "{at}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        ));
    }
    warnings
}
