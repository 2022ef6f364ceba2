//! `NamespaceAutoProvision`: creates the namespace of a new object if it is missing.

use http::Method;
use serde_json::json;

use super::namespace_exists::namespace_exists;
use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::bootstrap::loopback;
use crate::registry::Object;

/// The plugin `NamespaceAutoProvision`.
pub(super) struct NamespaceAutoProvision;

impl Plugin for NamespaceAutoProvision {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::mutating(target.resource_type.namespaced && target.operation == Operation::Create)
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        _object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        // A dry run must not create the namespace.
        if request.dry_run {
            return PluginResult::OK;
        }
        PluginResult::later(async move {
            if namespace_exists(request).await? {
                return Ok(());
            }
            let namespace = json!({"metadata": {"name": request.namespace()}}).to_string();
            match Box::pin(loopback::request(
                &request.call.api,
                Method::POST,
                "/api/v1/namespaces",
                namespace,
            ))
            .await?
            {
                201 | 409 => Ok(()),
                code => {
                    Err(request.forbidden(None, format!("cannot create the namespace: status code {code}")))
                }
            }
        })
    }
}
