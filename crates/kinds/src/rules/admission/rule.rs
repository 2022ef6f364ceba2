//! Rules of webhooks and policies: operations, groups, versions, resources, scope.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::object::{has, set_default, text, texts};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

/// Defaults of a rule: all scopes.
pub fn default_rule(rule: &mut Object) {
    set_default(rule, "scope", "*");
}

/// Validates a rule and its operations.
pub fn bad_rule(path: &Path<'_>, rule: &Object) -> Vec<FieldError> {
    let mut errors = bad_list(path, rule, "operations", "operations");
    for (index, operation) in texts(rule, &["operations"]).into_iter().enumerate() {
        if !OPERATIONS.contains(&operation) {
            let path = path.item("operations", index);
            errors.push(FieldError::not_supported(path, operation, &OPERATIONS));
        }
    }
    errors.extend(bad_list(path, rule, "apiGroups", "API groups"));
    errors.extend(bad_list(path, rule, "apiVersions", "API versions"));
    for (index, version) in texts(rule, &["apiVersions"]).into_iter().enumerate() {
        if version.is_empty() {
            errors.push(FieldError::required(path.item("apiVersions", index), ""));
        }
    }
    errors.extend(bad_resources(&path.field("resources"), &texts(rule, &["resources"])));
    let scope = text(rule, &["scope"]);
    if has(rule, &["scope"]) && !SCOPES.contains(&scope) {
        errors.push(FieldError::not_supported(path.field("scope"), scope, &SCOPES));
    }
    errors
}

/// Validates a list: not empty, and `*` only alone.
fn bad_list(path: &Path<'_>, rule: &Object, field: &str, words: &str) -> Vec<FieldError> {
    let list = texts(rule, &[field]);
    let path = path.field(field);
    match list.as_slice() {
        [] => vec![FieldError::required(path, "")],
        [_, _, ..] if list.contains(&"*") => {
            vec![FieldError::invalid(
                path,
                list,
                format!("if '*' is present, must not specify other {words}"),
            )]
        }
        _ => Vec::new(),
    }
}

fn bad_resources(path: &Path<'_>, resources: &[&str]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if resources.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    let (mut all_of, mut every) = (BTreeSet::new(), BTreeSet::new());
    let mut last_is_plain = false;
    for (index, resource) in resources.iter().enumerate() {
        let path = path.at(index);
        if resource.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        let Some((name, part)) = resource.split_once('/') else {
            last_is_plain = *resource != "*";
            continue;
        };
        let mut refuse = |pattern: String| {
            let detail = format!("if '{pattern}' is present, must not specify {resource}");
            errors.push(FieldError::invalid(path, *resource, detail));
        };
        if all_of.contains(name) {
            refuse(format!("{name}/*"));
        }
        if every.contains(part) {
            refuse(format!("*/{part}"));
        }
        if part == "*" {
            all_of.insert(name);
        }
        if name == "*" {
            every.insert(part);
        }
    }
    if resources.len() > 1 && resources.contains(&"*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, resources.to_vec(), detail));
    }
    if resources.contains(&"*") && last_is_plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, resources.to_vec(), detail));
    }
    errors
}
