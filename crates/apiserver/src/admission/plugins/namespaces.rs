//! Namespaces that come by themselves, or have to be there: `NamespaceAutoProvision` and `NamespaceExists`.

use http::Method;
use model::error::Error;
use serde_json::json;

use crate::admission::{Operation, Phases, Plugin, Request, Step, Target};
use crate::bootstrap::ask;
use crate::registry::Object;

async fn is_there(request: &Request<'_>) -> Result<bool, Error> {
    Ok(request.look_up("", "namespaces", "", request.namespace()).await?.is_some())
}

fn is_in_namespace(target: Target<'_>) -> bool {
    target.resource_type.namespaced
}

/// Makes the namespace of an object that has none.
pub(super) struct NamespaceAutoProvision;

impl Plugin for NamespaceAutoProvision {
    fn handles(&self, target: Target<'_>) -> Phases {
        Phases::mutating(is_in_namespace(target) && target.operation == Operation::Create)
    }

    fn admit<'a>(&'a self, request: &'a Request<'_>, _object: Option<&'a mut Object>) -> Step<'a> {
        // A dry run makes nothing, and so finds no namespace.
        if request.dry_run {
            return Step::OK;
        }
        Step::later(async move {
            if is_there(request).await? {
                return Ok(());
            }
            let namespace = json!({"metadata": {"name": request.namespace()}}).to_string();
            match Box::pin(ask(&request.call.api, Method::POST, "/api/v1/namespaces", namespace)).await? {
                201 | 409 => Ok(()),
                code => Err(request.forbidden(None, format!("the namespace cannot be made: {code}"))),
            }
        })
    }
}

/// Refuses what is about a namespace that is not there.
pub(super) struct NamespaceExists;

impl Plugin for NamespaceExists {
    fn handles(&self, target: Target<'_>) -> Phases {
        Phases::validating(is_in_namespace(target))
    }

    fn validate<'a>(&'a self, request: &'a Request<'_>, _object: Option<&'a Object>) -> Step<'a> {
        Step::later(async move {
            if is_there(request).await? {
                return Ok(());
            }
            let (group, resource) = (String::new(), "namespaces".to_owned());
            Err(Error::NotFound { group, resource, name: request.namespace().to_owned() })
        })
    }
}
