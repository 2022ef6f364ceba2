//! delete: removes an object, or marks it while finalizers or a grace period hold it.

use bytes::Bytes;
use http::{Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use kinds::Dependents;
use model::error::Error;
use model::{Encoded, ObjectKey, Uid};
use serde_json::json;
use store::{Precondition, Stored, Write};

use super::crd::has_moved;
use super::metadata::{
    self, FOREGROUND, ORPHAN, attributes, begin_deletion, can_be_removed, finalizers, grace,
    is_being_deleted, set_end, set_finalizer, time,
};
use super::options::{DeleteOptions, Propagation};
use super::write::{ATTEMPTS, modified, now};
use super::{Call, allocator, store_error};
use crate::admission::AdmissionAttributes;
use crate::body::Body;
use crate::crds::conditions;
use crate::registry::{Object, ResourceType, Served};
use crate::render;

/// The result of a deletion.
pub enum Deleted {
    /// The object is removed; the bytes of its last state.
    Gone(Uid, Bytes),
    /// The object is terminating, in this state.
    Waiting(Bytes),
}

/// The new state of an object that is deleted.
pub struct Deletion {
    object: Object,
    /// Whether it is removed at once.
    is_end: bool,
    /// The body of the DELETED event, or of the terminating object.
    body: Encoded,
}

impl Deletion {
    /// The deletion of a parsed object.
    pub async fn of(of: &Served, mut object: Object, options: &DeleteOptions) -> Result<Self, Error> {
        let DeletionDecision { is_end, .. } = decide(of, &mut object, options);
        let body = of.sealed(&object).await?;
        Ok(Self { object, is_end, body })
    }

    /// The deletion of a stored object. Its managedFields are parsed only if they are written.
    async fn of_stored(
        of: &Served,
        head: &Stored,
        mut object: Object,
        options: &DeleteOptions,
    ) -> Result<Self, Error> {
        let DeletionDecision { is_end, is_changed } = decide(of, &mut object, options);
        if is_changed || !of.reads_as_stored(head) {
            return Self::of(of, of.read(head).await?, options).await;
        }
        Ok(Self { object, is_end, body: Encoded::of_stored(&head.value, head.version_at) })
    }
}

pub async fn delete(call: Call) -> Result<Response<Body>, Error> {
    let options = DeleteOptions::read(&call)?;
    let key = call.key();
    match delete_object(&call, &key, &options).await? {
        Deleted::Waiting(value) => render::object(&call, StatusCode::OK, &value),
        Deleted::Gone(_, end) if call.resource_type.shows_deleted => {
            render::object(&call, StatusCode::OK, &end)
        }
        Deleted::Gone(uid, _) => {
            let mut details = json!({"name": key.name, "kind": call.resource_type.plural});
            if !call.resource_type.group.is_empty() {
                details["group"] = call.resource_type.group.clone().into();
            }
            details["uid"] = uid.0.into();
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
            });
            render::status(&call, &status)
        }
    }
}

/// Deletes one object, or begins its deletion.
pub async fn delete_object(call: &Call, key: &ObjectKey, options: &DeleteOptions) -> Result<Deleted, Error> {
    delete_found(call, key.clone(), None, options).await
}

/// Like [`delete_object`], for an object that was just read; reads again after a conflict.
pub async fn delete_found(
    call: &Call,
    key: ObjectKey,
    mut found: Option<Stored>,
    options: &DeleteOptions,
) -> Result<Deleted, Error> {
    let resource_type = &call.resource_type;
    if let Some(reason) = resource_type.strategy.forbids_deletion(&key.name) {
        return Err(Error::Forbidden {
            group: resource_type.group.clone(),
            resource: resource_type.plural.clone(),
            name: key.name.clone(),
            message: reason.to_owned(),
        });
    }
    warn(call, options);
    for _ in 0..ATTEMPTS {
        let head = match found.take() {
            Some(found) => Some(found),
            None => call.api.store.get(&key, None).await.map_err(store_error)?,
        };
        let Some(head) = head else { return Err(resource_type.not_found(&key.name)) };
        check_preconditions(resource_type, &head, options)?;
        let object = resource_type.read_unmanaged(&head).await?;
        // deletecollection has no name in its attributes.
        let name = &call.path.name;
        let request =
            AdmissionAttributes::delete(call, name, &head, &object, &options.given, options.dry_run);
        if !options.is_end_of_type {
            request.admit(None).await?;
            request.validate(None).await?;
        }
        let deletion = Deletion::of_stored(resource_type, &head, object, options).await?;
        if let Some(deleted) = attempt(call, &head, deletion, options, None).await? {
            return Ok(deleted);
        }
    }
    Err(modified(call))
}

/// Warns if the default propagation policy orphans dependents.
pub fn warn(call: &Call, options: &DeleteOptions) {
    if let (Dependents::Orphaned(warning), None) =
        (call.resource_type.strategy.dependents(), options.propagation)
    {
        call.warnings.add(warning);
    }
}

