//! Shared rules of ConfigMaps and Secrets: keys that become file names, the size limit, immutability.

use model::Object;
use model::error::FieldError;
use model::object::{entries, is_true};
use serde_json::Value;

/// The size limit of all values, in bytes.
pub const SIZE_MAX: usize = 1024 * 1024;

const KEY_LENGTH_MAX: usize = 253;

/// Validates the keys of the map in a field.
pub fn bad_keys(object: &Object, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, _) in entries(object, &[field]) {
        errors.extend(key_errors(field, key));
    }
    errors
}

/// Validates one key of the map in a field.
pub fn key_errors(field: &str, key: &str) -> impl Iterator<Item = FieldError> {
    let (path, key) = (format!("{field}[{key}]"), key.to_owned());
    key_problems(&key).into_iter().map(move |problem| FieldError::invalid(path.clone(), key.clone(), problem))
}

/// The problems of a key.
pub fn key_problems(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if key.len() > KEY_LENGTH_MAX {
        problems.push(format!("must be no more than {KEY_LENGTH_MAX} characters"));
    }
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if key.is_empty() || !key.bytes().all(is_fine) {
        problems.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match key {
        "." | ".." => problems.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// The size of all strings in a field, in bytes.
pub fn text_size(object: &Object, field: &str) -> usize {
    entries(object, &[field]).filter_map(|(_, value)| value.as_str()).map(str::len).sum()
}

/// The decoded size of all base64 values in a field.
pub fn bytes_size(object: &Object, field: &str) -> usize {
    let decoded =
        |text: &str| text.len() / 4 * 3 - text.bytes().rev().take_while(|byte| *byte == b'=').count();
    entries(object, &[field]).filter_map(|(_, value)| value.as_str()).map(decoded).sum()
}

/// Validates an immutable object: these fields and `immutable` itself may not change.
pub fn sealed(new: &Object, old: &Object, fields: &[&str]) -> Vec<FieldError> {
    if !is_true(old, &["immutable"]) {
        return Vec::new();
    }
    let changed =
        |field: &&&str| new.get(**field).unwrap_or(&Value::Null) != old.get(**field).unwrap_or(&Value::Null);
    let opened = (!is_true(new, &["immutable"])).then_some("immutable");
    opened
        .into_iter()
        .chain(fields.iter().filter(changed).copied())
        .map(|field| FieldError::forbidden(field, "field is immutable when `immutable` is set"))
        .collect()
}
