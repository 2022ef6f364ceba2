//! Groups of the Kubernetes community, whose kinds have to be approved.

use crate::error::{FieldError, quote};
use crate::kinds::Object;
use crate::kinds::object::text;
use crate::structural::is_request_uri;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const PAGE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

#[derive(PartialEq, Eq)]
enum Approval {
    Missing,
    Invalid,
    /// Approved, or said not to be.
    Stated,
}

/// What is wrong with the approval of a definition; one that has not changed is fine.
pub fn bad_approval(new: &Object, old: Option<&Object>) -> Option<FieldError> {
    let group = text(new, &["spec", "group"]);
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    let approval = approval(new);
    if !is_protected || old.is_some_and(|old| self::approval(old) == approval) {
        return None;
    }
    let path = format!("metadata.annotations[{ANNOTATION}]");
    let rule = format!("protected groups must have approval annotation {}", quote(ANNOTATION));
    match approval {
        Approval::Stated => None,
        Approval::Missing => Some(FieldError::required(path, format!("{rule}, {PAGE}"))),
        Approval::Invalid => {
            let value = text(new, &["metadata", "annotations", ANNOTATION]);
            let rule = format!("{rule} with either a URL or a reason starting with \"unapproved\", {PAGE}");
            Some(FieldError::invalid(path, value, rule))
        }
    }
}

fn approval(definition: &Object) -> Approval {
    match text(definition, &["metadata", "annotations", ANNOTATION]) {
        "" => Approval::Missing,
        reason if reason.starts_with("unapproved") => Approval::Stated,
        url if is_request_uri(url) && has_host(url) => Approval::Stated,
        _ => Approval::Invalid,
    }
}

fn has_host(url: &str) -> bool {
    url.split_once("://").is_some_and(|(_, rest)| !rest.is_empty() && !rest.starts_with(['/', '?']))
}
