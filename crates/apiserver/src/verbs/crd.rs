//! The CRD requirement of custom objects: a write needs the CRD that shaped the object.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::error::Error;
use model::selector::{Requirement, Target, Test};
use model::{Resource, Selector};
use serde_json::Value;
use store::{Precondition, Write, Written};

use super::Call;
use crate::crds::{Catalog, conditions};
use crate::registry::Object;

/// The attribute of a CRD that a write of its objects requires. Clients cannot select by it.
pub const STATE: &str = "state";

fn resource() -> Resource {
    Resource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// The requirement of the transaction; `None` for built-in types.
pub fn requirement(call: &Call) -> Option<Write> {
    let crd = call.crd.as_ref()?;
    let key = crd.key();
    let unchanged =
        Requirement { target: Target::Field, key: STATE.to_owned(), test: Test::In(vec![crd.state.clone()]) };
    let expect = Precondition { revision: None, uid: Some(crd.uid.clone()) };
    Some(Write::Require { key, expect, selector: Selector { requirements: vec![unchanged] } })
}

/// Refuses new objects of a terminating CRD.
pub fn check_create(call: &Call, name: &str) -> Result<(), Error> {
    if call.crd.as_ref().is_none_or(|crd| !crd.is_terminating) {
        return Ok(());
    }
    Err(Error::Forbidden {
        group: call.resource_type.group.clone(),
        resource: call.resource_type.plural.clone(),
        name: name.to_owned(),
        message: "create not allowed while custom resource definition is terminating".to_owned(),
    })
}

/// Whether a write failed because the CRD changed.
pub fn has_moved(call: &Call, error: &store::Error) -> bool {
    let key = match error {
        store::Error::NotFound { key } | store::Error::Conflict { key, .. } => key,
        _ => return false,
    };
    call.crd.is_some() && key.resource == resource()
}

impl Call {
    /// The catalog to wait for before a client sees an object; `None` unless the objects are CRDs.
    pub fn crd_catalog(&self) -> Option<Arc<Catalog>> {
        self.resource_type.is_crd().then(|| self.api.catalog.clone())
    }

    /// Writes with the CRD requirement. Returns when the informers of this server have the write, or sets `unenforced` on
    /// timeout.
    pub async fn write(&self, mut writes: Vec<Write>) -> Result<Vec<Written>, store::Error> {
        writes.extend(requirement(self));
        let written = self.api.store.write(writes).await?;
        // The object itself comes first, then the writes that belong to it.
        let Some(own) = written.first() else { return Ok(written) };
        let resource = &self.resource_type.resource;
        if self.api.informers.wait_for(resource, own.revision).await.is_err() {
            tracing::warn!(%resource, revision = %own.revision, "informer is behind; a write is not enforced yet");
            self.unenforced.store(true, Ordering::Relaxed);
        }
        Ok(written)
    }
}

/// Sets accepted names and conditions of a CRD.
pub fn set_names(call: &Call, object: &mut Object, now: &str) {
    if !call.resource_type.is_crd() {
        return;
    }
    let registry = call.api.registry();
    let text = |pointer: &[&str]| {
        let value = pointer.iter().skip(1).fold(object.get(pointer[0]), |value, key| value?.get(key));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (group, plural) = (text(&["spec", "group"]), text(&["spec", "names", "plural"]));
    let others = registry.crds(&group).filter(|other| *other.plural != *plural);
    conditions::set_names(object, others.map(|other| &other.accepted_names), now);
}
