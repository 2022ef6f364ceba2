//! `DenyServiceExternalIPs`: refuses new `externalIPs` of Services.

use model::object::items;

use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

/// The plugin `DenyServiceExternalIPs`.
pub(super) struct DenyServiceExternalIps;

impl Plugin for DenyServiceExternalIps {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::validating(target.is("", "services", "") && target.operation != Operation::Delete)
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        const PATH: [&str; 2] = ["spec", "externalIPs"];
        let Some(service) = object else { return PluginResult::OK };
        let had =
            |address| request.old.is_some_and(|old| items(old, &PATH).iter().any(|known| known == address));
        if items(service, &PATH).iter().all(had) {
            return PluginResult::OK;
        }
        let message = "Use of external IPs is denied by admission control";
        PluginResult::Done(Err(request.forbidden(object, message)))
    }
}
