//! Admission: the request of an AdmissionReview, the handlers that decide about it, and their verdict.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::api::{GroupVersionKind, GroupVersionResource};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::patch::{self, PatchOperation};

/// The operation that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A new object.
    Create,
    /// A change of an object.
    Update,
    /// The deletion of an object. There is an old object only.
    Delete,
    /// A connection to an object, such as `exec`.
    Connect,
}

/// The user of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UserInfo {
    /// The name.
    pub username: String,
    /// The uid.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Further attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// A request that the API server asks about (AdmissionReview v1).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionRequest<T> {
    /// The id of the question.
    pub uid: String,
    /// The kind of the object, in the version that the webhook has registered for.
    pub kind: GroupVersionKind,
    /// The resource, in the version that the webhook has registered for.
    pub resource: GroupVersionResource,
    /// The subresource, such as `status`; empty for the object itself.
    #[serde(default)]
    pub sub_resource: String,
    /// The kind as the user has sent it, which may be of another version.
    #[serde(default)]
    pub request_kind: Option<GroupVersionKind>,
    /// The name of the object; empty if the server is going to generate it.
    #[serde(default)]
    pub name: String,
    /// The namespace of the object; empty for a cluster-scoped one.
    #[serde(default)]
    pub namespace: String,
    /// The operation.
    pub operation: Operation,
    /// The user.
    #[serde(default)]
    pub user_info: UserInfo,
    /// The new object; none for a deletion.
    #[serde(default = "Option::default")]
    pub object: Option<T>,
    /// The present object; none for a creation.
    #[serde(default = "Option::default")]
    pub old_object: Option<T>,
    /// Whether nothing will be stored: the handler must have no effect either.
    #[serde(default)]
    pub dry_run: bool,
    /// The options of the operation, such as `CreateOptions`.
    #[serde(default)]
    pub options: Value,
}

impl<T> AdmissionRequest<T> {
    fn with<U>(self, object: Option<U>, old_object: Option<U>) -> AdmissionRequest<U> {
        AdmissionRequest {
            uid: self.uid,
            kind: self.kind,
            resource: self.resource,
            sub_resource: self.sub_resource,
            request_kind: self.request_kind,
            name: self.name,
            namespace: self.namespace,
            operation: self.operation,
            user_info: self.user_info,
            object,
            old_object,
            dry_run: self.dry_run,
            options: self.options,
        }
    }
}

impl AdmissionRequest<Value> {
    fn typed<T: DeserializeOwned>(self) -> Result<AdmissionRequest<T>, serde_json::Error> {
        let object = self.object.as_ref().map(T::deserialize).transpose()?;
        let old_object = self.old_object.as_ref().map(T::deserialize).transpose()?;
        Ok(self.with(object, old_object))
    }
}

/// The answer to an admission request.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Verdict {
    denial: Option<Denial>,
    warnings: Vec<String>,
    audit_annotations: BTreeMap<String, String>,
    patch: Vec<PatchOperation>,
}

#[derive(Clone, Debug, PartialEq)]
struct Denial {
    code: u16,
    message: String,
}

impl Verdict {
    /// The request may go on.
    pub fn allow() -> Self {
        Self::default()
    }

    /// The user gets an error with this HTTP status code and message.
    pub fn deny(code: u16, message: impl Into<String>) -> Self {
        Self { denial: Some(Denial { code, message: message.into() }), ..Self::default() }
    }

    /// [`Verdict::deny`] with 403 Forbidden.
    pub fn forbid(message: impl Into<String>) -> Self {
        Self::deny(403, message)
    }

