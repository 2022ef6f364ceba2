//! The StorageClasses that `DefaultStorageClass` and `PersistentVolumeClaimResize` share.

use std::sync::Arc;

use model::object::{is_true, present, text};
use model::{ObjectKey, Resource};
use serde_json::Value;

use crate::admission::informers::{InformerCache, PluginInformer};
use crate::registry::Object;

/// The cached fields of a StorageClass.
pub(super) struct StorageClass {
    pub is_default: bool,
    /// Its creationTimestamp.
    pub made: String,
    pub grows: bool,
}

/// The cached StorageClasses.
#[derive(Clone)]
pub(super) struct StorageClasses(pub Arc<InformerCache<StorageClass>>);

impl StorageClasses {
    pub fn new() -> Self {
        let read = |_: &ObjectKey, class: Object| {
            let says = |key| text(&class, &["metadata", "annotations", key]) == "true";
            Some(StorageClass {
                is_default: says("storageclass.kubernetes.io/is-default-class")
                    || says("storageclass.beta.kubernetes.io/is-default-class"),
                made: text(&class, &["metadata", "creationTimestamp"]).to_owned(),
                grows: is_true(&class, &["allowVolumeExpansion"]),
            })
        };
        Self(InformerCache::new(Resource::new("storage.k8s.io", "storageclasses"), read))
    }

    pub fn informer(&self) -> Arc<dyn PluginInformer> {
        self.0.clone()
    }
}

/// The class of a PersistentVolumeClaim, which may be empty; `None` if unset.
pub(super) fn class_of(claim: &Object) -> Option<&str> {
    let annotated = present(claim, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    annotated.or_else(|| present(claim, &["spec", "storageClassName"])).and_then(Value::as_str)
}
