//! Shared rules of workloads: numbers, Pod templates, selectors, printer columns.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{map_mut, number, text, value};
use serde_json::Value;

use super::columns::Column;
use super::core::pod;
use super::label_selector::bad_label_selector;
use super::selection::{Selection, bad_selector};
use crate::rules::common::keep_all_but_status;

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

pub const CONTAINERS: Column =
    Column::new("Containers", "string", "The names of the containers in its template.").wide();
pub const IMAGES: Column =
    Column::new("Images", "string", "The images of the containers in its template.").wide();
pub const SELECTOR: Column = Column::new("Selector", "string", "The selector of its pods.").wide();

/// The object at a path.
pub fn map_at<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Object> {
    value(object, path).and_then(Value::as_object)
}

/// The value at a path, unless it is null.
pub fn present<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    value(object, path).filter(|value| !value.is_null())
}

/// The number at a path, if there is one.
pub fn optional(object: &Object, path: &[&str]) -> Option<i64> {
    value(object, path).and_then(Value::as_i64)
}

/// An error with a value in Go's format instead of JSON.
pub fn invalid_shown(path: &Path<'_>, shown: &str, detail: &str) -> FieldError {
    let separator = if detail.is_empty() { "" } else { ": " };
    FieldError { value: None, ..FieldError::invalid(path, "", format!("{shown}{separator}{detail}")) }
}

/// An error for each of these fields with a negative number.
pub fn negative(object: &Object, path: &Path<'_>, fields: &[&str]) -> Vec<FieldError> {
    let below = fields.iter().filter_map(|field| Some((field, optional(object, &[field])?)));
    let below = below.filter(|(_, number)| *number < 0);
    below.map(|(field, number)| FieldError::invalid(path.field(field), number, NOT_NEGATIVE)).collect()
}

/// An error for each of these status fields that exceeds `whole`.
pub fn exceeding(status: &Object, fields: &[&str], whole: &str, detail: &str) -> Vec<FieldError> {
    let limit = number(status, &[whole]);
    let above = fields.iter().map(|field| (field, number(status, &[field])));
    let above = above.filter(|(_, number)| *number > limit);
    above.map(|(field, number)| FieldError::invalid(Path::STATUS.field(field), number, detail)).collect()
}

/// The error for a decreased `collisionCount`.
pub fn fewer_collisions(new: &Object, old: &Object) -> Option<FieldError> {
    let old = value(old, &["status", "collisionCount"]).and_then(Value::as_i64)?;
    let new = number(new, &["status", "collisionCount"]);
    (new < old).then(|| FieldError::invalid("status.collisionCount", new, "cannot be decremented"))
}

/// Validates an integer or percentage.
pub fn bad_int_or_percent(path: &Path<'_>, value: &Value) -> Option<FieldError> {
    const NO_PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  \
                              or '93%', regex used for validation is '[0-9]+%')";
    match value {
        Value::String(text) if percent(text).is_none() => {
            Some(FieldError::invalid(path, text.as_str(), NO_PERCENT))
        }
        Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
            Some(FieldError::invalid(path, value.clone(), NOT_NEGATIVE))
        }
        _ => None,
    }
}

/// The error for a percentage above 100.
pub fn more_than_all(path: &Path<'_>, value: &Value) -> Option<FieldError> {
    let is_more = value.as_str().and_then(percent).is_some_and(|percent| percent > 100);
    is_more.then(|| FieldError::invalid(path, value.clone(), "must not be greater than 100%"))
}

/// An integer, or the number of a percentage.
pub fn int_or_percent(value: Option<&Value>) -> i64 {
    match value {
        Some(Value::String(text)) => percent(text).or_else(|| text.parse().ok()).unwrap_or(0),
        Some(value) => value.as_i64().unwrap_or(0),
        None => 0,
    }
}

fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| digits.parse().unwrap_or(i64::MAX))
}

/// Defaults of the Pod template in a spec.
pub fn default_template(spec: &mut Object) {
    pod::default_template(map_mut(spec, "template"));
}

/// Validates the Pod template in a spec.
pub fn bad_template(spec: &Object, path: &Path<'_>) -> Vec<FieldError> {
    map_at(spec, &["template"]).map(|template| pod::validate_template(template, path)).unwrap_or_default()
}

/// Warnings about the Pod template in a spec, unless an update did not change the spec.
pub fn template_warnings(new: &Object, old: Option<&Object>, spec: &[&str]) -> Vec<String> {
    let generation = |object| number(object, &["metadata", "generation"]);
    if old.is_some_and(|old| generation(old) == generation(new)) {
        return Vec::new();
    }
    let Some(template) = map_at(new, spec).and_then(|spec| map_at(spec, &["template"])) else {
        return Vec::new();
    };
    pod::template_warnings(template, &Path::root(&spec.join(".")).field("template"))
}

