//! `PersistentVolumeClaimResize`: a PersistentVolumeClaim grows only if its StorageClass allows expansion.

use std::cmp::Ordering;

use model::object::text;
use quota::amounts::compare;

use super::storage_classes::{StorageClasses, class_of};
use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

/// The plugin `PersistentVolumeClaimResize`.
pub(super) struct PersistentVolumeClaimResize(pub StorageClasses);

impl Plugin for PersistentVolumeClaimResize {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        let is_claim = target.is("", "persistentvolumeclaims", "");
        Phases::validating(is_claim && target.operation == Operation::Update)
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        const SIZE: [&str; 4] = ["spec", "resources", "requests", "storage"];
        let (Some(new), Some(old)) = (object, request.old) else { return PluginResult::OK };
        if compare(text(new, &SIZE), text(old, &SIZE)) != Ordering::Greater {
            return PluginResult::OK;
        }
        if text(old, &["status", "phase"]) != "Bound" {
            let message = "Only bound persistent volume claims can be expanded";
            return PluginResult::Done(Err(request.forbidden(object, message)));
        }
        let class = class_of(new).filter(|class| !class.is_empty() && class_of(old) == Some(*class));
        let grows = class.is_some_and(|name| {
            self.0.0.of("").is_some_and(|classes| classes.get(name).is_some_and(|class| class.grows))
        });
        if grows {
            return PluginResult::OK;
        }
        let message = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
        PluginResult::Done(Err(request.forbidden(object, message)))
    }
}
