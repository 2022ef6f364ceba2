//! create: a new object.

use std::borrow::Cow;

use http::{Response, StatusCode};
use kinds::apply::Tracked;
use kinds::validation::validate_object_meta;
use model::error::{Error, FieldError};
use model::{ObjectKey, Uid, names};
use store::Write;

use super::body;
use super::managed_fields::FieldManager;
use super::metadata::{self, attributes, is_being_deleted, set_text, time};
use super::options::WriteOptions;
use super::write::{Mutated, bad_version, now};
use super::{Call, admin_access, allocator, crd, escalation, namespace};
use crate::admission::AdmissionAttributes;
use crate::auth::AuthorizerAttributes;
use crate::body::Body;
use crate::registry::Object;
use crate::request::verb::Verb;
use crate::{render, reviews};

/// Attempts to find a free generated name.
const NAME_ATTEMPTS: usize = 8;
/// Attempts to allocate values under contention.
const ALLOCATION_ATTEMPTS: usize = 16;

pub async fn create(call: Call) -> Result<Response<Body>, Error> {
    let options = WriteOptions::from_query(&call.query, "CreateOptions")?;
    let mut object = body::decode(&call, options.field_validation)?;
    match &call.resource_type.review {
        Some(review) => {
            check_place(&call, &object)?;
            if call.resource_type.namespaced {
                set_text(&mut object, "namespace", call.namespace());
            }
            let name = metadata::text(&object, "name").to_owned();
            let request = AdmissionAttributes::create(&call, &name, options.dry_run);
            request.admit_whole(&mut object).await?;
            reviews::create(&call, &**review, object).await
        }
        None => create_object(&call, object, options).await,
    }
}

/// Creates an object by server-side apply.
pub async fn create_applied(
    call: &Call,
    applied: Mutated,
    options: WriteOptions,
) -> Result<Response<Body>, Error> {
    create_tracked(call, applied.object, applied.tracked.as_ref(), options).await
}

/// Refuses a PUT or an apply that would create an object if the caller lacks the verb `create`.
pub fn may_create(call: &Call) -> Result<(), Error> {
    let attributes = AuthorizerAttributes::Resource { verb: Verb::Create.as_str(), path: &call.path };
    call.api.authorizer.require(&call.caller, attributes)
}

/// Removes the resourceVersion from an update or apply of a missing object, which creates it.
pub fn forget_version(call: &Call, object: &mut Object) -> Result<(), Error> {
    let version = metadata::text(object, "resourceVersion");
    if !version.is_empty() && version.parse::<u64>().is_err() {
        return Err(bad_version(call, &call.path.name, version));
    }
    metadata::remove(object, "resourceVersion");
    Ok(())
}

/// Creates a decoded object; also for an update of a missing object, if the type allows it.
pub async fn create_object(
    call: &Call,
    object: Object,
    options: WriteOptions,
) -> Result<Response<Body>, Error> {
    create_tracked(call, object, None, options).await
}

async fn create_tracked(
    call: &Call,
    mut object: Object,
    tracked: Option<&Tracked>,
    options: WriteOptions,
) -> Result<Response<Body>, Error> {
    check_place(call, &object)?;
    crd::check_create(call, metadata::text(&object, "name"))?;
    let generated =
        metadata::text(&object, "name").is_empty() && !metadata::text(&object, "generateName").is_empty();
    complete(call, &mut object);
    call.dedup_sent_owners(&mut object);
    let mut tracked = match tracked {
        Some(tracked) => Cow::Borrowed(tracked),
        None => Cow::Owned(FieldManager::new(call, time(now())).track(None, &mut object)),
    };
    let name = metadata::text(&object, "name").to_owned();
    let managers = tracked.json.clone();
    let request = AdmissionAttributes::create(call, &name, options.dry_run).managed_by(managers.as_deref());
    if let Err(refused) = request.admit(Some(&mut object)).await {
        namespace::check(call, namespace::name_in_messages(&object)).await?;
        return Err(refused);
    }
    let sent = SentMetadata::of(&object);
    // Generated and allocated values are new in each attempt. Most objects have none and need no copy.
    let is_copied = generated || call.resource_type.strategy.allocates();
    if let Some(Tracked { json, errors, .. }) = request.changed_managers() {
        let tracked = tracked.to_mut();
        (tracked.json, tracked.errors) = (json, errors);
    }
    call.dedup_admitted_owners(&mut object);
    let mut names = if generated { NAME_ATTEMPTS } else { 1 };
    let mut contested = 0;
    loop {
        let mut copy = is_copied.then(|| object.clone());
        let candidate = copy.as_mut().unwrap_or(&mut object);
        match attempt(&request, &sent, candidate, &tracked, contested > 0).await? {
            CreateOutcome::Made(value) => return render::object(call, StatusCode::CREATED, &value),
            CreateOutcome::AllocationTaken if contested < ALLOCATION_ATTEMPTS => contested += 1,
            CreateOutcome::AllocationTaken => {
                let message =
                    "cannot allocate a value for the object: every attempt conflicted with another write"
                        .to_owned();
                return Err(Error::Internal { message });
            }
            CreateOutcome::NameTaken(name) => {
                names -= 1;
                if names == 0 {
                    return Err(name_conflict(call, name, generated).await);
                }
            }
        }
    }
}

