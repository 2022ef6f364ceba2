//! The shared steps of create, update, patch and delete: from a changed object to its commit.

use http::{Response, StatusCode};
use jiff::Timestamp;
use kinds::apply::Tracked;
use kinds::validation::{validate_object_meta, validate_object_meta_update};
use model::Revision;
use model::error::{Error, FieldError};
use store::{Precondition, Stored, Write};

use super::crd::{has_moved, set_names};
use super::create::WriteFailure;
use super::managed_fields::FieldManager;
use super::metadata::{self, attributes, can_be_removed, generation, is_being_deleted, keep};
use super::options::WriteOptions;
use super::subresource_admission::{self, SubresourceObject};
use super::{Call, admin_access, allocator, escalation, store_error};
use crate::admission::AdmissionAttributes;
use crate::body::Body;
use crate::crds::selectable_fields;
use crate::registry::Object;
use crate::render;

/// Attempts of an update without a resourceVersion under contention.
pub const ATTEMPTS: usize = 16;

/// A requested mutation of an object: update, patch or apply.
pub trait Mutation: Sync {
    /// Computes the new object.
    fn apply(&self, call: &Call, old: &Object, old_revision: Revision) -> Result<Mutated, Error>;

    /// The subresource object for admission, if one is written.
    fn subresource(&self) -> Option<&dyn SubresourceObject> {
        None
    }
}

/// The result of a [`Mutation`].
#[derive(Clone)]
pub struct Mutated {
    pub object: Object,
    /// The managedFields, if the mutation computed them.
    pub tracked: Option<Tracked>,
}

/// Applies a mutation and responds with the object.
pub async fn update(
    call: &Call,
    mutation: &dyn Mutation,
    options: WriteOptions,
) -> Result<Response<Body>, Error> {
    let value = update_object(call, mutation, options).await?;
    render::object(call, StatusCode::OK, &value)
}

/// Applies a mutation to the object in the path; retries conflicts unless the mutation has a resourceVersion.
pub async fn update_object(
    call: &Call,
    mutation: &dyn Mutation,
    options: WriteOptions,
) -> Result<bytes::Bytes, Error> {
    let key = call.key();
    let mut contested = false;
    for _ in 0..ATTEMPTS {
        let Some(head) = call.api.store.get(&key, None).await.map_err(store_error)? else {
            return Err(call.resource_type.not_found(&key.name));
        };
        let old = call.resource_type.read(&head).await?;
        let Mutated { mut object, tracked } = mutation.apply(call, &old, head.revision)?;
        call.resource_type.strategy.default(&mut object);
        call.dedup_sent_owners(&mut object);
        let mut tracked = tracked
            .unwrap_or_else(|| FieldManager::new(call, metadata::time(now())).track(Some(&old), &mut object));
        let subresource = mutation.subresource();
        let old_subresource = subresource_admission::old_subresource(call, subresource, &old)?;
        let managers = tracked.json.clone();
        let request =
            AdmissionAttributes::update(call, old_subresource.as_ref().unwrap_or(&old), options.dry_run)
                .managed_by(managers.as_deref().filter(|_| subresource.is_none()));
        let request = match subresource {
            Some(subresource) => request.shown_as(subresource.resource_type()),
            None => request,
        };
        subresource_admission::admit(&request, subresource, &mut object).await?;
        if let Some(Tracked { json, errors, .. }) = request.changed_managers() {
            (tracked.json, tracked.errors) = (json, errors);
        }
        call.dedup_admitted_owners(&mut object);
        let pinned = check_preconditions(call, &object, &head)?;
        put_back(&mut object, &old);
        allocator::allocate(call, &mut object, Some(&old), contested).await?;
        prepare(call, &mut object, &old);
        escalation::check(call, &object, Some(&old))?;
        let access = admin_access::bad_access(&request, &object, Some(&old)).await?;
        validate_update(call, &object, &old, &tracked, access)?;
        if !options.dry_run {
            set_names(call, &mut object, &metadata::time(now()));
        }
        call.warnings.extend(call.resource_type.strategy.warnings(&object, Some(&old)));
        call.resource_type.strategy.canonicalize(&mut object);
        subresource_admission::validate(&request, subresource, &object).await?;
        match commit(&request, &head, &object, &old, &tracked).await {
            Ok(value) => return Ok(value),
            Err(WriteFailure::Api(error)) => return Err(error),
            Err(WriteFailure::Store(error)) if has_moved(call, &error) => {
                return Err(Error::DefinitionChanged);
            }
            Err(WriteFailure::Store(error)) if allocator::was_contested(&error, &key) => contested = true,
            Err(WriteFailure::Store(store::Error::Conflict { .. })) if pinned => return Err(modified(call)),
            Err(WriteFailure::Store(store::Error::Conflict { .. })) => {}
            Err(WriteFailure::Store(store::Error::NotFound { .. })) => {
                return Err(call.resource_type.not_found(&key.name));
            }
            Err(WriteFailure::Store(error)) => return Err(store_error(error)),
        }
    }
    Err(modified(call))
}

