//! update: replaces an object.

use http::Response;
use model::Revision;
use model::error::{Error, FieldError};

use super::Call;
use super::body;
use super::create::{create_object, forget_version, may_create};
use super::metadata::{self, set_text};
use super::options::WriteOptions;
use super::store_error;
use super::write::{self, Mutated, Mutation};
use crate::body::Body;
use crate::registry::Object;

/// The new object.
struct Replace {
    object: Object,
}

impl Mutation for Replace {
    fn apply(&self, call: &Call, old: &Object, _revision: Revision) -> Result<Mutated, Error> {
        check_uid(call, &self.object, old)?;
        check_version(call, &self.object)?;
        Ok(Mutated { object: self.object.clone(), tracked: None })
    }
}

/// Checks the uid precondition.
pub fn check_uid(call: &Call, new: &Object, old: &Object) -> Result<(), Error> {
    let (given, actual) = (metadata::text(new, "uid"), metadata::text(old, "uid"));
    if given.is_empty() || given == actual {
        return Ok(());
    }
    let message = format!("Precondition failed: UID in precondition: {given}, UID in object meta: {actual}");
    Err(call.resource_type.conflict(&call.path.name, message))
}

/// Some kinds need a resourceVersion in updates.
fn check_version(call: &Call, new: &Object) -> Result<(), Error> {
    let has_version = !["", "0"].contains(&metadata::text(new, "resourceVersion"));
    if has_version || call.resource_type.strategy.unconditional_update() {
        return Ok(());
    }
    let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
    let (group, kind) = (call.resource_type.group.clone(), call.resource_type.plural.clone());
    Err(Error::Invalid { group, kind, name: call.path.name.clone(), errors: vec![error] })
}

pub async fn update(call: Call) -> Result<Response<Body>, Error> {
    let options = WriteOptions::from_query(&call.query, "UpdateOptions")?;
    let mut object = body::decode(&call, options.field_validation)?;
    check_place(&call, &mut object)?;
    let strategy = &call.resource_type.strategy;
    if strategy.creates_on_update() && call.path.subresource.is_empty() {
        let absent = call.api.store.get(&call.key(), None).await.map_err(store_error)?.is_none();
        if absent {
            forget_version(&call, &mut object)?;
            may_create(&call)?;
            return create_object(&call, object, options).await;
        }
    }
    write::update(&call, &Replace { object }, options).await
}

/// The name must match the path, and the namespace, too, unless it is omitted.
pub fn check_place(call: &Call, object: &mut Object) -> Result<(), Error> {
    let expected = &call.path.name;
    let name = metadata::text(object, "name");
    if name.is_empty() {
        let message = format!(
            "the name of the object ({expected} based on URL) was undeterminable: name must be provided"
        );
        return Err(Error::BadRequest { message });
    }
    if name != expected {
        let message =
            format!("the name of the object ({name}) does not match the name on the URL ({expected})");
        return Err(Error::BadRequest { message });
    }
    let namespace = metadata::text(object, "namespace");
    if call.resource_type.namespaced && !namespace.is_empty() && namespace != call.namespace() {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Error::BadRequest { message: message.to_owned() });
    }
    if call.resource_type.namespaced {
        set_text(object, "namespace", call.namespace());
    } else {
        // Kubernetes ignores a namespace on cluster-scoped objects.
        metadata::remove(object, "namespace");
    }
    Ok(())
}