/// The result of one attempt.
enum CreateOutcome {
    /// The object is created; its bytes in the version of the request.
    Made(bytes::Bytes),
    /// The name exists.
    NameTaken(String),
    /// Another object has an allocated value.
    AllocationTaken,
}

/// Metadata of the sent object that is needed after the server's fields are set.
struct SentMetadata {
    name: String,
    has_version: bool,
}

impl SentMetadata {
    fn of(object: &Object) -> Self {
        // A value that is no number is ignored.
        let version = metadata::text(object, "resourceVersion").parse::<u64>();
        let has_version = version.is_ok_and(|version| version != 0);
        Self { name: namespace::name_in_messages(object).to_owned(), has_version }
    }
}

async fn attempt(
    request: &AdmissionAttributes<'_>,
    sent: &SentMetadata,
    candidate: &mut Object,
    tracked: &Tracked,
    contested: bool,
) -> Result<CreateOutcome, Error> {
    let call = request.call;
    fill(call, candidate);
    if let Err(fault) = check(request, sent, candidate, tracked, contested).await {
        namespace::check(call, &sent.name).await?;
        return Err(fault);
    }
    let key = call.key_of(metadata::text(candidate, "name"));
    let committed = commit(request, &key, candidate, tracked).await;
    request.release();
    match committed {
        Ok(value) => Ok(CreateOutcome::Made(value)),
        Err(WriteFailure::Api(error)) => Err(error),
        Err(WriteFailure::Store(error)) if crd::has_moved(call, &error) => Err(Error::DefinitionChanged),
        Err(WriteFailure::Store(error)) if allocator::was_contested(&error, &key) => {
            Ok(CreateOutcome::AllocationTaken)
        }
        Err(WriteFailure::Store(store::Error::AlreadyExists { .. })) => {
            Ok(CreateOutcome::NameTaken(key.name))
        }
        Err(WriteFailure::Store(error)) => Err(namespace::refusal(call, &sent.name, error)),
    }
}

/// Prepares and validates an object for the commit.
async fn check(
    request: &AdmissionAttributes<'_>,
    sent: &SentMetadata,
    candidate: &mut Object,
    tracked: &Tracked,
    contested: bool,
) -> Result<(), Error> {
    let (call, strategy) = (request.call, &request.call.resource_type.strategy);
    allocator::allocate(call, candidate, None, contested).await?;
    strategy.prepare_create(candidate);
    let made = metadata::text(candidate, "creationTimestamp").to_owned();
    strategy.stamp(candidate, None, &call.writer(&made));
    escalation::check(call, candidate, None)?;
    let access = admin_access::bad_access(request, candidate, None).await?;
    validate(request, sent, candidate, tracked, access)?;
    if !request.dry_run {
        crd::set_names(call, candidate, &made);
    }
    call.warnings.extend(strategy.warnings(candidate, None));
    strategy.canonicalize(candidate);
    request.validate(Some(candidate)).await
}

async fn name_conflict(call: &Call, name: String, generated: bool) -> Error {
    let (group, resource) = (call.resource_type.group.clone(), call.resource_type.plural.clone());
    if generated {
        return Error::GenerateNameConflict { group, resource, name };
    }
    let taken = call.api.store.get(&call.key_of(&name), None).await.ok().flatten();
    let is_ending = match taken {
        Some(taken) => call.resource_type.read(&taken).await.is_ok_and(|taken| is_being_deleted(&taken)),
        None => false,
    };
    Error::AlreadyExists { group, resource, name, is_ending }
}

