//! SubjectAccessReview, LocalSubjectAccessReview, SelfSubjectAccessReview and SelfSubjectRulesReview.

use std::collections::BTreeMap;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use model::error::{Error, FieldError};
use model::object::text_in;
use serde_json::{Value, json};

use super::{Review, ReviewContext, invalid, selectors, spec, spec_text};
use crate::auth::{AuthorizerAttributes, Decision, Identity};
use crate::registry::Object;
use crate::request::path::ResourcePath;

const GROUP: &str = "authorization.k8s.io";

/// `SubjectAccessReview`: access of any user.
pub struct SubjectAccessReview;

/// `LocalSubjectAccessReview`: access of any user in one namespace.
pub struct LocalSubjectAccessReview;

/// `SelfSubjectAccessReview`: access of the caller.
pub struct SelfSubjectAccessReview;

/// `SelfSubjectRulesReview`: the rules of the caller in a namespace.
pub struct SelfSubjectRulesReview;

impl Review for SubjectAccessReview {
    fn answer<'a>(
        &'a self,
        context: &'a ReviewContext<'a>,
        object: &'a mut Object,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let mut errors: Vec<FieldError> = bad_attributes(object).into_iter().collect();
        errors.extend(bad_subject(object));
        errors.extend(bad_selectors(object));
        errors.extend(bad_metadata(object, &[], "must be empty"));
        ready(decide(context, &subject(object), object, errors)).boxed()
    }
}

impl Review for LocalSubjectAccessReview {
    fn answer<'a>(
        &'a self,
        context: &'a ReviewContext<'a>,
        object: &'a mut Object,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let mut errors: Vec<FieldError> = bad_attributes(object).into_iter().collect();
        errors.extend(bad_subject(object));
        errors.extend(bad_selectors(object));
        errors.extend(bad_metadata(object, &["namespace"], "must be empty except for namespace"));
        let attributes = spec(object, "resourceAttributes");
        let namespace = attributes.map(|attributes| text_in(attributes, "namespace"));
        if let Some(namespace) = namespace.filter(|namespace| *namespace != context.namespace) {
            let path = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(path, namespace, "must match metadata.namespace"));
        }
        if spec(object, "nonResourceAttributes").is_some() {
            let detail = "disallowed on this kind of request";
            errors.push(FieldError::invalid("spec.nonResourceAttributes", path_value(object), detail));
        }
        ready(decide(context, &subject(object), object, errors)).boxed()
    }
}

impl Review for SelfSubjectAccessReview {
    fn answer<'a>(
        &'a self,
        context: &'a ReviewContext<'a>,
        object: &'a mut Object,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let mut errors: Vec<FieldError> = bad_attributes(object).into_iter().collect();
        errors.extend(bad_selectors(object));
        errors.extend(bad_metadata(object, &[], "must be empty"));
        ready(decide(context, context.caller, object, errors)).boxed()
    }
}

impl Review for SelfSubjectRulesReview {
    fn answer<'a>(
        &'a self,
        context: &'a ReviewContext<'a>,
        object: &'a mut Object,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let namespace = spec_text(object, "namespace");
        if namespace.is_empty() {
            return ready(Err(Error::bad_request("no namespace on request"))).boxed();
        }
        let rules = context.api.authorizer.rules(context.caller, namespace);
        let mut status = json!({
            "resourceRules": rules.resources,
            "nonResourceRules": rules.paths,
            "incomplete": rules.is_incomplete,
        });
        if !rules.problem.is_empty() {
            status["evaluationError"] = rules.problem.into();
        }
        object.insert("spec".to_owned(), json!({}));
        object.insert("status".to_owned(), status);
        ready(Ok(())).boxed()
    }

    fn shows_managers(&self) -> bool {
        false
    }
}

