//! Conversion of a CRD.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{has, is_true, text, texts, value};
use serde_json::Value;

use crate::rules::admission::{REVIEW_VERSIONS, bad_client_config, bad_version_names};
use crate::rules::certificates::bad_bundle;
use crate::rules::common::unsupported;

const PATH: Path<'static> = Path::root("spec.conversion");

/// Validates the conversion of a CRD.
pub fn bad_conversion(new: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let Some(conversion) = value(new, &["spec", "conversion"]).and_then(Value::as_object) else {
        return Vec::new();
    };
    let strategy = text(conversion, &["strategy"]);
    let mut errors = Vec::new();
    if strategy == "Webhook" && is_true(new, &["spec", "preserveUnknownFields"]) {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(PATH.field("strategy"), strategy, detail));
    }
    match strategy {
        "" => errors.push(FieldError::required(PATH.field("strategy"), "")),
        strategy => {
            errors.extend(unsupported(&PATH.field("strategy"), strategy, &["None", "Webhook"]));
        }
    }
    if strategy == "Webhook" {
        errors.extend(bad_webhook(conversion, old));
        return errors;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if has(conversion, &["webhook", "clientConfig"]) {
        errors.push(FieldError::forbidden(PATH.field("webhookClientConfig"), detail));
    }
    if !texts(conversion, &["webhook", "conversionReviewVersions"]).is_empty() {
        errors.push(FieldError::forbidden(PATH.field("conversionReviewVersions"), detail));
    }
    errors
}

fn bad_webhook(conversion: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let path = PATH.field("webhookClientConfig");
    let mut errors = Vec::new();
    match value(conversion, &["webhook", "clientConfig"]).and_then(Value::as_object) {
        None => errors.push(FieldError::required(path, "required when strategy is set to Webhook")),
        Some(config) => {
            errors.extend(bad_client_config(&path, config));
            if old.is_some_and(requires_bundle) {
                errors.extend(bad_bundle(&path.field("caBundle"), text(config, &["caBundle"])));
            }
        }
    }
    let versions = texts(conversion, &["webhook", "conversionReviewVersions"]);
    errors.extend(bad_review_versions(&versions, old));
    errors
}

/// Whether the stored CRD is established and its CA bundle valid or empty, so that an update may not break it.
fn requires_bundle(old: &Object) -> bool {
    let bundle = text(old, &["spec", "conversion", "webhook", "clientConfig", "caBundle"]);
    super::spec::is_established(old) && (bundle.is_empty() || bad_bundle(&Path::OBJECT, bundle).is_none())
}

fn bad_review_versions(versions: &[&str], old: Option<&Object>) -> Vec<FieldError> {
    let path = PATH.field("conversionReviewVersions");
    if versions.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = bad_version_names(&path, versions);
    let knows = |versions: &[&str]| versions.iter().any(|version| REVIEW_VERSIONS.contains(version));
    let before = old.map(|old| texts(old, &["spec", "conversion", "webhook", "conversionReviewVersions"]));
    let was_known = before.is_none_or(|before| before.is_empty() || knows(&before));
    if was_known && !knows(versions) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::invalid(path, versions.to_vec(), detail));
    }
    errors
}
