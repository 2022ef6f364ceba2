//! Validation of `metadata`, the same for all resources, with the order and the messages of kube-apiserver.
//!
//! Values of the wrong JSON type are left to the schema: here they count as absent.

mod owners;
#[cfg(test)]
mod tests;
mod update;

use model::error::{FieldError, is_printable};
use model::names::{self, NameRule};
use model::object::text_in;
use serde_json::{Map, Value};

pub use update::validate_object_meta_update;

/// The size limit of all annotation keys and values, in bytes.
const MAX_ANNOTATION_BYTES: usize = 256 << 10;
/// The longest name of a field manager.
pub const MAX_FIELD_MANAGER_BYTES: usize = 128;

/// Validates the metadata of an object to be written. Its name has already been generated if necessary.
pub fn validate_object_meta(
    object: &Map<String, Value>,
    namespaced: bool,
    rule: NameRule,
) -> Vec<FieldError> {
    let metadata = Metadata::of(object);
    let mut errors = check_name(metadata, rule);
    errors.extend(check_namespace(metadata, namespaced));
    if let Some(generation) = metadata.number("generation").filter(|generation| *generation < 0) {
        errors.push(FieldError::invalid(
            "metadata.generation",
            generation,
            "must be greater than or equal to 0",
        ));
    }
    errors.extend(check_labels(metadata));
    errors.extend(check_annotations(metadata));
    errors.extend(owners::check(metadata));
    errors.extend(check_finalizers(metadata));
    errors
}

/// Validates the manager names in `metadata.managedFields`.
pub fn validate_managed_fields(list: &Value) -> Vec<FieldError> {
    const SUBRESOURCE_MAX: usize = 256;
    let mut errors = Vec::new();
    for (at, entry) in list.as_array().into_iter().flatten().enumerate() {
        let text = |key: &str| text_in(entry, key);
        errors.extend(validate_field_manager(
            text("manager"),
            &format!("metadata.managedFields[{at}].manager"),
        ));
        if text("subresource").len() > SUBRESOURCE_MAX {
            let path = format!("metadata.managedFields[{at}].subresource");
            errors.push(FieldError::too_long(path, SUBRESOURCE_MAX));
        }
    }
    errors
}

/// Validates the name of a field manager.
pub fn validate_field_manager(name: &str, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.len() > MAX_FIELD_MANAGER_BYTES {
        errors.push(FieldError::too_long(path, MAX_FIELD_MANAGER_BYTES));
    }
    for (at, odd) in name.char_indices().filter(|(_, character)| !is_printable(*character)) {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(odd));
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors
}

/// Validates the finalizers of a built-in kind: those without a slash must be known.
///
/// Custom resources may have others; kube-apiserver only warns about them.
pub fn validate_standard_finalizers(object: &Map<String, Value>) -> Vec<FieldError> {
    let finalizers = Metadata::of(object).texts("finalizers");
    let foreign = finalizers.into_iter().enumerate().filter(|(_, finalizer)| {
        !finalizer.contains('/') && !["kubernetes", ORPHAN, FOREGROUND].contains(finalizer)
    });
    let detail = "name is neither a standard finalizer name nor is it fully qualified";
    foreign
        .map(|(at, name)| FieldError::invalid(format!("metadata.finalizers[{at}]"), name, detail))
        .collect()
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The metadata of an object, if it has any.
#[derive(Clone, Copy)]
struct Metadata<'a>(Option<&'a Map<String, Value>>);

impl<'a> Metadata<'a> {
    fn of(object: &'a Map<String, Value>) -> Self {
        Self(object.get("metadata").and_then(Value::as_object))
    }

    fn get(self, key: &str) -> &'a Value {
        self.0.and_then(|metadata| metadata.get(key)).unwrap_or(&Value::Null)
    }

    fn text(self, key: &str) -> &'a str {
        self.get(key).as_str().unwrap_or("")
    }

    fn number(self, key: &str) -> Option<i64> {
        self.get(key).as_i64()
    }

    /// The strings of a list.
    fn texts(self, key: &str) -> Vec<&'a str> {
        self.get(key).as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The keys and strings of an object.
    fn pairs(self, key: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let pairs = self.get(key).as_object().into_iter().flatten();
        pairs.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or("")))
    }
}

fn check_name(metadata: Metadata<'_>, rule: NameRule) -> Vec<FieldError> {
    let (name, prefix) = (metadata.text("name"), metadata.text("generateName"));
    let mut errors = Vec::new();
    if !prefix.is_empty() {
        errors.extend(invalid("metadata.generateName", prefix, rule.check_prefix(prefix)));
    }
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        errors.extend(invalid("metadata.name", name, rule.check(name)));
    }
    errors
}

fn check_namespace(metadata: Metadata<'_>, namespaced: bool) -> Vec<FieldError> {
    const PATH: &str = "metadata.namespace";
    match (namespaced, metadata.text("namespace")) {
        (true, "") => vec![FieldError::required(PATH, "")],
        (true, namespace) => invalid(PATH, namespace, names::dns1123_label(namespace)).collect(),
        (false, "") => Vec::new(),
        (false, _) => vec![FieldError::forbidden(PATH, "not allowed on this type")],
    }
}

fn check_labels(metadata: Metadata<'_>) -> Vec<FieldError> {
    const PATH: &str = "metadata.labels";
    let check = |(key, value)| {
        invalid(PATH, key, names::qualified_name(key)).chain(invalid(PATH, value, names::label_value(value)))
    };
    metadata.pairs("labels").flat_map(check).collect()
}

fn check_annotations(metadata: Metadata<'_>) -> Vec<FieldError> {
    const PATH: &str = "metadata.annotations";
    let check = |(key, _)| invalid(PATH, key, names::annotation_key(key));
    let mut errors: Vec<FieldError> = metadata.pairs("annotations").flat_map(check).collect();
    let size: usize = metadata.pairs("annotations").map(|(key, value)| key.len() + value.len()).sum();
    if size > MAX_ANNOTATION_BYTES {
        errors.push(FieldError::too_long(PATH, MAX_ANNOTATION_BYTES));
    }
    errors
}

fn check_finalizers(metadata: Metadata<'_>) -> Vec<FieldError> {
    const PATH: &str = "metadata.finalizers";
    let finalizers = metadata.texts("finalizers");
    let mut errors: Vec<FieldError> =
        finalizers.iter().flat_map(|name| invalid(PATH, name, names::qualified_name(name))).collect();
    if finalizers.contains(&ORPHAN) && finalizers.contains(&FOREGROUND) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        errors.push(FieldError::invalid(PATH, finalizers, detail));
    }
    errors
}

/// An error for each message about a value.
fn invalid(path: &str, value: &str, messages: Vec<String>) -> impl Iterator<Item = FieldError> {
    messages.into_iter().map(move |message| FieldError::invalid(path, value, message))
}