fn decide(
    context: &ReviewContext<'_>,
    subject: &Identity,
    object: &mut Object,
    errors: Vec<FieldError>,
) -> Result<(), Error> {
    if !errors.is_empty() {
        return Err(invalid(GROUP, errors));
    }
    let authorizer = &context.api.authorizer;
    let ignored = spec(object, "resourceAttributes").map(selectors::ignored).unwrap_or_default();
    let decision = match (spec(object, "resourceAttributes"), spec(object, "nonResourceAttributes")) {
        (Some(attributes), _) => {
            let path = resource_path(attributes);
            authorizer.decide(
                subject,
                AuthorizerAttributes::Resource { verb: text_in(attributes, "verb"), path: &path },
            )
        }
        (None, attributes) => {
            let attributes = attributes.unwrap_or(&Value::Null);
            let attributes = AuthorizerAttributes::Path {
                verb: text_in(attributes, "verb"),
                path: text_in(attributes, "path"),
            };
            authorizer.decide(subject, attributes)
        }
    };
    let mut status = match decision {
        Decision::Allow { reason } => answer(true, false, &reason),
        Decision::Deny { reason } => answer(false, true, &reason),
        Decision::NoOpinion { reason } => answer(false, false, &reason),
    };
    if !ignored.is_empty() {
        status["evaluationError"] = ignored.into();
    }
    object.insert("status".to_owned(), status);
    Ok(())
}

fn answer(allowed: bool, denied: bool, reason: &str) -> Value {
    let mut status = json!({"allowed": allowed});
    if denied {
        status["denied"] = true.into();
    }
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    status
}

fn resource_path(attributes: &Value) -> ResourcePath {
    let owned = |field| text_in(attributes, field).to_owned();
    ResourcePath {
        group: owned("group"),
        version: owned("version"),
        namespace: owned("namespace"),
        resource: owned("resource"),
        name: owned("name"),
        subresource: owned("subresource"),
        ..ResourcePath::default()
    }
}

fn subject(object: &Object) -> Identity {
    let groups = spec(object, "groups").and_then(Value::as_array).into_iter().flatten();
    Identity {
        name: spec_text(object, "user").to_owned(),
        uid: spec_text(object, "uid").to_owned(),
        groups: groups.filter_map(Value::as_str).map(str::to_owned).collect(),
        extra: spec(object, "extra").map(extra).unwrap_or_default(),
    }
}

fn extra(values: &Value) -> BTreeMap<String, Vec<String>> {
    serde_json::from_value(values.clone()).unwrap_or_default()
}

fn bad_attributes(object: &Object) -> Option<FieldError> {
    match (spec(object, "resourceAttributes"), spec(object, "nonResourceAttributes")) {
        (Some(_), Some(_)) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            Some(FieldError::invalid("spec.nonResourceAttributes", path_value(object), detail))
        }
        (None, None) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            Some(FieldError::invalid("spec.resourceAttributes", Value::Null, detail))
        }
        _ => None,
    }
}

/// The value in Kubernetes' error, with Go's field names.
fn path_value(object: &Object) -> Value {
    let attributes = spec(object, "nonResourceAttributes").unwrap_or(&Value::Null);
    json!({"Path": text_in(attributes, "path"), "Verb": text_in(attributes, "verb")})
}

fn bad_subject(object: &Object) -> Option<FieldError> {
    let has_groups =
        spec(object, "groups").and_then(Value::as_array).is_some_and(|groups| !groups.is_empty());
    let detail = "at least one of user or group must be specified";
    (spec_text(object, "user").is_empty() && !has_groups)
        .then(|| FieldError::invalid("spec.user", "", detail))
}

fn bad_selectors(object: &Object) -> Vec<FieldError> {
    spec(object, "resourceAttributes").map(selectors::problems).unwrap_or_default()
}

fn bad_metadata(object: &Object, allowed: &[&str], detail: &str) -> Option<FieldError> {
    let metadata = object.get("metadata").and_then(Value::as_object)?;
    let is_set = |value: &Value| !value.is_null() && value.as_str() != Some("");
    let is_bad = metadata.iter().any(|(key, value)| !allowed.contains(&key.as_str()) && is_set(value));
    is_bad.then(|| FieldError::invalid("metadata", Value::Object(metadata.clone()), detail))
}
