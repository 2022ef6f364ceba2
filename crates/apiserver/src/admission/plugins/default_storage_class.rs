//! `DefaultStorageClass`: a PersistentVolumeClaim without a class gets the default StorageClass.

use model::object::map_mut;

use super::storage_classes::{StorageClasses, class_of};
use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

/// The plugin `DefaultStorageClass`.
pub(super) struct DefaultStorageClass(pub StorageClasses);

impl Plugin for DefaultStorageClass {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        let is_claim = target.is("", "persistentvolumeclaims", "");
        Phases::mutating(is_claim && target.operation == Operation::Create)
    }

    fn admit<'a>(
        &'a self,
        _request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        let Some(claim) = object else { return PluginResult::OK };
        if class_of(claim).is_some() {
            return PluginResult::OK;
        }
        let classes = self.0.0.of("");
        let defaults = classes.iter().flat_map(|all| all.iter()).filter(|(_, class)| class.is_default);
        let newest = super::newest(defaults.map(|(name, class)| (name.as_str(), class.made.as_str())));
        if let Some(name) = newest {
            map_mut(claim, "spec").insert("storageClassName".to_owned(), name.into());
        }
        PluginResult::OK
    }
}
