//! The group `networking.k8s.io`.

mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod service_cidr;

use model::error::{FieldError, Path};
use model::names::{dns1123_subdomain, path_segment};
use model::object::text_in;
use serde_json::Value;

use super::KindRules;
use crate::rules::common::invalid_for;

pub(super) const RULES: &[KindRules] =
    &[ingress::RULES, ingress_class::RULES, ip_address::RULES, network_policy::RULES, service_cidr::RULES];

const GROUP: &str = "networking.k8s.io";

/// Validates a reference to an object of any kind.
fn bad_reference(path: &Path<'_>, reference: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(group) = reference.get("apiGroup").and_then(Value::as_str) {
        errors.extend(invalid_for(&path.field("apiGroup"), group, dns1123_subdomain(group)));
    }
    for field in ["kind", "name"] {
        errors.extend(required_segment(&path.field(field), text_in(reference, field)));
    }
    errors
}

/// Validates a required path segment.
fn required_segment(path: &Path<'_>, value: &str) -> Vec<FieldError> {
    match value {
        "" => vec![FieldError::required(path, "")],
        value => invalid_for(path, value, path_segment(value)),
    }
}
