//! Secret. `stringData` becomes `data`, types require keys, and the type is immutable.

use model::error::{FieldError, Path};
use model::object::{entries, map_mut, set_default, text, value};
use model::{Object, json};
use serde_json::Value;

use super::data::{SIZE_MAX, bad_keys, bytes_size, sealed};
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::immutable;
use crate::rules::{KindRules, SelectableField};
use crate::schema::{decode_base64, encode_base64};

const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

pub(super) const RULES: KindRules = KindRules {
    kind: "Secret",
    default,
    validate_create: validate,
    validate_update: |new, old| {
        let mut errors: Vec<FieldError> = immutable(new, old, "type").into_iter().collect();
        errors.extend(sealed(new, old, &["data"]));
        errors.extend(validate(new));
        errors
    },
    warnings: |object, _| warnings(object),
    selectable: &[SelectableField { path: "type", value: |object| text(object, &["type"]).into() }],
    columns: &[
        NAME,
        Column::new("Type", "string", "The type of its data."),
        Column::new("Data", "string", "The number of entries."),
        AGE,
    ],
    cells: |object, now| {
        let count = entries(object, &["data"]).count();
        vec![name(object), text(object, &["type"]).into(), count.into(), age(object, now)]
    },
    ..KindRules::PLAIN
};

/// `stringData` is write-only.
fn default(object: &mut Object) {
    set_default(object, "type", "Opaque");
    let Some(Value::Object(texts)) = object.remove("stringData") else { return };
    if texts.is_empty() {
        return;
    }
    let data = map_mut(object, "data");
    for (key, value) in texts {
        let bytes = value.as_str().unwrap_or_default().as_bytes();
        data.insert(key, encode_base64(bytes).into());
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = bad_keys(object, "data");
    if bytes_size(object, "data") > SIZE_MAX {
        errors.push(FieldError::too_long("data", SIZE_MAX));
    }
    let account = text(object, &["metadata", "annotations", ACCOUNT_NAME]);
    let has = |key: &str| value(object, &["data", key]).is_some();
    let required = |key: &str| FieldError::required(format!("data[{key}]"), "");
    match text(object, &["type"]) {
        "kubernetes.io/service-account-token" if account.is_empty() => {
            errors.push(FieldError::required(Path::METADATA.field("annotations").key(ACCOUNT_NAME), ""));
        }
        "kubernetes.io/dockercfg" => errors.extend(bad_json(object, ".dockercfg")),
        "kubernetes.io/dockerconfigjson" => errors.extend(bad_json(object, ".dockerconfigjson")),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            errors.extend([required("username"), required("password")]);
        }
        "kubernetes.io/ssh-auth" if text(object, &["data", "ssh-privatekey"]).is_empty() => {
            errors.push(required("ssh-privatekey"));
        }
        "kubernetes.io/tls" => {
            errors.extend(["tls.crt", "tls.key"].into_iter().filter(|key| !has(key)).map(required));
        }
        _ => {}
    }
    errors
}

/// The error for a required entry that is missing or not a JSON object.
fn bad_json(object: &Object, key: &str) -> Option<FieldError> {
    let path = format!("data[{key}]");
    let Some(value) = value(object, &["data", key]) else { return Some(FieldError::required(path, "")) };
    let bytes = value.as_str().and_then(|text| decode_base64(text).ok()).unwrap_or_default();
    let problem = match json::parse(&bytes) {
        Ok(parsed) => {
            let found = match parsed.value {
                Value::Object(_) | Value::Null => return None,
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
            };
            format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
        }
        Err(error) => error.to_string(),
    };
    Some(FieldError::invalid(path, "<secret contents redacted>", problem))
}

/// Warns about a missing certificate or key. Whether they match is not checked: that would take cryptography.
fn warnings(object: &Object) -> Vec<String> {
    if text(object, &["type"]) != "kubernetes.io/tls" {
        return Vec::new();
    }
    let lacks = |key: &str| {
        let bytes = decode_base64(text(object, &["data", key])).unwrap_or_default();
        !bytes.windows(11).any(|window| window == b"-----BEGIN ")
    };
    let lacking = [("tls.crt", "certificate"), ("tls.key", "key")].into_iter().find(|(key, _)| lacks(key));
    lacking.map(|(_, what)| format!("tls: failed to find any PEM data in {what} input")).into_iter().collect()
}
