//! delete: an object gone, or on its way out while finalizers hold it.

use bytes::Bytes;
use http::{Response, StatusCode};
use model::error::Error;
use model::{Encoded, ObjectKey};
use serde_json::json;
use store::{Precondition, Stored, Write};

use super::metadata::{self, FOREGROUND, ORPHAN, attributes, is_being_deleted, may_go, set_finalizer, time};
use super::options::{DeleteOptions, Propagation};
use super::write::{now, parse_stored};
use super::{Call, claims, store_error};
use crate::body::Body;
use crate::registry::{Object, ResourceType};
use crate::render;

/// How often a deletion is tried again when others change the object meanwhile.
const ATTEMPTS: usize = 16;

/// What a deletion did.
pub enum Deleted {
    /// The object is gone; this was its last state, and what watchers see of its end.
    Gone(Bytes, Bytes),
    /// The object is on its way out, in this state.
    Waiting(Bytes),
}

pub async fn delete(call: Call) -> Result<Response<Body>, Error> {
    let options = DeleteOptions::read(&call)?;
    let key = call.key();
    match delete_object(&call, &key, &options).await? {
        Deleted::Waiting(value) => render::object(&call, StatusCode::OK, &value, &[]),
        Deleted::Gone(_, end) if call.resource_type.shows_deleted => {
            render::object(&call, StatusCode::OK, &end, &[])
        }
        Deleted::Gone(value, _) => {
            let last: Object = serde_json::from_slice(&value).unwrap_or_default();
            let mut details = json!({"name": key.name, "kind": call.resource_type.plural});
            if !call.resource_type.group.is_empty() {
                details["group"] = call.resource_type.group.clone().into();
            }
            details["uid"] = metadata::text(&last, "uid").into();
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
            });
            render::status(&call, &status)
        }
    }
}

/// Deletes one object, or begins its deletion.
pub async fn delete_object(call: &Call, key: &ObjectKey, options: &DeleteOptions) -> Result<Deleted, Error> {
    let resource_type = &call.resource_type;
    if let Some(reason) = resource_type.strategy.forbids_deletion(&key.name) {
        return Err(Error::Forbidden {
            group: resource_type.group.clone(),
            resource: resource_type.plural.clone(),
            name: key.name.clone(),
            message: reason.to_owned(),
        });
    }
    for _ in 0..ATTEMPTS {
        let Some(head) = call.api.store.get(key, None).await.map_err(store_error)? else {
            return Err(resource_type.not_found(&key.name));
        };
        check_preconditions(resource_type, &head, options)?;
        let object = parse_stored(&head)?;
        let (write, deleted) = match decide(resource_type, &head, object, options) {
            Step::Nothing(deleted) => return Ok(deleted),
            Step::Write(write, deleted) => (write, deleted),
        };
        if options.dry_run {
            return Ok(deleted);
        }
        let mut writes = vec![*write];
        if matches!(deleted, Deleted::Gone(..)) && resource_type.strategy.allocates() {
            let last = parse_stored(&head)?;
            writes.extend(claims::steps(call, None, Some(&last)).await.map_err(store_error)?);
        }
        match call.api.store.write(writes).await {
            Ok(written) => {
                let value = written.into_iter().next().map(|written| written.value);
                return Ok(match deleted {
                    Deleted::Gone(last, _) => Deleted::Gone(last.clone(), value.unwrap_or(last)),
                    Deleted::Waiting(before) => Deleted::Waiting(value.unwrap_or(before)),
                });
            }
            Err(store::Error::Conflict { .. }) => {}
            Err(error) if claims::was_contested(&error, key) => {}
            Err(store::Error::NotFound { .. }) => return Err(resource_type.not_found(&key.name)),
            Err(error) => return Err(store_error(error)),
        }
    }
    Err(super::write::modified(call))
}

/// What to do about an object that shall be deleted.
enum Step {
    /// It is on its way out already.
    Nothing(Deleted),
    /// Write this; then this is the outcome.
    Write(Box<Write>, Deleted),
}

fn decide(resource_type: &ResourceType, head: &Stored, mut object: Object, options: &DeleteOptions) -> Step {
    let before = finalizer_state(&object);
    if let Some(propagation) = options.propagation {
        set_finalizer(&mut object, ORPHAN, propagation == Propagation::Orphan);
        set_finalizer(&mut object, FOREGROUND, propagation == Propagation::Foreground);
    }
    let key = head.key.clone();
    let expect = Precondition { revision: Some(head.revision), uid: None };
    if may_go(resource_type, &object) {
        let attributes = attributes(resource_type, &object);
        let body = Encoded::new(&object);
        return Step::Write(
            Box::new(Write::Delete { key, expect, attributes, body }),
            Deleted::Gone(head.value.clone(), head.value.clone()),
        );
    }
    if is_being_deleted(&object) && before == finalizer_state(&object) {
        return Step::Nothing(Deleted::Waiting(head.value.clone()));
    }
    if !is_being_deleted(&object) {
        metadata::set_text(&mut object, "deletionTimestamp", &time(now()));
        metadata::metadata_mut(&mut object).insert("deletionGracePeriodSeconds".to_owned(), 0.into());
        if resource_type.strategy.counts_generations() {
            let next = metadata::generation(&object) + 1;
            metadata::metadata_mut(&mut object).insert("generation".to_owned(), next.into());
        }
        resource_type.strategy.prepare_delete(&mut object);
    }
    let attributes = attributes(resource_type, &object);
    let body = Encoded::new(&object);
    let value = body.at(head.revision);
    Step::Write(Box::new(Write::Update { key, expect, attributes, body }), Deleted::Waiting(value))
}

fn finalizer_state(object: &Object) -> Vec<String> {
    metadata::finalizers(object).into_iter().map(str::to_owned).collect()
}

fn check_preconditions(
    resource_type: &ResourceType,
    head: &Stored,
    options: &DeleteOptions,
) -> Result<(), Error> {
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
