//! The verbs, one file each. A verb serves a checked call; it knows no sockets.

mod admin_access;
mod allocator;
mod apply;
mod binding;
mod body;
mod component_status;
mod continue_token;
mod crd;
mod create;
mod delete;
mod delete_collection;
mod escalation;
mod eviction;
mod get;
mod list;
mod managed_fields;
mod metadata;
mod namespace;
pub(crate) mod nodes;
mod options;
mod patch;
mod reindex;
mod scale;
mod selection;
mod subresource_admission;
mod token;
mod type_meta;
mod update;
mod watch;
mod write;

pub(crate) use list::ListMetadata;
pub(crate) use managed_fields::{FieldManager, SERVER, set_managers};
pub(crate) use metadata::{attributes, metadata_mut, text, time};
pub(crate) use reindex::write_again;
pub(crate) use write::now;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Response};
use kinds::Writer;
use model::ObjectKey;
use model::error::Error;
use tokio::time::Instant;

use crate::api::ApiServer;
use crate::audit::Trail;
use crate::auth::Identity;
use crate::body::Body;
use crate::gate::PriorityLevel;
use crate::registry::{Crd, Object, Served};
use crate::render::wants_pretty;
use crate::request::negotiate::{self, Form, Offer, content_type};
use crate::request::path::ResourcePath;
use crate::request::query::Query;
use crate::request::verb::Verb;
use crate::warnings::Warnings;

/// A request to a resource type, after all checks that do not depend on the verb.
pub(crate) struct Call {
    pub api: ApiServer,
    pub caller: Identity,
    pub resource_type: Arc<Served>,
    /// The CRD of the type, for custom types.
    pub crd: Option<Arc<Crd>>,
    pub path: ResourcePath,
    pub query: Query,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub form: Form,
    /// The warnings of the response.
    pub warnings: Warnings,
    /// The audit trail.
    pub trail: Trail,
    /// Whether this server does not enforce a committed write yet.
    pub unenforced: Arc<AtomicBool>,
    /// The deadline of the request; `None` for calls of the server itself.
    pub deadline: Option<Instant>,
    /// The priority level of the request.
    pub level: PriorityLevel,
}

/// The input of a request: its parameters, headers and body.
pub(crate) struct Input {
    pub query: Query,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// The context of a request: everything beside its RequestInfo.
pub(crate) struct Context<'a> {
    pub warnings: &'a Warnings,
    pub trail: &'a Trail,
    pub deadline: Option<Instant>,
    pub level: PriorityLevel,
}

impl Call {
    /// The key of the object in the path.
    pub fn key(&self) -> ObjectKey {
        self.key_of(&self.path.name)
    }

    /// The key of another object in the same namespace.
    pub fn key_of(&self, name: &str) -> ObjectKey {
        ObjectKey::new(&self.resource_type.resource, self.namespace(), name)
    }

    /// The same call for another type.
    fn about(&self, resource_type: Arc<Served>) -> Self {
        Self {
            api: self.api.clone(),
            caller: self.caller.clone(),
            resource_type,
            crd: self.crd.clone(),
            path: self.path.clone(),
            query: self.query.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
            form: self.form,
            warnings: self.warnings.clone(),
            trail: self.trail.clone(),
            deadline: self.deadline,
            level: self.level,
            unenforced: self.unenforced.clone(),
        }
    }

    /// The caller for the rules of kinds.
    pub fn writer<'a>(&'a self, now: &'a str) -> Writer<'a> {
        let caller = &self.caller;
        Writer { name: &caller.name, uid: &caller.uid, groups: &caller.groups, extra: &caller.extra, now }
    }

    /// Removes duplicate owner references from a sent object, with a warning. Those of a patch stay until after mutating
    /// admission, as in kube-apiserver.
    fn dedup_sent_owners(&self, object: &mut Object) {
        if !self.is_patch() {
            self.dedup_owners(object, "");
        }
    }

    /// Removes duplicate owner references after mutating admission, where webhooks may have added them.
    fn dedup_admitted_owners(&self, object: &mut Object) {
        self.dedup_owners(object, " after mutating admission happens");
    }

    fn dedup_owners(&self, object: &mut Object, when: &str) {
        let doubled = metadata::take_doubled_owners(object);
        if !doubled.is_empty() {
            let beginning = format!(
                ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed:"
            );
            self.warnings.add(format!("{beginning} {}", doubled.join(", ")));
        }
    }

