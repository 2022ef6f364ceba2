//! Messages of errors, in the words of kube-apiserver.

use std::collections::HashSet;

use super::{FieldError, quote};

/// For an object that is being deleted.
pub(super) fn before_the_end(is_ending: bool) -> &'static str {
    if is_ending { "object is being deleted: " } else { "" }
}

/// `configmaps` or `leases.coordination.k8s.io`; the same for kinds.
pub(super) fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

pub(super) fn forbidden(group: &str, resource: &str, name: &str, message: &str) -> String {
    match (qualified(resource, group), name) {
        _ if resource.is_empty() && group.is_empty() => format!("forbidden: {message}"),
        (resource, "") => format!("{resource} is forbidden: {message}"),
        (resource, name) => format!("{resource} {} is forbidden: {message}", quote(name)),
    }
}

pub(super) fn terminating(namespace: &str) -> String {
    format!("unable to create new content in namespace {namespace} because it is being terminated")
}

pub(super) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> String {
    if kind.is_empty() && errors.is_empty() {
        return "the server rejected our request due to an error in our request".to_owned();
    }
    let mut seen = HashSet::with_capacity(errors.len());
    let mut messages: Vec<String> = errors.iter().map(FieldError::to_string).collect();
    messages.retain(|message| seen.insert(message.clone()));
    let subject = format!("{} {} is invalid", qualified(kind, group), quote(name));
    match messages.as_slice() {
        [] => subject,
        [message] => format!("{subject}: {message}"),
        messages => format!("{subject}: [{}]", messages.join(", ")),
    }
}

pub(super) fn method_not_allowed(group: &str, resource: &str, verb: &str) -> String {
    if resource.is_empty() {
        return "the server does not allow this method on the requested resource".to_owned();
    }
    format!("{verb} is not supported on resources of kind {}", quote(&qualified(resource, group)))
}

pub(super) fn unsupported_media_type(accepted: &[String]) -> String {
    if accepted.is_empty() {
        return "415: Unsupported Media Type".to_owned();
    }
    format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    )
}
