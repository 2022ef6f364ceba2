//! Binding: binds a Pod to a Node. Bindings are not stored.

use std::sync::Arc;

use http::Response;
use kinds::{bind, validate_binding};
use model::Encoded;
use model::error::{Error, FieldError};
use store::{Precondition, Write};

use super::body;
use super::metadata::{self, attributes, time};
use super::options::WriteOptions;
use super::write::{ATTEMPTS, now};
use super::{Call, create, store_error};
use crate::admission::AdmissionAttributes;
use crate::body::Body;
use crate::built_in;
use crate::registry::{Object, Served};
use crate::render;

/// Serves a Binding sent to a Pod, or to the collection of Bindings.
pub async fn create_binding(call: Call) -> Result<Response<Body>, Error> {
    let options = WriteOptions::from_query(&call.query, "CreateOptions")?;
    let sent = call.about(Arc::new(Served::without_path(built_in::without_path("", "Binding"))));
    let mut binding = body::decode(&sent, options.field_validation)?;
    create::check_place(&call, &binding)?;
    let name = metadata::text(&binding, "name").to_owned();
    if call.path.name.is_empty() && name.is_empty() {
        return Err(Error::bad_request("Name parameter required."));
    }
    if !call.path.name.is_empty() && name != call.path.name {
        return Err(Error::bad_request("name in URL does not match name in Binding object"));
    }
    let request = AdmissionAttributes::create(&call, &name, options.dry_run).shown_as(&sent.resource_type);
    request.admit_whole(&mut binding).await?;
    let errors: Vec<String> = validate_binding(&binding).iter().map(FieldError::to_string).collect();
    match errors.as_slice() {
        [] => {}
        [message] => return Err(Error::Failed { message: message.clone() }),
        messages => return Err(Error::Failed { message: format!("[{}]", messages.join(", ")) }),
    }
    let registry = call.api.registry();
    let pods = registry.find("", "v1", "pods").ok_or(Error::PathNotFound)?.clone();
    bind_pod(&call.about(pods), &binding, options.dry_run).await?;
    render::done(&sent)
}

/// Writes the Pod of a Binding; retries conflicts.
async fn bind_pod(call: &Call, binding: &Object, dry_run: bool) -> Result<(), Error> {
    let name = metadata::text(binding, "name");
    let key = call.key_of(name);
    for _ in 0..ATTEMPTS {
        let head = call.api.store.get(&key, None).await.map_err(store_error)?;
        let head = head.ok_or_else(|| call.resource_type.not_found(name))?;
        let mut pod = call.resource_type.read(&head).await?;
        check_preconditions(call, binding, &pod, &head.revision.to_string())?;
        bind(&mut pod, binding, &time(now())).map_err(|message| Error::Conflict {
            group: String::new(),
            resource: "pods/binding".to_owned(),
            name: name.to_owned(),
            message,
        })?;
        if dry_run {
            return Ok(());
        }
        let expect = Precondition { revision: Some(head.revision), uid: None };
        let attributes = attributes(&call.resource_type, &pod);
        let write = Write::Update { key: key.clone(), expect, attributes, body: Encoded::new(&pod) };
        match call.api.store.write(vec![write]).await {
            Ok(_) => return Ok(()),
            Err(store::Error::Conflict { .. }) => {}
            Err(store::Error::NotFound { .. }) => return Err(call.resource_type.not_found(name)),
            Err(error) => return Err(store_error(error)),
        }
    }
    Err(super::write::modified(call))
}

/// Checks uid and resourceVersion of the Binding against the Pod.
fn check_preconditions(call: &Call, binding: &Object, pod: &Object, revision: &str) -> Result<(), Error> {
    let found =
        [("uid", "UID", metadata::text(pod, "uid")), ("resourceVersion", "ResourceVersion", revision)];
    for (field, word, actual) in found {
        let given = metadata::text(binding, field);
        if !given.is_empty() && given != actual {
            let message = format!(
                "Precondition failed: {word} in precondition: {given}, {word} in object meta: {actual}"
            );
            return Err(call.resource_type.conflict(metadata::text(binding, "name"), message));
        }
    }
    Ok(())
}
