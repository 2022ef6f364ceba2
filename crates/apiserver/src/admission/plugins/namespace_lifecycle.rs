//! `NamespaceLifecycle`: no object is created in a missing or terminating namespace, and system namespaces cannot be deleted.
//!
//! The existence of the namespace is a requirement of the write's transaction (`verbs/namespace.rs`), not a read before it.

use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

/// Namespaces that cannot be deleted.
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
