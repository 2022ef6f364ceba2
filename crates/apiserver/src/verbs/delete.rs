//! delete: an object gone, or on its way out while finalizers hold it.

use bytes::Bytes;
use http::{Response, StatusCode};
use model::ObjectKey;
use model::error::Error;
use serde_json::json;
use store::{Precondition, Stored, Write};

use super::definition::has_moved;
use super::metadata::{self, FOREGROUND, ORPHAN, attributes, is_being_deleted, may_go, set_finalizer, time};
use super::options::{DeleteOptions, Propagation};
use super::write::now;
use super::{Call, claims, store_error};
use crate::body::Body;
use crate::definitions::conditions;
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
        let mut object = resource_type.read(&head).await?;
        let step = decide(resource_type, &mut object, options);
        let last = resource_type.of_version(head.value.clone(), head.revision).await?;
        let expect = Precondition { revision: Some(head.revision), uid: None };
        let attributes = attributes(resource_type, &object);
        let body = resource_type.sealed(&object).await?;
        let becoming = body.at(head.revision);
        let write = match step {
            Step::Nothing => return Ok(Deleted::Waiting(last)),
            Step::End => Write::Delete { key: key.clone(), expect, attributes, body },
            Step::Begin => Write::Update { key: key.clone(), expect, attributes, body },
        };
        let ends = step == Step::End;
        if options.dry_run {
            let becoming = resource_type.of_version(becoming, head.revision).await?;
            return Ok(if ends { Deleted::Gone(last.clone(), last) } else { Deleted::Waiting(becoming) });
        }
        let mut writes = vec![write];
        if ends && resource_type.strategy.allocates() {
            writes.extend(claims::steps(call, None, Some(&object)).await.map_err(store_error)?);
        }
        match call.write(writes).await {
            Ok(written) => {
                let value = match written.into_iter().next() {
                    Some(written) => resource_type.of_version(written.value, written.revision).await?,
                    None => becoming,
                };
                return Ok(if ends { Deleted::Gone(last, value) } else { Deleted::Waiting(value) });
            }
            Err(error) if has_moved(call, &error) => return Err(Error::DefinitionChanged),
            Err(store::Error::Conflict { .. }) => {}
            Err(error) if claims::was_contested(&error, key) => {}
            Err(store::Error::NotFound { .. }) => return Err(resource_type.not_found(&key.name)),
            Err(error) => return Err(store_error(error)),
        }
    }
    Err(super::write::modified(call))
}

/// What to do about an object that shall be deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It is on its way out already.
    Nothing,
    /// It goes.
    End,
    /// Its deletion begins, or goes on in another way.
    Begin,
}

fn decide(resource_type: &ResourceType, object: &mut Object, options: &DeleteOptions) -> Step {
    let before = finalizer_state(object);
    if let Some(propagation) = options.propagation {
        set_finalizer(object, ORPHAN, propagation == Propagation::Orphan);
        set_finalizer(object, FOREGROUND, propagation == Propagation::Foreground);
    }
    if resource_type.is_definition() && !is_being_deleted(object) {
        conditions::begin_end(object, &time(now()));
        return Step::Begin;
    }
    if may_go(resource_type, object) {
        return Step::End;
    }
    if is_being_deleted(object) && before == finalizer_state(object) {
        return Step::Nothing;
    }
    if !is_being_deleted(object) {
        metadata::set_text(object, "deletionTimestamp", &time(now()));
        metadata::metadata_mut(object).insert("deletionGracePeriodSeconds".to_owned(), 0.into());
        if resource_type.strategy.counts_generations() {
            let next = metadata::generation(object) + 1;
            metadata::metadata_mut(object).insert("generation".to_owned(), next.into());
        }
        resource_type.strategy.prepare_delete(object);
    }
    Step::Begin
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
