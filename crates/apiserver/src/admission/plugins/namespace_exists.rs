//! `NamespaceExists`: refuses requests in a namespace that does not exist.

use model::error::Error;

use crate::admission::{AdmissionAttributes, AdmissionTarget, Phases, Plugin, PluginResult};
use crate::registry::Object;

/// Whether the namespace of the request is stored.
pub(super) async fn namespace_exists(request: &AdmissionAttributes<'_>) -> Result<bool, Error> {
    Ok(request.look_up("", "namespaces", "", request.namespace()).await?.is_some())
}

/// The plugin `NamespaceExists`.
pub(super) struct NamespaceExists;

impl Plugin for NamespaceExists {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::validating(target.resource_type.namespaced)
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        _object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        PluginResult::later(async move {
            if namespace_exists(request).await? {
                return Ok(());
            }
            let (group, resource) = (String::new(), "namespaces".to_owned());
            Err(Error::NotFound { group, resource, name: request.namespace().to_owned() })
        })
    }
}
