//! Accessors of fields, and validation of single values.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{items, number, text};
use serde_json::Value;

/// Errors in Kubernetes' order.
pub type Errors = Vec<FieldError>;

/// The object in a field, if there is one.
pub fn object<'a>(of: &'a Object, field: &str) -> Option<&'a Object> {
    of.get(field).and_then(Value::as_object)
}

/// The objects of a list with their indexes.
pub fn objects<'a>(of: &'a Object, field: &str) -> impl Iterator<Item = (usize, &'a Object)> {
    items(of, &[field])
        .iter()
        .enumerate()
        .filter_map(|(index, item)| item.as_object().map(|item| (index, item)))
}

/// The strings of a list.
pub fn texts<'a>(of: &'a Object, field: &str) -> impl Iterator<Item = &'a str> {
    items(of, &[field]).iter().map(|item| item.as_str().unwrap_or_default())
}

/// The string in a field, if it is set.
pub fn set_text<'a>(of: &'a Object, field: &str) -> Option<&'a str> {
    of.get(field).and_then(Value::as_str)
}

/// The number in a field, if it is set.
pub fn set_number(of: &Object, field: &str) -> Option<i64> {
    of.get(field).and_then(Value::as_i64)
}

/// All containers with their paths, in Kubernetes' order.
pub fn all_containers<'a>(
    spec: &'a Object,
    path: &'a Path<'a>,
) -> impl Iterator<Item = (Path<'a>, &'a Object)> {
    ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(move |field| {
        objects(spec, field).map(move |(index, container)| (path.item(field, index), container))
    })
}

/// An error for each message about a value.
pub fn invalid(errors: &mut Errors, path: &Path<'_>, value: &str, messages: Vec<String>) {
    errors.extend(messages.into_iter().map(|message| FieldError::invalid(path, value, message)));
}

/// The error for a missing required string.
pub fn require(errors: &mut Errors, of: &Object, path: &Path<'_>, field: &str) {
    if text(of, &[field]).is_empty() {
        errors.push(FieldError::required(path.field(field), ""));
    }
}

/// The errors for a required string that is missing or unsupported.
pub fn require_one_of(errors: &mut Errors, of: &Object, path: &Path<'_>, field: &str, supported: &[&str]) {
    match text(of, &[field]) {
        "" => errors.push(FieldError::required(path.field(field), "")),
        value if supported.contains(&value) => {}
        value => errors.push(FieldError::not_supported(path.field(field), value, supported)),
    }
}

/// The error for an unsupported string.
pub fn one_of(errors: &mut Errors, path: &Path<'_>, value: &str, supported: &[&str]) {
    if !supported.contains(&value) {
        errors.push(FieldError::not_supported(path, value, supported));
    }
}

/// The error for a negative number.
pub fn not_negative(errors: &mut Errors, of: &Object, path: &Path<'_>, field: &str) {
    let number = number(of, &[field]);
    if number < 0 {
        let rule = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path.field(field), number, rule));
    }
}

/// The error for a number outside `min..=max`, if it is set.
pub fn within(errors: &mut Errors, of: &Object, path: &Path<'_>, field: &str, min: i64, max: i64) {
    if let Some(number) = set_number(of, field).filter(|number| !(min..=max).contains(number)) {
        errors.push(FieldError::invalid(path.field(field), number, range_rule(min, max)));
    }
}

/// The message about a number outside its bounds.
pub fn range_rule(min: i64, max: i64) -> String {
    format!("must be between {min} and {max}, inclusive")
}

/// The error for an invalid file mode.
pub fn file_mode(errors: &mut Errors, of: &Object, path: &Path<'_>, field: &str) {
    if let Some(mode) = set_number(of, field).filter(|mode| !(0..=0o777).contains(mode)) {
        let rule = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(FieldError::invalid(path.field(field), mode, rule));
    }
}

/// The errors for a path with `..`.
pub fn no_backsteps(errors: &mut Errors, path: &Path<'_>, target: &str) {
    if target.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(path, target, "must not contain '..'"));
    }
}

/// The errors for a path that is absolute or has `..`.
pub fn descending(errors: &mut Errors, path: &Path<'_>, target: &str) {
    if target.starts_with('/') {
        errors.push(FieldError::invalid(path, target, "must be a relative path"));
    }
    no_backsteps(errors, path, target);
}

/// The errors for the path of a file in a volume.
pub fn local_path(errors: &mut Errors, path: &Path<'_>, target: &str) {
    descending(errors, path, target);
    if target.starts_with("..") && !target.starts_with("../") {
        errors.push(FieldError::invalid(path, target, "must not start with '..'"));
    }
}
