//! Volumes: `DefaultStorageClass`, `StorageObjectInUseProtection` and `PersistentVolumeClaimResize`.

use std::cmp::Ordering;
use std::sync::Arc;

use model::object::{is_true, list_mut, map_mut, present, text};
use model::{ObjectKey, Resource};
use quota::amounts::compare;
use serde_json::Value;

use crate::admission::follow::{Follows, Mirror};
use crate::admission::{Operation, Phases, Plugin, Request, Step, Target};
use crate::registry::Object;
use crate::verbs::metadata_mut;

/// What plugins know of a storage class.
pub(super) struct StorageClass {
    is_default: bool,
    /// When it was made.
    made: String,
    grows: bool,
}

/// The storage classes that there are.
#[derive(Clone)]
pub(super) struct StorageClasses(Arc<Mirror<StorageClass>>);

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
        Self(Mirror::new(Resource::new("storage.k8s.io", "storageclasses"), read))
    }

    pub fn followed(&self) -> Arc<dyn Follows> {
        self.0.clone()
    }
}

/// A claim that names no class gets the default one.
pub(super) struct DefaultStorageClass(pub StorageClasses);

impl Plugin for DefaultStorageClass {
    fn handles(&self, target: Target<'_>) -> Phases {
        let is_claim = target.is("", "persistentvolumeclaims", "");
        Phases::mutating(is_claim && target.operation == Operation::Create)
    }

    fn admit<'a>(&'a self, _request: &'a Request<'_>, object: Option<&'a mut Object>) -> Step<'a> {
        let Some(claim) = object else { return Step::OK };
        if class_of(claim).is_some() {
            return Step::OK;
        }
        let classes = self.0.0.of("");
        let defaults = classes.iter().flat_map(|all| all.iter()).filter(|(_, class)| class.is_default);
        let newest = super::newest(defaults.map(|(name, class)| (name.as_str(), class.made.as_str())));
        if let Some(name) = newest {
            map_mut(claim, "spec").insert("storageClassName".to_owned(), name.into());
        }
        Step::OK
    }
}

/// The class that a claim names, be it the empty one.
fn class_of(claim: &Object) -> Option<&str> {
    let annotated = present(claim, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    annotated.or_else(|| present(claim, &["spec", "storageClassName"])).and_then(Value::as_str)
}

/// What is in use is not deleted: its finalizer is taken away by a controller.
pub(super) struct StorageObjectInUseProtection;

fn protection(target: Target<'_>) -> Option<&'static str> {
    [
        ("", "persistentvolumes", "kubernetes.io/pv-protection"),
        ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
        ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
    ]
    .into_iter()
    .find_map(|(group, plural, finalizer)| target.is(group, plural, "").then_some(finalizer))
}

impl Plugin for StorageObjectInUseProtection {
    fn handles(&self, target: Target<'_>) -> Phases {
        Phases::mutating(protection(target).is_some() && target.operation == Operation::Create)
    }

    fn admit<'a>(&'a self, request: &'a Request<'_>, object: Option<&'a mut Object>) -> Step<'a> {
        if let (Some(object), Some(finalizer)) = (object, protection(request.target())) {
            let finalizers = list_mut(metadata_mut(object), "finalizers");
            if !finalizers.iter().any(|known| known == finalizer) {
                finalizers.push(finalizer.into());
            }
        }
        Step::OK
    }
}

/// Claims grow only where their class lets them.
pub(super) struct PersistentVolumeClaimResize(pub StorageClasses);

impl Plugin for PersistentVolumeClaimResize {
    fn handles(&self, target: Target<'_>) -> Phases {
        let is_claim = target.is("", "persistentvolumeclaims", "");
        Phases::validating(is_claim && target.operation == Operation::Update)
    }

    fn validate<'a>(&'a self, request: &'a Request<'_>, object: Option<&'a Object>) -> Step<'a> {
        const SIZE: [&str; 4] = ["spec", "resources", "requests", "storage"];
        let (Some(new), Some(old)) = (object, request.old) else { return Step::OK };
        if compare(text(new, &SIZE), text(old, &SIZE)) != Ordering::Greater {
            return Step::OK;
        }
        if text(old, &["status", "phase"]) != "Bound" {
            let message = "Only bound persistent volume claims can be expanded";
            return Step::Done(Err(request.forbidden(object, message)));
        }
        let class = class_of(new).filter(|class| !class.is_empty() && class_of(old) == Some(*class));
        let grows = class.is_some_and(|name| {
            self.0.0.of("").is_some_and(|classes| classes.get(name).is_some_and(|class| class.grows))
        });
        if grows {
            return Step::OK;
        }
        let message = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
        Step::Done(Err(request.forbidden(object, message)))
    }
}