/// Deletes an object, or begins its deletion, together with another write; `None` after a conflict.
pub async fn attempt(
    call: &Call,
    head: &Stored,
    Deletion { object, is_end, body }: Deletion,
    options: &DeleteOptions,
    beside: Option<Write>,
) -> Result<Option<Deleted>, Error> {
    let resource_type = &call.resource_type;
    let of = |shown| if is_end { Deleted::Gone(head.uid.clone(), shown) } else { Deleted::Waiting(shown) };
    if options.dry_run || !is_end && body.at(head.revision) == head.value {
        let becoming = body.at(head.revision);
        return Ok(Some(of(resource_type.of_version(becoming, head.revision).await?)));
    }
    let (key, attributes) = (head.key.clone(), attributes(resource_type, &object));
    let expect = Precondition { revision: Some(head.revision), uid: None };
    let mut writes = vec![if is_end {
        Write::Delete { key, expect, attributes, body }
    } else {
        Write::Update { key, expect, attributes, body }
    }];
    writes.extend(beside);
    if is_end && resource_type.strategy.allocates() {
        writes.extend(allocator::writes(call, None, Some(&object)).await.map_err(store_error)?);
    }
    match call.write(writes).await {
        Ok(written) => Ok(Some(of(match written.into_iter().next() {
            Some(written) => resource_type.of_version(written.value, written.revision).await?,
            None => head.value.clone(),
        }))),
        Err(error) if has_moved(call, &error) => Err(Error::DefinitionChanged),
        Err(store::Error::Conflict { .. }) => Ok(None),
        Err(error) if allocator::was_contested(&error, &head.key) => Ok(None),
        Err(store::Error::NotFound { .. }) => Err(resource_type.not_found(&head.key.name)),
        Err(error) => Err(store_error(error)),
    }
}

/// The decision about a deletion.
struct DeletionDecision {
    /// Whether the object is removed at once.
    is_end: bool,
    /// Whether the object was changed.
    is_changed: bool,
}

/// Sets the fields of a terminating object, and decides whether it is removed.
fn decide(resource_type: &ResourceType, object: &mut Object, options: &DeleteOptions) -> DeletionDecision {
    // A terminating namespace stays until its contents are deleted.
    let is_emptied = || resource_type.is_namespace() && resource_type.strategy.holds_deletion(object);
    if is_being_deleted(object) && is_emptied() {
        return DeletionDecision { is_end: false, is_changed: false };
    }
    let mut is_changed = false;
    if let Some(propagation) = propagation(resource_type, object, options) {
        for (finalizer, wanted) in [(ORPHAN, Propagation::Orphan), (FOREGROUND, Propagation::Foreground)] {
            is_changed |= set_finalizer(object, finalizer, propagation == wanted);
        }
    }
    if resource_type.is_crd() && !is_being_deleted(object) {
        conditions::begin_termination(object, &time(now()));
        return DeletionDecision { is_end: false, is_changed: true };
    }
    if let Some(grace) = resource_type.strategy.grace(object, options.grace) {
        is_changed = true;
        if is_being_deleted(object) {
            shorten(object, options.grace);
        } else {
            begin_deletion(resource_type, object, now(), grace);
        }
    }
    let is_end = can_be_removed(resource_type, object);
    if !is_end && !is_being_deleted(object) {
        is_changed = true;
        begin_deletion(resource_type, object, now(), 0);
    }
    DeletionDecision { is_end, is_changed }
}

/// The propagation policy; `None` leaves it to the object's finalizers.
fn propagation(
    resource_type: &ResourceType,
    object: &Object,
    options: &DeleteOptions,
) -> Option<Propagation> {
    let is_explicit = || finalizers(object).iter().any(|name| [ORPHAN, FOREGROUND].contains(name));
    match resource_type.strategy.dependents() {
        Dependents::None => None,
        Dependents::Orphaned(_) if options.propagation.is_none() && !is_explicit() => {
            Some(Propagation::Orphan)
        }
        _ => options.propagation,
    }
}

/// Shortens the grace period; it is never extended.
fn shorten(object: &mut Object, asked: Option<i64>) {
    let Some(asked) = asked.map(|seconds| if seconds < 0 { 1 } else { seconds }) else { return };
    let given = grace(object);
    let end: Option<Timestamp> = metadata::text(object, "deletionTimestamp").parse().ok();
    if let Some(end) = end.filter(|_| asked < given) {
        let begin = end.checked_sub(SignedDuration::from_secs(given)).unwrap_or(end);
        set_end(object, begin, asked);
    }
}

/// Checks uid and resourceVersion of the preconditions.
pub fn check_preconditions(
    resource_type: &ResourceType,
    head: &Stored,
    options: &DeleteOptions,
) -> Result<(), Error> {
    // Kubernetes checks these two before the store does.
    if resource_type.is_namespace() || resource_type.is_crd() {
        return check_first(resource_type, head, options);
    }
    let conflict = |message: String| Error::Conflict {
        group: resource_type.group.clone(),
        resource: resource_type.kind.clone(),
        name: head.key.name.clone(),
        message,
    };
    if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != head.uid) {
        return Err(conflict(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            head.uid
        )));
    }
    if let Some(revision) = options.revision.as_ref().filter(|text| **text != head.revision.to_string()) {
        return Err(conflict(format!(
            "the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record ({}). The object might have been modified",
            head.revision
        )));
    }
    Ok(())
}

/// The check with the messages of Namespaces and CRDs.
fn check_first(resource_type: &ResourceType, head: &Stored, options: &DeleteOptions) -> Result<(), Error> {
    let conflict = |what: &str, given: &str, actual: &str| {
        let message =
            format!("Precondition failed: {what} in precondition: {given}, {what} in object meta: {actual}");
        Err(resource_type.conflict(&head.key.name, message))
    };
    if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != head.uid) {
        return conflict("UID", &uid.0, &head.uid.0);
    }
    let revision = head.revision.to_string();
    match options.revision.as_ref().filter(|text| **text != revision) {
        Some(given) => conflict("ResourceVersion", given, &revision),
        None => Ok(()),
    }
}
