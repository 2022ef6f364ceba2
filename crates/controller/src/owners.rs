//! Owner references: the garbage collector deletes an object when its last owner is gone, and an owner has at most one controller.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::ApiResource;
use thiserror::Error;

/// An object that cannot get an owner.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OwnerError {
    /// The server has not given the owner a name and a uid.
    #[error("the owner has no name or no uid")]
    NotStored,
    /// Owners are cluster-scoped, or in the namespace of the object; the garbage collector would delete the object at once.
    #[error("the owner is in namespace {owner:?}, the object in {object:?}")]
    OtherNamespace {
        /// The namespace of the owner.
        owner: String,
        /// The namespace of the object; empty if it is cluster-scoped.
        object: String,
    },
    /// Another object controls this one.
    #[error("{kind} {name:?} controls the object")]
    OtherController {
        /// The kind of the other controller.
        kind: String,
        /// Its name.
        name: String,
    },
}

/// Makes `owner` the controller of an object: the object is deleted with it, and a deletion of the owner in the foreground waits for the
/// object (`blockOwnerDeletion`).
///
/// # Errors
/// [`OwnerError`]; the object is as it was then.
pub fn set_controller(
    object: &mut ObjectMeta,
    resource: &ApiResource,
    owner: &ObjectMeta,
) -> Result<(), OwnerError> {
    if let Some(other) = controller_of(object).filter(|other| Some(&other.uid) != owner.uid.as_ref()) {
        return Err(OwnerError::OtherController { kind: other.kind.clone(), name: other.name.clone() });
    }
    let reference = reference(object, resource, owner)?;
    let controls = OwnerReference { controller: Some(true), block_owner_deletion: Some(true), ..reference };
    put(object, controls);
    Ok(())
}

/// Adds `owner` to the owners of an object, beside others: the object is deleted with the last of them.
///
/// # Errors
/// [`OwnerError`]; the object is as it was then.
pub fn add_owner(
    object: &mut ObjectMeta,
    resource: &ApiResource,
    owner: &ObjectMeta,
) -> Result<(), OwnerError> {
    let reference = reference(object, resource, owner)?;
    let is_known = object.owner_references.iter().flatten().any(|known| known.uid == reference.uid);
    if !is_known {
        put(object, reference);
    }
    Ok(())
}

/// The controller of an object.
#[must_use]
pub fn controller_of(object: &ObjectMeta) -> Option<&OwnerReference> {
    object.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

fn reference(
    object: &ObjectMeta,
    resource: &ApiResource,
    owner: &ObjectMeta,
) -> Result<OwnerReference, OwnerError> {
    let namespace = |of: &ObjectMeta| of.namespace.clone().unwrap_or_default();
    let (of_owner, of_object) = (namespace(owner), namespace(object));
    if !of_owner.is_empty() && of_owner != of_object {
        return Err(OwnerError::OtherNamespace { owner: of_owner, object: of_object });
    }
    let (Some(name), Some(uid)) = (owner.name.clone(), owner.uid.clone()) else {
        return Err(OwnerError::NotStored);
    };
    let ApiResource { api_version, kind, .. } = resource.clone();
    Ok(OwnerReference { api_version, kind, name, uid, controller: None, block_owner_deletion: None })
}

/// Puts a reference in place of the one of its uid.
fn put(object: &mut ObjectMeta, reference: OwnerReference) {
    let references = object.owner_references.get_or_insert_default();
    match references.iter_mut().find(|known| known.uid == reference.uid) {
        Some(known) => *known = reference,
        None => references.push(reference),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResourceKind;

    const SHIPS: ResourceKind =
        ResourceKind { group: "sea.example.com", version: "v1", kind: "Ship", plural: "ships" };

    fn meta(namespace: &str, name: &str) -> ObjectMeta {
        ObjectMeta {
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            name: Some(name.to_owned()),
            uid: Some(format!("uid-{name}")),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn an_object_has_one_controller_and_any_number_of_owners() {
        let (ships, mut object) = (SHIPS.resource(), meta("n", "object"));
        add_owner(&mut object, &ships, &meta("", "fleet")).unwrap();
        add_owner(&mut object, &ships, &meta("n", "one")).unwrap();
        set_controller(&mut object, &ships, &meta("n", "one")).unwrap();
        add_owner(&mut object, &ships, &meta("n", "one")).unwrap();
        let controller = controller_of(&object).unwrap();
        assert_eq!(
            (&*controller.api_version, &*controller.kind, &*controller.uid),
            ("sea.example.com/v1", "Ship", "uid-one")
        );
        assert_eq!(controller.block_owner_deletion, Some(true));
        assert_eq!(object.owner_references.as_ref().map(Vec::len), Some(2), "one reference for each owner");
        let before = object.clone();
        let error = set_controller(&mut object, &ships, &meta("n", "two")).unwrap_err();
        assert_eq!(error.to_string(), "Ship \"one\" controls the object");
        assert_eq!(object, before);
        set_controller(&mut object, &ships, &meta("n", "one")).unwrap();
        assert_eq!(object, before);
    }

    #[test]
    fn owners_that_the_garbage_collector_does_not_accept_are_refused() {
        let ships = SHIPS.resource();
        for (object, owner, is_accepted) in [
            (meta("n", "a"), meta("n", "o"), true),
            (meta("n", "a"), meta("", "o"), true),
            (meta("", "a"), meta("", "o"), true),
            (meta("n", "a"), meta("m", "o"), false),
            (meta("", "a"), meta("m", "o"), false),
            (meta("n", "a"), ObjectMeta { uid: None, ..meta("n", "o") }, false),
        ] {
            let mut changed = object.clone();
            assert_eq!(add_owner(&mut changed, &ships, &owner).is_ok(), is_accepted, "{object:?} {owner:?}");
            assert_eq!(changed != object, is_accepted);
        }
    }
}