/// Writes the new object, or deletes it if only finalizers were holding it. An unchanged object is not written.
async fn commit(
    request: &AdmissionAttributes<'_>,
    head: &Stored,
    object: &Object,
    old: &Object,
    tracked: &Tracked,
) -> Result<bytes::Bytes, WriteFailure> {
    let (call, dry_run) = (request.call, request.dry_run);
    let resource_type = &call.resource_type;
    let object = &*resource_type.completed(object);
    let body = resource_type.sealed_with(object, tracked.json.as_deref()).await?;
    let unchanged = body.at(head.revision);
    let ends = is_being_deleted(object) && can_be_removed(resource_type, object);
    if dry_run || (!ends && unchanged == head.value) {
        return Ok(resource_type.of_version(unchanged, head.revision).await?);
    }
    if let Some(before) = tracked.before.as_deref().filter(|_| !ends) {
        let same = resource_type.sealed_with(object, Some(before)).await?.at(head.revision);
        // New times in managedFields alone are no change.
        if same == head.value {
            return Ok(resource_type.of_version(same, head.revision).await?);
        }
    }
    let key = head.key.clone();
    let expect = Precondition { revision: Some(head.revision), uid: None };
    let attributes = attributes(resource_type, object);
    let write = if ends {
        // The DELETED event has the last stored state, including the removed finalizer.
        Write::Delete { key, expect, attributes, body: resource_type.sealed(old).await? }
    } else {
        Write::Update { key, expect, attributes, body }
    };
    let mut writes = vec![write];
    writes.extend(allocator::writes(call, (!ends).then_some(object), Some(old)).await?);
    writes.extend(selectable_fields::mark(call, object, old).await?);
    writes.extend(request.take_writes());
    let written = call.write(writes).await?;
    // After a deletion the client gets the last stored state.
    let (value, revision) = match written.into_iter().next() {
        Some(written) if !ends => (written.value, written.revision),
        _ => (unchanged, head.revision),
    };
    Ok(resource_type.of_version(value, revision).await?)
}

/// An invalid resourceVersion.
pub fn bad_version(call: &Call, name: &str, version: &str) -> Error {
    let error = FieldError::invalid("metadata.resourceVersion", version, "must be an unsigned integer");
    call.resource_type.invalid(name, vec![error])
}

/// Compares the resourceVersion with the stored one. True if the client sent one.
fn check_preconditions(call: &Call, object: &Object, head: &Stored) -> Result<bool, Error> {
    let version = metadata::text(object, "resourceVersion");
    if version.is_empty() || version == "0" {
        return Ok(false);
    }
    let bad = |_| bad_version(call, &head.key.name, version);
    let revision: Revision = version.parse().map_err(bad)?;
    if revision != head.revision {
        return Err(modified(call));
    }
    Ok(true)
}

/// Kubernetes' message for an update conflict.
pub fn modified(call: &Call) -> Error {
    const MESSAGE: &str =
        "the object has been modified; please apply your changes to the latest version and try again";
    call.resource_type.conflict(&call.path.name, MESSAGE)
}

/// Restores immutable metadata, and fills in omitted metadata.
fn put_back(new: &mut Object, old: &Object) {
    for key in ["creationTimestamp", "deletionTimestamp", "generation"] {
        // An update cannot begin a deletion; validation refuses it.
        if key != "deletionTimestamp" || is_being_deleted(old) {
            keep(new, old, key);
        }
    }
    for key in ["uid", "deletionGracePeriodSeconds"] {
        if metadata::metadata(new).is_none_or(|metadata| !metadata.contains_key(key)) {
            keep(new, old, key);
        }
    }
    for key in ["selfLink", "managedFields", "resourceVersion"] {
        metadata::remove(new, key);
    }
}

/// Runs the strategy's hooks and increments the generation.
fn prepare(call: &Call, new: &mut Object, old: &Object) {
    let resource_type = &call.resource_type;
    resource_type.strategy.prepare_update(new, old, &call.path.subresource);
    let time = metadata::time(now());
    resource_type.strategy.stamp(new, Some(old), &call.writer(&time));
    let differs = || {
        let counts = |key: &&String| match key.as_str() {
            "metadata" => false,
            "status" => resource_type.strategy.counts_status(),
            _ => true,
        };
        let has_changed = |key: &String| new.get(key) != old.get(key);
        new.keys().chain(old.keys()).filter(counts).any(has_changed)
    };
    let annotations =
        |object| metadata::metadata(object).and_then(|metadata| metadata.get("annotations")).cloned();
    let is_annotated = || {
        let counts = call.path.subresource.is_empty() && resource_type.strategy.counts_annotations();
        counts && annotations(new) != annotations(old)
    };
    if resource_type.strategy.counts_generations() && (differs() || is_annotated()) {
        let next = generation(old) + 1;
        metadata::metadata_mut(new).insert("generation".to_owned(), next.into());
    }
}

fn validate_update(
    call: &Call,
    new: &Object,
    old: &Object,
    tracked: &Tracked,
    access: Option<FieldError>,
) -> Result<(), Error> {
    let resource_type = &call.resource_type;
    let mut errors: Vec<FieldError> = access.into_iter().collect();
    errors.extend(validate_object_meta(new, resource_type.namespaced, resource_type.strategy.name_rule()));
    errors.extend(tracked.errors.iter().cloned());
    errors.extend(validate_object_meta_update(new, old));
    let verdict = resource_type.strategy.validate_update(new, old, &call.path.subresource);
    call.warnings.extend(verdict.warnings);
    errors.extend(verdict.errors);
    if errors.is_empty() { Ok(()) } else { Err(resource_type.invalid(metadata::text(old, "name"), errors)) }
}

/// The current time.
pub fn now() -> Timestamp {
    Timestamp::now()
}
