//! The namespace requirement of new objects: it must exist and not be terminating.

use model::error::Error;
use model::selector::{Requirement, Target, Test};
use model::{ObjectKey, Resource, Selector};
use store::{Precondition, Write};

use super::metadata;
use super::{Call, store_error};
use crate::registry::Object;

/// The requirement of the transaction; `None` for cluster-scoped objects.
pub fn requirement(call: &Call) -> Option<Write> {
    if !call.resource_type.namespaced || !call.api.keeps_namespaces() {
        return None;
    }
    let key = ObjectKey::new(&Resource::new("", "namespaces"), "", call.namespace());
    let not_ending = Requirement {
        target: Target::Field,
        key: "status.phase".to_owned(),
        test: Test::NotIn(vec!["Terminating".to_owned()]),
    };
    let selector = Selector { requirements: vec![not_ending] };
    Some(Write::Require { key, expect: Precondition::default(), selector })
}

/// Checks the namespace alone: Kubernetes reports it before other errors of the object.
pub async fn check(call: &Call, name: &str) -> Result<(), Error> {
    match call.api.store.write(requirement(call).into_iter().collect()).await {
        Ok(_) => Ok(()),
        Err(error) => Err(refusal(call, name, error)),
    }
}

/// The API error of a failed create. `name` is the one for messages.
pub fn refusal(call: &Call, name: &str, error: store::Error) -> Error {
    let namespace = call.namespace();
    match error {
        store::Error::NotFound { .. } => Error::NotFound {
            group: String::new(),
            resource: "namespaces".to_owned(),
            name: namespace.to_owned(),
        },
        store::Error::Conflict { .. } => Error::NamespaceTerminating {
            group: call.resource_type.group.clone(),
            resource: call.resource_type.plural.clone(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        },
        error => store_error(error),
    }
}

/// The name for messages; Kubernetes has a placeholder for generated names.
pub fn name_in_messages(object: &Object) -> &str {
    let given = ["name", "generateName"].map(|key| metadata::text(object, key));
    given.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown")
}
