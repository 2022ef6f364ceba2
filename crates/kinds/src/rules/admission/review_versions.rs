//! `admissionReviewVersions` of a webhook.

use std::collections::BTreeSet;

use model::error::{FieldError, Path};
use model::names::dns1035_label;

/// The versions that this server supports.
pub const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Validates the names of versions.
pub fn bad_version_names(path: &Path<'_>, versions: &[&str]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let path = path.at(index);
        if !seen.insert(version) {
            errors.push(FieldError::invalid(path, *version, "duplicate version"));
            continue;
        }
        let wrong = dns1035_label(version).into_iter();
        errors.extend(wrong.map(|detail| FieldError::invalid(path, *version, detail)));
    }
    errors
}
