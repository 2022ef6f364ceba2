//! Reviews: kinds that are answered at once and never stored.

mod authentication;
mod authorization;
mod selectors;

use std::sync::Arc;

use futures::future::BoxFuture;
use http::{Response, StatusCode};
use model::error::{Error, FieldError};
use serde_json::{Map, Value};

use crate::api::ApiServer;
use crate::auth::Identity;
use crate::body::Body;
use crate::registry::Object;
use crate::render;
use crate::verbs::{Call, FieldManager, creation_time, set_managers};
use crate::warnings::Warnings;

/// A review kind.
pub trait Review: Send + Sync {
    /// Sets the status of a review.
    fn answer<'a>(
        &'a self,
        context: &'a ReviewContext<'a>,
        object: &'a mut Object,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Whether the response has managedFields.
    fn shows_managers(&self) -> bool {
        true
    }
}

/// The context of a review.
pub struct ReviewContext<'a> {
    /// The caller.
    pub caller: &'a Identity,
    /// The namespace in the path; empty if there is none.
    pub namespace: &'a str,
    api: &'a ApiServer,
    warnings: &'a Warnings,
}

/// The review of a built-in kind, if it is one.
pub(crate) fn built_in(group: &str, kind: &str) -> Option<Arc<dyn Review>> {
    Some(match (group, kind) {
        ("authentication.k8s.io", "SelfSubjectReview") => Arc::new(authentication::SelfSubjectReview),
        ("authentication.k8s.io", "TokenReview") => Arc::new(authentication::TokenReview),
        ("authorization.k8s.io", "SubjectAccessReview") => Arc::new(authorization::SubjectAccessReview),
        ("authorization.k8s.io", "LocalSubjectAccessReview") => {
            Arc::new(authorization::LocalSubjectAccessReview)
        }
        ("authorization.k8s.io", "SelfSubjectAccessReview") => {
            Arc::new(authorization::SelfSubjectAccessReview)
        }
        ("authorization.k8s.io", "SelfSubjectRulesReview") => Arc::new(authorization::SelfSubjectRulesReview),
        _ => return None,
    })
}

/// Serves the create of a review.
pub(crate) async fn create(
    call: &Call,
    review: &dyn Review,
    mut object: Object,
) -> Result<Response<Body>, Error> {
    let context = ReviewContext {
        caller: &call.caller,
        namespace: call.namespace(),
        api: &call.api,
        warnings: &call.warnings,
    };
    let tracked = FieldManager::new(call, creation_time()).track(None, &mut object);
    review.answer(&context, &mut object).await?;
    if review.shows_managers() {
        set_managers(&mut object, &tracked);
    }
    let bytes = serde_json::to_vec(&object).expect("a JSON value always encodes");
    render::object(call, StatusCode::CREATED, &bytes.into())
}

fn user(identity: &Identity) -> Value {
    let mut user = Map::from_iter([("username".to_owned(), Value::from(identity.name.as_str()))]);
    if !identity.uid.is_empty() {
        user.insert("uid".to_owned(), identity.uid.as_str().into());
    }
    user.insert("groups".to_owned(), identity.groups.clone().into());
    if !identity.extra.is_empty() {
        user.insert("extra".to_owned(), serde_json::json!(identity.extra));
    }
    user.into()
}

fn spec<'a>(object: &'a Object, field: &str) -> Option<&'a Value> {
    object.get("spec").and_then(|spec| spec.get(field)).filter(|value| !value.is_null())
}

fn spec_text<'a>(object: &'a Object, field: &str) -> &'a str {
    spec(object, field).and_then(Value::as_str).unwrap_or_default()
}

fn invalid(group: &str, errors: Vec<FieldError>) -> Error {
    Error::Invalid { group: group.to_owned(), kind: String::new(), name: String::new(), errors }
}
