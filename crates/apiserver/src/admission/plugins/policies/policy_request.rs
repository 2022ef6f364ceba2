//! The request as policies and webhooks evaluate it, computed lazily.

use std::fmt;
use std::sync::Arc;

use kinds::policies::{
    Authorizer, Caller, Check, Decision, MatchAttributes, MatchedResource, RequestFacts, Resource,
    ResourceCheck, request_value,
};
use tokio::sync::OnceCell;

use super::equivalents;
use crate::admission::AdmissionAttributes;
use crate::api::ApiServer;
use crate::auth::{self, AuthorizerAttributes, Identity};
use crate::registry::{Object, Served};
use crate::request::path::ResourcePath;

/// A request with the data that policies need.
pub(in crate::admission) struct PolicyRequest<'r, 'a> {
    pub request: &'r AdmissionAttributes<'a>,
    /// The types that serve the same objects.
    pub equivalents: Vec<Arc<Served>>,
    pub authorizer: Arc<dyn Authorizer>,
    pub resource_check: ResourceCheck,
    namespace: OnceCell<Option<Object>>,
}

impl<'r, 'a> PolicyRequest<'r, 'a> {
    pub fn new(request: &'r AdmissionAttributes<'a>, equivalents: Vec<Arc<Served>>) -> Self {
        let (call, of) = (request.call, &request.call.resource_type);
        let authorizer = CallerAuthorizer { api: call.api.clone(), caller: call.caller.clone() };
        let resource_check = ResourceCheck {
            group: of.group.clone(),
            resource: of.plural.clone(),
            subresource: request.subresource().to_owned(),
            namespace: request.namespace().to_owned(),
            name: request.name.to_owned(),
            ..ResourceCheck::default()
        };
        let namespace = OnceCell::new();
        Self { request, equivalents, authorizer: Arc::new(authorizer), resource_check, namespace }
    }

    /// Whether the object is cluster-scoped and no Namespace.
    pub fn is_outside_namespaces(&self) -> bool {
        self.request.namespace().is_empty()
    }

    /// The stored Namespace of the request.
    pub async fn namespace_object(&self) -> Option<&Object> {
        let read = || async {
            let name = self.request.namespace();
            self.request.look_up("", "namespaces", "", name).await.ok().flatten()
        };
        self.namespace.get_or_init(read).await.as_ref()
    }

    /// The CEL variable `request`, for the type that the rules matched.
    pub fn request_value(&self, matched: &Served) -> Object {
        let (request, call) = (self.request, self.request.call);
        let of_path = &*call.resource_type;
        // The kind is that of the subresource object, the resource that of its parent.
        let is_part = !std::ptr::eq(request.shown, of_path);
        let caller = &call.caller;
        let extra = caller.extra.iter().map(|(key, values)| (key.clone(), values.clone().into()));
        let (extra, options) = (extra.collect::<Object>(), request.options());
        let kind = as_resource(request.shown);
        let policy_request = RequestFacts {
            kind: if is_part { kind } else { as_resource(matched) },
            resource: as_resource(matched),
            requested_kind: kind,
            requested: as_resource(of_path),
            subresource: request.subresource(),
            name: request.name,
            namespace: request.namespace(),
            operation: request.operation.as_str(),
            caller: Caller { name: &caller.name, uid: &caller.uid, groups: &caller.groups, extra: &extra },
            is_dry_run: request.dry_run,
            options: Some(&options),
        };
        request_value(&policy_request)
    }
}

fn as_resource(of: &Served) -> Resource<'_> {
    Resource { group: &of.group, version: &of.version, kind: &of.kind, plural: &of.plural }
}

/// The resource, subresource and operation that match rules look at.
pub(in crate::admission) fn target<'t>(
    request: &'t AdmissionAttributes<'_>,
    equivalents: &'t [MatchedResource<'t>],
) -> MatchAttributes<'t> {
    MatchAttributes {
        resource: equivalents::matched_resource(&request.call.resource_type),
        equivalents,
        subresource: request.subresource(),
        namespace: request.namespace(),
        name: request.name,
        operation: request.operation.as_str(),
    }
}

/// The CEL authorizer: asks the server's authorizer about the caller.
struct CallerAuthorizer {
    api: ApiServer,
    caller: Identity,
}

impl fmt::Debug for CallerAuthorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallerAuthorizer({})", self.caller.name)
    }
}

impl Authorizer for CallerAuthorizer {
    fn decide(&self, check: &Check) -> Decision {
        let decided = match check {
            Check::Path { path, verb } => {
                self.api.authorizer.decide(&self.caller, AuthorizerAttributes::Path { verb, path })
            }
            Check::Resource(check) => {
                let path = ResourcePath {
                    group: check.group.clone(),
                    version: "*".to_owned(),
                    namespace: check.namespace.clone(),
                    resource: check.resource.clone(),
                    name: check.name.clone(),
                    subresource: check.subresource.clone(),
                    ..ResourcePath::default()
                };
                let attributes = AuthorizerAttributes::Resource { verb: &check.verb, path: &path };
                self.api.authorizer.decide(&self.caller, attributes)
            }
        };
        let is_allowed = decided.is_allowed();
        let (auth::Decision::Allow { reason }
        | auth::Decision::Deny { reason }
        | auth::Decision::NoOpinion { reason }) = decided;
        Decision { is_allowed, reason, error: None }
    }

    fn for_service_account(&self, namespace: &str, name: &str) -> Arc<dyn Authorizer> {
        Arc::new(Self { api: self.api.clone(), caller: Identity::service_account(namespace, name) })
    }
}
