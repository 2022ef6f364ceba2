//! `NamespaceLifecycle`: nothing is made in a namespace that is missing or ending, and some namespaces are there for good.
//!
//! That a namespace is there is a requirement of the write itself (`verbs/namespace.rs`), not something that is read before it.

use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

/// They are never deleted.
const PERMANENT: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) struct NamespaceLifecycle;

impl Plugin for NamespaceLifecycle {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::mutating(target.is("", "namespaces", "") && target.operation == Operation::Delete)
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        _object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        if PERMANENT.contains(&request.name) {
            return PluginResult::Done(Err(request.forbidden(None, "this namespace may not be deleted")));
        }
        PluginResult::OK
    }
}