/// Warnings about a workload: its Pod template, and its name as the prefix of Pod names.
pub fn warnings_of_pods(new: &Object, old: Option<&Object>) -> Vec<String> {
    let mut warnings: Vec<String> = name_warning(new).filter(|_| old.is_none()).into_iter().collect();
    warnings.extend(template_warnings(new, old, &["spec"]));
    warnings
}

/// The warning about a name that is not valid in a host name.
pub fn name_warning(object: &Object) -> Option<String> {
    let advice = "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is \
                  recommended";
    pod::name_warning(object, advice)
}

/// Validates a required selector without the template.
pub fn bad_required_selector(spec: &Object, kind: &str) -> Vec<FieldError> {
    let Some(selector) = present(spec, &["selector"]) else {
        return vec![FieldError::required("spec.selector", "")];
    };
    let mut errors = bad_label_selector(&Path::root("spec.selector"), Some(selector));
    errors.extend(empty_selector(spec, kind));
    errors
}

/// The error for a selector that selects everything.
pub fn empty_selector(spec: &Object, kind: &str) -> Option<FieldError> {
    let is_empty = map_at(spec, &["selector"]).is_some_and(Object::is_empty);
    is_empty.then(|| {
        invalid_shown(&Path::root("spec.selector"), "{}", &format!("empty selector is invalid for {kind}"))
    })
}

/// The error for a template with labels that the selector does not match.
pub fn unselected(spec: &Object, selection: &Selection<'_>) -> Option<FieldError> {
    let labels = value(spec, &["template", "metadata", "labels"]);
    (!selection.is_everything() && !selection.matches(labels)).then(|| {
        let labels = labels.cloned().unwrap_or_default();
        let detail = "`selector` does not match template `labels`";
        FieldError::invalid("spec.template.metadata.labels", labels, detail)
    })
}

/// The error for a changed selector.
pub fn changed_selector(new: &Object, old: &Object) -> Option<FieldError> {
    let selector = |object| present(object, &["spec", "selector"]);
    let (new, old) = (selector(new), selector(old));
    (new != old).then(|| bad_selector(&Path::root("spec.selector"), new, "field is immutable"))
}

/// Validates a template whose Pods must always restart.
pub fn ending_template(spec: &Object, kind: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let policy = text(spec, &["template", "spec", "restartPolicy"]);
    if policy != "Always" {
        errors.push(FieldError::not_supported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
    if present(spec, &["template", "spec", "activeDeadlineSeconds"]).is_some() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden("spec.template.spec.activeDeadlineSeconds", detail));
    }
    errors
}

/// Validates selector and template of Deployments and ReplicaSets.
pub fn bad_replicas(spec: &Object) -> Vec<FieldError> {
    let selector = present(spec, &["selector"]);
    let mut errors = bad_required_selector(spec, "deployment");
    match Selection::read(selector) {
        None => errors.push(bad_selector(&Path::root("spec.selector"), selector, "invalid label selector")),
        Some(selection) => {
            errors.extend(unselected(spec, &selection));
            errors.extend(bad_template(spec, &Path::root("spec.template")));
            errors.extend(ending_template(spec, "ReplicaSet"));
        }
    }
    errors
}

/// Sets the zero status of a new object.
pub fn reset_status(object: &mut Object, zero: Value) {
    object.insert("status".to_owned(), zero);
}

/// Like [`keep_all_but_status`], and restores the labels, too.
pub fn keep_all_but_status_and_labels(new: &mut Object, old: &Object) {
    keep_all_but_status(new, old);
    let labels = value(old, &["metadata", "labels"]).cloned();
    let metadata = map_mut(new, "metadata");
    match labels {
        Some(labels) => metadata.insert("labels".to_owned(), labels),
        None => metadata.remove("labels"),
    };
}

/// Names and images of the containers in the Pod template of a spec.
pub fn container_cells(spec: Option<&Object>) -> [Value; 2] {
    pod::container_cells(spec.and_then(|spec| map_at(spec, &["template"])))
}

/// The error for an unsupported value, in Go's format.
pub fn not_supported_shown(path: &Path<'_>, shown: &str, supported: &[&str]) -> FieldError {
    let error = FieldError::not_supported(path, "", supported);
    FieldError { value: None, detail: format!("{shown}: {}", error.detail), ..error }
}
