//! Shared rules of webhooks, policies and bindings: selectors, match policy, match conditions.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::names::{path_segment, qualified_name};
use model::object::{has, maps, maps_mut, set_default, text, texts, value};
use serde_json::{Map, Value};

use super::rule::{bad_rule, default_rule};
use crate::policies::{Composer, Options, Wanted};
use crate::rules::label_selector::{bad_label_selector, invalid};

pub const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
const MUTATING_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
const CONDITIONS_MAX: usize = 64;

/// Defaults: match everything, in equivalent versions.
pub fn default_matching(object: &mut Object) {
    set_default(object, "matchPolicy", "Equivalent");
    for field in ["namespaceSelector", "objectSelector"] {
        object.entry(field).or_insert_with(|| Value::Object(Map::new()));
    }
}

/// Defaults of `matchResources` and `matchConstraints`.
pub fn default_match_resources(resources: &mut Object) {
    default_matching(resources);
    for field in ["resourceRules", "excludeResourceRules"] {
        maps_mut(resources, field).for_each(default_rule);
    }
}

/// The error for an unsupported value of a field; a missing field is valid.
pub fn unsupported(path: &Path<'_>, object: &Object, field: &str, supported: &[&str]) -> Option<FieldError> {
    let found = text(object, &[field]);
    let refused = has(object, &[field]) && !supported.contains(&found);
    refused.then(|| FieldError::not_supported(path.field(field), found, supported))
}

/// Validates the match policy.
pub fn bad_match_policy(path: &Path<'_>, object: &Object) -> Option<FieldError> {
    unsupported(path, object, "matchPolicy", &MATCH_POLICIES)
}

/// Validates the selectors of namespaces and objects.
pub fn bad_selectors(path: &Path<'_>, object: &Object) -> Vec<FieldError> {
    let selector = |field: &str| bad_label_selector(&path.field(field), value(object, &[field]));
    let mut errors = selector("namespaceSelector");
    errors.extend(selector("objectSelector"));
    errors
}

/// Validates `matchResources` and `matchConstraints`.
pub fn bad_match_resources(path: &Path<'_>, resources: &Object) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = bad_match_policy(path, resources).into_iter().collect();
    errors.extend(bad_selectors(path, resources));
    for field in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in maps(resources, &[field]) {
            let path = path.item(field, index);
            errors.extend(bad_resource_names(&path, rule));
            errors.extend(bad_rule(&path, rule));
        }
    }
    errors
}

/// A mutating policy cannot match deletions.
pub fn bad_mutating_operations(path: &Path<'_>, resources: &Object) -> Vec<FieldError> {
    let path = path.field("resourceRules.operations");
    let rules = maps(resources, &["resourceRules"]).flat_map(|(_, rule)| texts(rule, &["operations"]));
    let wrong = rules.filter(|operation| !MUTATING_OPERATIONS.contains(operation));
    wrong.map(|operation| FieldError::not_supported(path, operation, &MUTATING_OPERATIONS)).collect()
}

fn bad_resource_names(path: &Path<'_>, rule: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, name) in texts(rule, &["resourceNames"]).into_iter().enumerate() {
        let path = path.item("resourceNames", index);
        errors.extend(invalid(&path, name, path_segment(name)));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(path, name));
        }
    }
    errors
}

/// Validates match conditions, which have no variables.
pub fn bad_conditions(path: &Path<'_>, object: &Object, has_params: bool) -> Vec<FieldError> {
    let path = path.field("matchConditions");
    let mut errors = Vec::new();
    let composer = Composer::new(has_params, false);
    let options = Options { has_authorizer: true };
    let count = maps(object, &["matchConditions"]).count();
    if count > CONDITIONS_MAX {
        errors.push(FieldError::too_many(path, count, CONDITIONS_MAX));
    }
    let mut seen = BTreeSet::new();
    for (index, condition) in maps(object, &["matchConditions"]) {
        let path = path.at(index);
        let (source, path_of_source) = (text(condition, &["expression"]).trim(), path.field("expression"));
        if source.is_empty() {
            errors.push(FieldError::required(path_of_source, ""));
        } else if let Err(unusable) = composer.compile(source, options, Wanted::Bool) {
            errors.push(unusable.at(path_of_source, source));
        }
        let name_path = path.field("name");
        match text(condition, &["name"]) {
            "" => errors.push(FieldError::required(name_path, "")),
            name => {
                errors.extend(invalid(&name_path, name, qualified_name(name)));
                if !seen.insert(name) {
                    errors.push(FieldError::duplicate(name_path, name));
                }
            }
        }
    }
    errors
}
