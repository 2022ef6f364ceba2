//! Approval of CRDs in protected community groups.

use model::Object;
use model::error::{FieldError, Path, quote};
use model::object::text;

use crate::structural::is_request_uri;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const PAGE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Approval {
    Missing,
    Invalid,
    /// Explicitly unapproved.
    Bypassed,
    Approved,
}

/// The `KubernetesAPIApprovalPolicyConformant` condition of a CRD in a protected group: status, reason and message.
pub fn approval_condition(crd: &Object) -> Option<(&'static str, &'static str, String)> {
    if !is_protected(crd) {
        return None;
    }
    let approval = approval(crd);
    let (status, reason) = match approval {
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Approved => ("True", "ApprovedAnnotation"),
    };
    Some((status, reason, approval.message(annotation(crd))))
}

/// Validates the approval annotation of a CRD; an unchanged one is valid.
pub fn bad_approval(new: &Object, old: Option<&Object>) -> Option<FieldError> {
    let approval = approval(new);
    if !is_protected(new) || old.is_some_and(|old| self::approval(old) == approval) {
        return None;
    }
    let annotations = Path::METADATA.field("annotations");
    let path = annotations.key(ANNOTATION);
    let message = approval.message(annotation(new));
    match approval {
        Approval::Approved | Approval::Bypassed => None,
        Approval::Missing => Some(FieldError::required(path, message)),
        Approval::Invalid => Some(FieldError::invalid(path, annotation(new), message)),
    }
}

fn is_protected(crd: &Object) -> bool {
    let group = text(crd, &["spec", "group"]);
    let is_below =
        |domain: &str| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    is_below("k8s.io") || is_below("kubernetes.io")
}

fn annotation(crd: &Object) -> &str {
    text(crd, &["metadata", "annotations", ANNOTATION])
}

fn approval(crd: &Object) -> Approval {
    match annotation(crd) {
        "" => Approval::Missing,
        reason if reason.starts_with("unapproved") => Approval::Bypassed,
        url if is_request_uri(url) && has_host(url) => Approval::Approved,
        _ => Approval::Invalid,
    }
}

impl Approval {
    fn message(self, annotation: &str) -> String {
        let rule = format!("protected groups must have approval annotation {}", quote(ANNOTATION));
        match self {
            Self::Missing => format!("{rule}, {PAGE}"),
            Self::Invalid => {
                format!("{rule} with either a URL or a reason starting with \"unapproved\", {PAGE}")
            }
            Self::Bypassed => format!("not approved: {}", quote(annotation)),
            Self::Approved => format!("approved in {annotation}"),
        }
    }
}

fn has_host(url: &str) -> bool {
    url.split_once("://").is_some_and(|(_, rest)| !rest.is_empty() && !rest.starts_with(['/', '?']))
}
