//! The scale subresource of custom objects, at the paths of their CRD.

use model::error::{FieldError, quote};
use serde_json::{Map, Value, json};

use super::version::ScalePaths;
use crate::registry::Object;

/// The Scale of an object; without replicas its spec is empty.
///
/// # Errors
/// A value of another type than the Scale has.
pub fn scale_of(paths: &ScalePaths, object: &Object) -> Result<Object, String> {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        let value = object.get("metadata").and_then(|metadata| metadata.get(field)).cloned();
        metadata.extend(value.map(|value| (field.to_owned(), value)));
    }
    let mut spec = Map::new();
    if let Some(replicas) = number(object, &paths.replicas)?.filter(|replicas| *replicas != 0) {
        spec.insert("replicas".to_owned(), replicas.into());
    }
    let mut status = Map::new();
    let is = number(object, &paths.status_replicas)?.unwrap_or_default();
    status.insert("replicas".to_owned(), is.into());
    let selector = paths.selector.as_deref().and_then(|path| at(object, path)).and_then(Value::as_str);
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        status.insert("selector".to_owned(), selector.into());
    }
    let scale = json!({"metadata": metadata, "spec": spec, "status": status});
    Ok(scale.as_object().cloned().unwrap_or_default())
}

/// Checks that the object has replicas.
///
/// # Errors
/// The path without a value.
pub fn has_replicas(paths: &ScalePaths, object: &Object) -> Result<(), String> {
    match at(object, &paths.replicas) {
        Some(_) => Ok(()),
        None => {
            Err(format!("the spec replicas field {} does not exist", quote(&format!(".{}", paths.replicas))))
        }
    }
}

/// Writes replicas and resourceVersion of a Scale into its object.
pub fn set_scale(paths: &ScalePaths, object: &mut Object, scale: &Object) {
    let replicas = scale.get("spec").and_then(|spec| spec.get("replicas")).and_then(Value::as_i64);
    set(object, &paths.replicas, replicas.unwrap_or_default().into());
    let version = scale.get("metadata").and_then(|metadata| metadata.get("resourceVersion")).cloned();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        match version {
            Some(Value::String(version)) if !version.is_empty() => {
                metadata.insert("resourceVersion".to_owned(), version.into());
            }
            _ => {
                metadata.remove("resourceVersion");
            }
        }
    }
}

/// Validates the fields of the Scale; only the status for a status update.
pub fn validate(paths: &ScalePaths, object: &Object, only_status: bool) -> Vec<FieldError> {
    let of_number = |path: &String| {
        let at = format!(".{path}");
        match number(object, path) {
            Err(problem) => Some(FieldError::invalid(at, 0, problem)),
            Ok(Some(value)) if value < 0 => {
                Some(FieldError::invalid(at, value, "should be a non-negative integer"))
            }
            Ok(Some(value)) if value > i64::from(i32::MAX) => {
                let detail = format!("should be less than or equal to {}", i32::MAX);
                Some(FieldError::invalid(at, value, detail))
            }
            Ok(_) => None,
        }
    };
    let spec = (!only_status).then(|| of_number(&paths.replicas)).flatten();
    let selector = paths.selector.as_ref().and_then(|path| {
        let value = at(object, path).filter(|value| !value.is_string())?;
        let problem = mismatch(path, value, "string");
        Some(FieldError::invalid(format!(".{path}"), "", problem))
    });
    spec.into_iter().chain(of_number(&paths.status_replicas)).chain(selector).collect()
}

fn at<'a>(object: &'a Object, path: &str) -> Option<&'a Value> {
    let mut segments = path.split('.');
    let first = object.get(segments.next()?)?;
    segments.try_fold(first, |value, segment| value.get(segment))
}

fn number(object: &Object, path: &str) -> Result<Option<i64>, String> {
    match at(object, path) {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| mismatch(path, value, "int64")),
    }
}

/// Kubernetes' message for a value of another type.
fn mismatch(path: &str, value: &Value, expected: &str) -> String {
    let (shown, kind) = match value {
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::Bool(value) => (value.to_string(), "bool"),
        Value::Number(value) => (value.to_string(), "float64"),
        Value::String(value) => (value.clone(), "string"),
        Value::Array(_) => (value.to_string(), "[]interface {}"),
        Value::Object(_) => (value.to_string(), "map[string]interface {}"),
    };
    format!(".{path} accessor error: {shown} is of the type {kind}, expected {expected}")
}

fn set(object: &mut Object, path: &str, value: Value) {
    let mut fields = object;
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
    for segment in parents.split('.').filter(|segment| !segment.is_empty()) {
        let next = fields.entry(segment).or_insert_with(|| Value::Object(Map::new()));
        if !next.is_object() {
            *next = Value::Object(Map::new());
        }
        fields = next.as_object_mut().expect("it was made an object just now");
    }
    fields.insert(last.to_owned(), value);
}
