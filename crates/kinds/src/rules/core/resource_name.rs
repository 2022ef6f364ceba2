//! Resource names in requests, limits and quotas: `cpu`, `requests.memory`, `example.com/gpu`.

use model::error::{FieldError, Path};
use model::names::qualified_name;
use serde_json::Value;

use crate::rules::label_selector::invalid;
use quantity::Quantity;

/// The standard resources of containers.
const CONTAINER: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Object counts.
pub const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const REQUESTS: &str = "requests.";

/// Validates the name of a resource.
pub fn bad_resource_name(path: &Path<'_>, name: &str) -> Vec<FieldError> {
    let errors: Vec<FieldError> = invalid(path, name, qualified_name(name)).collect();
    if errors.is_empty() && !name.contains('/') && !is_standard(name) {
        return vec![FieldError::invalid(path, name, "must be a standard resource type or fully qualified")];
    }
    errors
}

/// Validates the resource name of a container's request or limit.
pub fn bad_container_resource_name(path: &Path<'_>, name: &str) -> Vec<FieldError> {
    let mut errors = bad_resource_name(path, name);
    if !name.contains('/') {
        if !CONTAINER.contains(&name) && !is_huge_pages(name) {
            errors.push(FieldError::invalid(path, name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(FieldError::invalid(path, name, "doesn't follow extended resource name standard"));
    }
    errors
}

/// Validates a quantity: not negative, and an integer for countable resources.
pub fn bad_resource_amount(path: &Path<'_>, name: &str, amount: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let text = amount.as_str().unwrap_or_default();
    let Ok(amount) = Quantity::parse(text) else { return errors };
    if amount.is_negative() {
        errors.push(FieldError::invalid(path, text, "must be greater than or equal to 0"));
    }
    if is_counted(name) && !amount.is_whole() {
        errors.push(FieldError::invalid(path, text, "must be an integer"));
    }
    errors
}

/// Validates the name of a resource that a quota limits.
pub fn bad_quota_resource_name(path: &Path<'_>, name: &str) -> Vec<FieldError> {
    let mut errors = bad_resource_name(path, name);
    if !name.contains('/') && !is_standard_for_quota(name) {
        errors.push(FieldError::invalid(path, name, "must be a standard resource for quota"));
    }
    errors
}

/// Whether the resource is a standard one of quotas.
pub fn is_standard_for_quota(name: &str) -> bool {
    let measured = name.strip_prefix(REQUESTS).or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
    CONTAINER.contains(&measured)
        || COUNTED.contains(&name)
        || name == "requests.storage"
        || is_huge_pages(name)
        || name.strip_prefix(REQUESTS).is_some_and(is_huge_pages)
}

/// Whether the resource is countable.
fn is_counted(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

/// Whether limits may exceed requests.
pub fn allows_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

fn is_standard(name: &str) -> bool {
    is_standard_for_quota(name) || name == "storage"
}

fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Whether the resource is native to Kubernetes.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether it is an extended resource, with a name that is valid in quotas, too.
fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with(REQUESTS) && qualified_name(&format!("{REQUESTS}{name}")).is_empty()
}
