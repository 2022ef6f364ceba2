//! `NamespaceLifecycle`: nothing is made in a namespace that is missing or ending, and some namespaces are there for good.
//!
//! That a namespace is there is a requirement of the write itself (`verbs/namespace.rs`), not something that is read before it.

use crate::admission::{Operation, Phases, Plugin, Request, Step, Target};
use crate::registry::Object;

/// They are never deleted.
const PERMANENT: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) struct NamespaceLifecycle;

impl Plugin for NamespaceLifecycle {
    fn handles(&self, target: Target<'_>) -> Phases {
        Phases::mutating(target.is("", "namespaces", "") && target.operation == Operation::Delete)
    }

    fn admit<'a>(&'a self, request: &'a Request<'_>, _object: Option<&'a mut Object>) -> Step<'a> {
        if PERMANENT.contains(&request.name) {
            return Step::Done(Err(request.forbidden(None, "this namespace may not be deleted")));
        }
        Step::OK
    }
}