/// The namespace of the object must match the path.
pub fn check_place(call: &Call, object: &Object) -> Result<(), Error> {
    let namespace = metadata::text(object, "namespace");
    if !namespace.is_empty() && call.resource_type.namespaced && namespace != call.namespace() {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Error::BadRequest { message: message.to_owned() });
    }
    Ok(())
}

/// Sets defaults and removes server fields before admission. A generated name is not known yet.
fn complete(call: &Call, object: &mut Object) {
    call.resource_type.strategy.default(object);
    for key in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid", "creationTimestamp"] {
        metadata::remove(object, key);
    }
    if call.resource_type.namespaced {
        set_text(object, "namespace", call.namespace());
    } else {
        // Kubernetes ignores a namespace on cluster-scoped objects.
        metadata::remove(object, "namespace");
    }
}

/// Sets name, uid, creationTimestamp and generation.
fn fill(call: &Call, object: &mut Object) {
    let base = metadata::text(object, "generateName").to_owned();
    if metadata::text(object, "name").is_empty() && !base.is_empty() {
        let random = || uuid::Uuid::new_v4().as_fields().0;
        set_text(object, "name", &names::generated(&base, random));
    }
    metadata::remove(object, "resourceVersion");
    set_text(object, "uid", &uuid::Uuid::new_v4().to_string());
    set_text(object, "creationTimestamp", &time(now()));
    if call.resource_type.strategy.counts_generations() {
        metadata::metadata_mut(object).insert("generation".to_owned(), 1.into());
    }
}

/// Validates the prepared object, then the sent resourceVersion.
fn validate(
    request: &AdmissionAttributes<'_>,
    sent: &SentMetadata,
    object: &Object,
    tracked: &Tracked,
    access: Option<FieldError>,
) -> Result<(), Error> {
    let resource_type = &request.call.resource_type;
    let name = metadata::text(object, "name");
    let mut errors: Vec<FieldError> = access.into_iter().collect();
    errors.extend(validate_object_meta(object, resource_type.namespaced, resource_type.strategy.name_rule()));
    errors.extend(tracked.errors.iter().cloned());
    errors.extend(resource_type.strategy.validate_create(object));
    if !errors.is_empty() {
        return Err(resource_type.invalid(name, errors));
    }
    // A dry run ignores the resourceVersion.
    if sent.has_version && !request.dry_run {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Error::BadRequest { message: message.to_owned() });
    }
    Ok(())
}

async fn commit(
    request: &AdmissionAttributes<'_>,
    key: &ObjectKey,
    object: &Object,
    tracked: &Tracked,
) -> Result<bytes::Bytes, WriteFailure> {
    let call = request.call;
    let object = &*call.resource_type.completed(object);
    let mut writes: Vec<Write> = namespace::requirement(call).into_iter().collect();
    if request.dry_run {
        call.api.store.write(writes).await?;
        if call.api.store.get(key, None).await?.is_some() {
            return Err(store::Error::AlreadyExists { key: key.clone() }.into());
        }
        return Ok(render::without_version(object, tracked));
    }
    let uid = Uid(metadata::text(object, "uid").to_owned());
    let attributes = attributes(&call.resource_type, object);
    let body = call.resource_type.sealed_with(object, tracked.json.as_deref()).await?;
    writes.push(Write::Create { key: key.clone(), uid, attributes, body });
    writes.extend(allocator::writes(call, Some(object), None).await?);
    writes.extend(request.take_writes());
    let written = call.write(writes).await?;
    let lost = || Error::Internal { message: "the store returned no result of the write".to_owned() };
    let written = written.into_iter().next().ok_or_else(lost)?;
    Ok(call.resource_type.of_version(written.value, written.revision).await?)
}

/// The reason why an object was not written.
pub enum WriteFailure {
    /// The store refused it.
    Store(store::Error),
    /// It cannot be encoded.
    Api(Error),
}

impl From<store::Error> for WriteFailure {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<Error> for WriteFailure {
    fn from(error: Error) -> Self {
        Self::Api(error)
    }
}
