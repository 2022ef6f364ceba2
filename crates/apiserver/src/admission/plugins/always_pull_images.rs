//! `AlwaysPullImages`: Pods pull every image, so a cached image needs the credentials for it, too.

use model::error::{Error, FieldError};
use model::object::{items, text_in};
use serde_json::Value;

use super::pod_containers::{CONTAINERS, containers, containers_mut};
use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

pub(super) struct AlwaysPullImages;

const ALWAYS: &str = "Always";

impl Plugin for AlwaysPullImages {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::both(target.is_pod() && target.operation != Operation::Delete)
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        let Some(pod) = object.filter(|pod| has_new_images(request, pod)) else { return PluginResult::OK };
        containers_mut(pod)
            .for_each(|container| drop(container.insert("imagePullPolicy".to_owned(), ALWAYS.into())));
        let volumes = pod.get_mut("spec").and_then(|spec| spec.get_mut("volumes"));
        for volume in volumes.and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(image) = volume.get_mut("image").and_then(Value::as_object_mut) {
                image.insert("pullPolicy".to_owned(), ALWAYS.into());
            }
        }
        PluginResult::OK
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        let Some(pod) = object.filter(|pod| has_new_images(request, pod)) else { return PluginResult::OK };
        let mut errors = Vec::new();
        let mut check = |path: String, policy: &str| {
            if policy != ALWAYS {
                let error = FieldError::not_supported(path, policy, &[ALWAYS]);
                errors.push(request.forbidden(object, error.to_string()));
            }
        };
        for key in CONTAINERS {
            for (at, container) in items(pod, &["spec", key]).iter().enumerate() {
                check(format!("spec.{key}[{at}].imagePullPolicy"), text_in(container, "imagePullPolicy"));
            }
        }
        for (at, volume) in items(pod, &["spec", "volumes"]).iter().enumerate() {
            if let Some(image) = volume.get("image").filter(|image| image.is_object()) {
                check(format!("spec.volumes[{at}].image.pullPolicy"), text_in(image, "pullPolicy"));
            }
        }
        PluginResult::Done(all_of(errors))
    }
}

fn has_new_images(request: &AdmissionAttributes<'_>, pod: &Object) -> bool {
    let image = |container| text_in(container, "image");
    request.old.is_none_or(|old| {
        containers(pod).map(image).any(|new| !containers(old).map(image).any(|known| known == new))
    })
}

/// Several errors become one aggregate without a name, as in Kubernetes.
fn all_of(mut errors: Vec<Error>) -> Result<(), Error> {
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => {
            let messages: Vec<String> = errors.iter().map(Error::to_string).collect();
            Err(Error::Failed { message: format!("[{}]", messages.join(", ")) })
        }
    }
}
