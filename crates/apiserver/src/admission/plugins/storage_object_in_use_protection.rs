//! `StorageObjectInUseProtection`: adds the finalizer that keeps volumes and claims in use from being deleted.

use model::object::list_mut;

use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;
use crate::verbs::metadata_mut;

/// The plugin `StorageObjectInUseProtection`. A controller removes the finalizer.
pub(super) struct StorageObjectInUseProtection;

fn protection(target: AdmissionTarget<'_>) -> Option<&'static str> {
    [
        ("", "persistentvolumes", "kubernetes.io/pv-protection"),
        ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
        ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
    ]
    .into_iter()
    .find_map(|(group, plural, finalizer)| target.is(group, plural, "").then_some(finalizer))
}

impl Plugin for StorageObjectInUseProtection {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::mutating(protection(target).is_some() && target.operation == Operation::Create)
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        if let (Some(object), Some(finalizer)) = (object, protection(request.target())) {
            let finalizers = list_mut(metadata_mut(object), "finalizers");
            if !finalizers.iter().any(|known| known == finalizer) {
                finalizers.push(finalizer.into());
            }
        }
        PluginResult::OK
    }
}
