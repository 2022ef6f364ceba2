//! `OwnerReferencesPermissionEnforcement`: changing owner references needs the right to delete the object.

use model::error::{Error, quote};
use model::object::{items, text_in};
use serde_json::Value;

use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::auth::{AuthorizerAttributes, Decision};
use crate::registry::Object;
use crate::request::path::ResourcePath;

pub(super) struct OwnerReferencesPermissionEnforcement;

const OWNERS: [&str; 2] = ["metadata", "ownerReferences"];

impl Plugin for OwnerReferencesPermissionEnforcement {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::validating(target.operation != Operation::Delete)
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        let Some(new) = object else { return PluginResult::OK };
        let none = Object::new();
        let is_same = items(new, &OWNERS) == items(request.old.unwrap_or(&none), &OWNERS);
        if is_same { PluginResult::OK } else { PluginResult::Done(check(request, new)) }
    }
}

fn may(request: &AdmissionAttributes<'_>, verb: &str, path: &ResourcePath) -> Result<(), String> {
    let attributes = AuthorizerAttributes::Resource { verb, path };
    match request.call.api.authorizer.decide(&request.call.caller, attributes) {
        Decision::Allow { .. } => Ok(()),
        Decision::Deny { reason } | Decision::NoOpinion { reason } => Err(reason),
    }
}

fn check(request: &AdmissionAttributes<'_>, new: &Object) -> Result<(), Error> {
    let refuse = |message: String| request.forbidden(Some(new), message);
    if request.operation != Operation::Create {
        may(request, "delete", &request.call.path).map_err(|reason| {
            refuse(format!("cannot set an ownerRef on a resource you can't delete: {reason}, <nil>"))
        })?;
    }
    let blocking: Vec<&Value> =
        items(new, &OWNERS).iter().filter(|owner| is_newly_blocking(request, owner)).collect();
    let anything = path("*", "*", "*", "", "*");
    if blocking.is_empty() || may(request, "update", &anything).is_ok() {
        return Ok(());
    }
    for owner in blocking {
        let (api_version, kind, name) =
            (text_in(owner, "apiVersion"), text_in(owner, "kind"), text_in(owner, "name"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let registry = request.call.api.registry();
        let found = registry.of_version(group, version).find(|of| of.kind == kind).ok_or_else(|| {
            refuse(format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} Kind {kind}: no matches for kind {} in version {}",
                quote(kind),
                quote(api_version)
            ))
        })?;
        let namespace = if found.namespaced { request.namespace() } else { "" };
        may(request, "update", &path(group, version, &found.plural, namespace, name)).map_err(|reason| {
            refuse(format!(
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: {reason}, <nil>"
            ))
        })?;
    }
    Ok(())
}

fn path(group: &str, version: &str, resource: &str, namespace: &str, name: &str) -> ResourcePath {
    ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource: "finalizers".to_owned(),
        ..ResourcePath::default()
    }
}

fn is_newly_blocking(request: &AdmissionAttributes<'_>, owner: &Value) -> bool {
    let blocks = |owner: &Value| owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true);
    let was = |old: &Object| {
        items(old, &OWNERS)
            .iter()
            .any(|known| text_in(known, "uid") == text_in(owner, "uid") && blocks(known))
    };
    blocks(owner) && !request.old.is_some_and(was)
}