    /// Whether it is a patch or an apply.
    pub fn is_patch(&self) -> bool {
        content_type(&self.headers).ends_with("-patch+json")
            || content_type(&self.headers) == apply::APPLY_PATCH
    }

    /// The namespace of the objects; empty for cluster-scoped types.
    pub fn namespace(&self) -> &str {
        if self.resource_type.namespaced { &self.path.namespace } else { "" }
    }
}

/// Attempts of a write while its CRD changes.
const CRD_ATTEMPTS: usize = 8;

/// Finds the resource type and calls the verb.
pub(crate) async fn dispatch(
    api: &ApiServer,
    caller: Identity,
    verb: Verb,
    path: ResourcePath,
    Input { query, headers, body }: Input,
    Context { warnings, trail, deadline, level }: Context<'_>,
) -> Result<Response<Body>, Error> {
    let (resource_type, crd) = find(api, verb, &path, warnings, trail)?;
    let streams = matches!(verb, Verb::List | Verb::Watch);
    let pretty = wants_pretty(&query, &headers);
    let offer = resource_type.offer();
    // A TokenRequest has no table.
    let offer = Offer { tables: offer.tables && path.subresource != "token", ..offer };
    let form = negotiate::accepted(&headers, offer, streams, pretty)?;
    let mut call = Call {
        api: api.clone(),
        caller,
        resource_type,
        crd,
        path,
        query,
        headers,
        body,
        form,
        warnings: warnings.clone(),
        trail: trail.clone(),
        deadline,
        level,
        unenforced: Arc::default(),
    };
    let unenforced = call.unenforced.clone();
    for _ in 1..CRD_ATTEMPTS {
        let Some(crd) = call.crd.clone().filter(|_| verb.is_mutating()) else { break };
        match run(call.about(call.resource_type.clone()), verb).await {
            Err(Error::DefinitionChanged) => {
                api.catalog.wait_until_replaced(&crd).await?;
                (call.resource_type, call.crd) = find(api, verb, &call.path, warnings, trail)?;
            }
            answer => return enforced(answer, &unenforced),
        }
    }
    enforced(run(call, verb).await, &unenforced)
}

/// Success only if this server enforces the write: a role that still grants must not look deleted.
fn enforced(answer: Result<Response<Body>, Error>, unenforced: &AtomicBool) -> Result<Response<Body>, Error> {
    if answer.is_ok() && unenforced.load(Ordering::Relaxed) {
        let message = "the object was written, but this server does not enforce it yet".to_owned();
        return Err(Error::Timeout { message, retry_after_seconds: 0 });
    }
    answer
}

/// Deletes all objects of a CRD.
pub(crate) async fn delete_instances(api: &ApiServer, crd: &Arc<Crd>) -> Result<(), Error> {
    let Some(call) = instances(api, crd) else { return Ok(()) };
    let options = options::DeleteOptions { is_end_of_type: true, ..options::DeleteOptions::default() };
    delete_collection::delete_all(&call, &options).await.map(drop)
}

/// A call of the server itself on all objects of a CRD; `None` if it has no types.
pub(crate) fn instances(api: &ApiServer, crd: &Arc<Crd>) -> Option<Call> {
    Some(Call {
        api: api.clone(),
        caller: Identity::server(),
        resource_type: crd.stored()?.clone(),
        crd: Some(crd.clone()),
        path: ResourcePath::default(),
        query: Query::parse(""),
        headers: HeaderMap::new(),
        body: Bytes::new(),
        form: Form::STORED,
        warnings: Warnings::default(),
        trail: Trail::default(),
        deadline: None,
        level: PriorityLevel::Exempt,
        unenforced: Arc::default(),
    })
}

