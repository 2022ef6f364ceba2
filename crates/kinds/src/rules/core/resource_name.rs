//! The names of resources that are requested, limited and counted: `cpu`, `requests.memory`, `example.com/gpu`.

use model::error::{FieldError, Path};
use model::names::qualified_name;
use serde_json::Value;

use crate::rules::label_selector::invalid;
use quantity::Quantity;

/// What a container can ask for.
const CONTAINER: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// What is counted and not measured.
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

/// What is wrong with the name of any resource.
pub fn bad_resource_name(path: &Path<'_>, name: &str) -> Vec<FieldError> {
    let errors: Vec<FieldError> = invalid(path, name, qualified_name(name)).collect();
    if errors.is_empty() && !name.contains('/') && !is_standard(name) {
        return vec![FieldError::invalid(path, name, "must be a standard resource type or fully qualified")];
    }
    errors
}

/// What is wrong with the name of a resource that a container asks for.
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

/// What is wrong with an amount of a resource: less than nothing, or half of what comes whole.
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

/// What is wrong with the name of a resource that a quota limits.
pub fn bad_quota_resource_name(path: &Path<'_>, name: &str) -> Vec<FieldError> {
    let mut errors = bad_resource_name(path, name);
    if !name.contains('/') && !is_standard_for_quota(name) {
        errors.push(FieldError::invalid(path, name, "must be a standard resource for quota"));
    }
    errors
}

/// Whether quotas know the resource without asking anyone.
pub fn is_standard_for_quota(name: &str) -> bool {
    let measured = name.strip_prefix(REQUESTS).or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
    CONTAINER.contains(&measured)
        || COUNTED.contains(&name)
        || name == "requests.storage"
        || is_huge_pages(name)
        || name.strip_prefix(REQUESTS).is_some_and(is_huge_pages)
}

/// Whether there are only whole ones of it.
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

/// Whether it belongs to Kubernetes itself.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether it is of somebody else's, under a name that quotas can use as well.
fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with(REQUESTS) && qualified_name(&format!("{REQUESTS}{name}")).is_empty()
}