    /// [`Verdict::deny`] with 422, for an object that breaks a rule.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::deny(422, message)
    }

    /// Adds a warning, which kubectl shows to the user.
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Adds an annotation to the audit event. The API server prefixes the key with the name of the webhook.
    pub fn audit(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.audit_annotations.insert(key.into(), value.into());
        self
    }

    /// Adds operations of a JSON patch, behind the changes that the handler made to the object.
    pub fn patch(mut self, operations: impl IntoIterator<Item = PatchOperation>) -> Self {
        self.patch.extend(operations);
        self
    }

    /// Whether the request may go on.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.denial.is_none()
    }

    fn response(self, uid: &str) -> Value {
        let mut response = json!({"uid": uid, "allowed": self.denial.is_none()});
        match self.denial {
            Some(Denial { code, message }) => {
                response["status"] = json!({"status": "Failure", "code": code, "message": message});
            }
            None if !self.patch.is_empty() => {
                let patch = serde_json::to_vec(&self.patch).expect("operations are JSON");
                response["patchType"] = "JSONPatch".into();
                response["patch"] = STANDARD.encode(patch).into();
            }
            None => {}
        }
        if !self.warnings.is_empty() {
            response["warnings"] = self.warnings.into();
        }
        if !self.audit_annotations.is_empty() {
            response["auditAnnotations"] = json!(self.audit_annotations);
        }
        response
    }
}

/// A handler of a validating webhook.
pub trait Validate: Send + Sync + 'static {
    /// The object: a type with the fields that matter, or `serde_json::Value`.
    type Object: DeserializeOwned + Send + Sync;

    /// Decides about a request.
    fn validate(&self, request: &AdmissionRequest<Self::Object>) -> impl Future<Output = Verdict> + Send;
}

/// A handler of a mutating webhook.
pub trait Mutate: Send + Sync + 'static {
    /// The object: a type with the fields that matter, or `serde_json::Value`. Fields that the type does not have stay as they are.
    type Object: DeserializeOwned + Serialize + Send + Sync;

    /// Changes `request.object` in place, and decides about the request. The changes are sent as a JSON patch.
    fn mutate(&self, request: &mut AdmissionRequest<Self::Object>) -> impl Future<Output = Verdict> + Send;
}

/// A handler of any object type: from a request to the response of its AdmissionReview.
pub(super) type Admit = Box<dyn Fn(AdmissionRequest<Value>) -> BoxFuture<'static, Value> + Send + Sync>;

pub(super) fn validating<V: Validate>(handler: V) -> Admit {
    let handler = std::sync::Arc::new(handler);
    Box::new(move |request| {
        let handler = std::sync::Arc::clone(&handler);
        let validate = async move {
            let uid = request.uid.clone();
            let verdict = match request.typed::<V::Object>() {
                Ok(request) => handler.validate(&request).await,
                Err(error) => undecodable(&error),
            };
            // A validating webhook must not patch.
            Verdict { patch: Vec::new(), ..verdict }.response(&uid)
        };
        validate.boxed()
    })
}

pub(super) fn mutating<M: Mutate>(handler: M) -> Admit {
    let handler = std::sync::Arc::new(handler);
    Box::new(move |request| {
        let handler = std::sync::Arc::clone(&handler);
        async move {
            let (uid, whole) = (request.uid.clone(), request.object.clone());
            let verdict = match request.typed::<M::Object>() {
                Ok(request) => mutate(&*handler, request, whole).await,
                Err(error) => undecodable(&error),
            };
            verdict.response(&uid)
        }
        .boxed()
    })
}

async fn mutate<M: Mutate>(
    handler: &M,
    mut request: AdmissionRequest<M::Object>,
    whole: Option<Value>,
) -> Verdict {
    let before = serde_json::to_value(&request.object);
    let verdict = handler.mutate(&mut request).await;
    let (Some(whole), true) = (whole, verdict.is_allowed()) else { return verdict };
    match (before, serde_json::to_value(&request.object)) {
        (Ok(before), Ok(after)) => {
            let mut operations = patch::diff(&whole, &patch::carry_over(&whole, &before, &after));
            operations.extend(verdict.patch);
            Verdict { patch: operations, ..verdict }
        }
        (Err(error), _) | (_, Err(error)) => Verdict::deny(500, format!("cannot encode the object: {error}")),
    }
}

fn undecodable(error: &serde_json::Error) -> Verdict {
    Verdict::deny(400, format!("cannot decode the object: {error}"))
}