/// The type of a path, if it supports the verb. Adds the deprecation warning.
fn find(
    api: &ApiServer,
    verb: Verb,
    path: &ResourcePath,
    warnings: &Warnings,
    trail: &Trail,
) -> Result<(Arc<Served>, Option<Arc<Crd>>), Error> {
    let registry = api.registry();
    let found = registry.find(&path.group, &path.version, &path.resource).filter(|of| of.fits(path));
    let Some(resource_type) = found else {
        let known = registry.has_group(&path.group);
        return Err(if known { Error::PathNotFound } else { Error::NoSuchPage });
    };
    let is_custom = resource_type.custom.is_some();
    let verbs = resource_type.verbs_of(&path.subresource);
    // Kubernetes treats a watch as a list, even if only list is supported.
    let is_reached = is_custom || verb == Verb::Watch || verbs.is_some_and(|verbs| verbs.contains(verb));
    if let Some(warning) = resource_type.strategy.deprecated().filter(|_| is_reached) {
        warnings.add(warning);
        trail.annotate("k8s.io/deprecated", || "true".to_owned());
    }
    // A namespaced object is created in its namespace, never across all of them.
    let in_place = verb != Verb::Create || !resource_type.namespaced || !path.namespace.is_empty();
    match verbs {
        _ if is_custom && !in_place => return Err(Error::NoSuchPage),
        None if is_custom => return Err(resource_type.not_found(&path.name)),
        None => return Err(Error::PathNotFound),
        Some(verbs) if in_place && verbs.contains(verb) => {}
        Some(_) => {
            return Err(Error::MethodNotAllowed {
                group: String::new(),
                resource: String::new(),
                verb: String::new(),
            });
        }
    }
    let crd = registry.crd(&path.group, &path.resource).filter(|_| is_custom);
    Ok((resource_type.clone(), crd.cloned()))
}

/// Boxed: otherwise every request future would have the size of the largest verb.
async fn run(call: Call, verb: Verb) -> Result<Response<Body>, Error> {
    match verb {
        _ if nodes::needs_node(&call.resource_type.group, &call.path.subresource) => {
            Box::pin(nodes::serve(call)).await
        }
        _ if call.path.subresource == "scale" => Box::pin(scale::scale(call, verb)).await,
        Verb::Create if call.path.subresource == "eviction" => {
            Box::pin(eviction::create_eviction(call)).await
        }
        Verb::Create if call.path.subresource == "binding" || call.resource_type.is_binding() => {
            Box::pin(binding::create_binding(call)).await
        }
        Verb::Create if call.path.subresource == "token" => Box::pin(token::create_token(call)).await,
        Verb::Create => Box::pin(create::create(call)).await,
        Verb::Get => get::get(call).await,
        Verb::List => Box::pin(list::list(call)).await,
        Verb::Watch => Box::pin(watch::watch(call)).await,
        Verb::Update => Box::pin(update::update(call)).await,
        Verb::Patch => Box::pin(patch::patch(call)).await,
        Verb::Delete => Box::pin(delete::delete(call)).await,
        Verb::DeleteCollection => Box::pin(delete_collection::delete_collection(call)).await,
    }
}

/// Converts an unexpected store error to an API error.
pub(crate) fn store_error(error: store::Error) -> Error {
    match error {
        store::Error::Expired { requested, .. } => {
            Error::Expired { message: too_old(requested), continue_token: None }
        }
        store::Error::Future { requested, current } => Error::FutureRevision { requested, current },
        // Messages of the database and the operating system go to the log only.
        store::Error::Unavailable { reason } => {
            tracing::error!(reason, "database is unavailable");
            Error::Unavailable {
                message: "the database is unavailable; the server's log has the reason".to_owned(),
            }
        }
        // No Retry-After: repeating a create with generateName could create two objects.
        store::Error::OutcomeUnknown { reason } => {
            tracing::error!(reason, "outcome of a commit is unknown");
            let message = "the server could not confirm the write; it may have been committed".to_owned();
            Error::Timeout { message, retry_after_seconds: 0 }
        }
        store::Error::TooLarge { reason, .. } => Error::ObjectTooLarge { message: reason },
        other => {
            tracing::error!(error = %other, "store failed unexpectedly");
            Error::Internal { message: "the store failed; the server's log has the reason".to_owned() }
        }
    }
}

/// Kubernetes' message for an expired revision.
pub(crate) fn too_old(requested: model::Revision) -> String {
    format!("The resourceVersion for the provided watch or list is too old: {requested}.")
}

/// The current time in the format of objects.
pub(crate) fn creation_time() -> String {
    metadata::time(now())
}

/// Removes the resourceVersion of an unstored object.
pub(crate) fn forget_version(object: &mut Object) {
    metadata::remove(object, "resourceVersion");
}
