//! The names of a custom resource.

use model::Object;
use model::error::{FieldError, Path};
use model::names::dns1035_label;
use model::object::{text, texts};

/// Validates the present names.
pub fn bad_names(path: &Path<'_>, names: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["plural", "singular"] {
        let name = text(names, &[field]);
        errors.extend(bad_label(&path.field(field), name, name, "").filter(|_| !name.is_empty()));
    }
    for field in ["kind", "listKind"] {
        let name = text(names, &[field]);
        let prefix = "may have mixed case, but should otherwise match: ";
        let error = bad_label(&path.field(field), name, &name.to_lowercase(), prefix);
        errors.extend(error.filter(|_| !name.is_empty()));
    }
    errors.extend(bad_labels(path, names, "shortNames"));
    let (kind, list_kind) = (text(names, &["kind"]), text(names, &["listKind"]));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(path.field("listKind"), list_kind, detail));
    }
    errors.extend(bad_labels(path, names, "categories"));
    errors
}

/// Validates the required names of a CRD.
pub fn missing_names(path: &Path<'_>, names: &Object) -> Vec<FieldError> {
    let missing = ["plural", "singular", "kind", "listKind"].into_iter();
    let missing = missing.filter(|field| text(names, &[field]).is_empty());
    missing.map(|field| FieldError::required(path.field(field), "")).collect()
}

fn bad_labels(path: &Path<'_>, names: &Object, field: &str) -> Vec<FieldError> {
    let labels = texts(names, &[field]).into_iter().enumerate();
    labels.filter_map(|(index, label)| bad_label(&path.item(field, index), label, label, "")).collect()
}

/// The error for a name that is not a DNS label.
pub fn bad_label(path: &Path<'_>, name: &str, label: &str, prefix: &str) -> Option<FieldError> {
    let problems = dns1035_label(label);
    (!problems.is_empty()).then(|| FieldError::invalid(path, name, format!("{prefix}{}", problems.join(","))))
}
