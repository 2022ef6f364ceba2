//! Admin access to devices in use: only labelled namespaces may request it.

use model::Object;
use model::error::FieldError;
use model::object::{maps, value};
use serde_json::Value;

use super::GROUP;

const LABEL: &str = "resource.kubernetes.io/admin-access";

/// The path at which an object or subresource newly requests admin access; `None` if it does not.
pub fn admin_access(
    group: &str,
    kind: &str,
    subresource: &str,
    new: &Object,
    old: Option<&Object>,
) -> Option<String> {
    if group != GROUP {
        return None;
    }
    let requests: &[&str] = match (kind, subresource, old) {
        ("ResourceClaim", "status", Some(old)) => {
            return if granted(old).is_some() { None } else { granted(new) };
        }
        ("ResourceClaim", "", None) => &["spec", "devices", "requests"],
        ("ResourceClaimTemplate", "", None) => &["spec", "spec", "devices", "requests"],
        // The requests of a claim are immutable.
        _ => return None,
    };
    let asks = |request: &Object| value(request, &["exactly", "adminAccess"]) == Some(&Value::Bool(true));
    let (index, _) = maps(new, requests).find(|(_, request)| asks(request))?;
    Some(format!("spec.devices.requests[{index}].adminAccess"))
}

fn granted(claim: &Object) -> Option<String> {
    let mut results = maps(claim, &["status", "allocation", "devices", "results"]);
    let (index, _) = results.find(|(_, result)| result.get("adminAccess") == Some(&Value::Bool(true)))?;
    Some(format!("status.allocation.devices.results[{index}].adminAccess"))
}

/// Validates admin access by the labels of the namespace.
pub fn bad_admin_access(path: String, namespace: Option<&Object>) -> Option<FieldError> {
    let label = namespace.and_then(|namespace| value(namespace, &["metadata", "labels", LABEL]));
    let is_allowed = label == Some(&Value::String("true".to_owned()));
    let detail =
        format!("admin access to devices requires the `{LABEL}: true` label on the containing namespace");
    (!is_allowed).then(|| FieldError::forbidden(path, detail))
}
