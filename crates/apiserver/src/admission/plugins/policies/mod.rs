//! Admission policies: CEL rules about requests, stored as API objects.

pub(in crate::admission) mod equivalents;
mod mutating;
mod param_authorization;
mod params;
pub(in crate::admission) mod policy_request;
mod validating;
mod versioned_request;

pub(super) use mutating::MutatingAdmissionPolicy;
pub(super) use param_authorization::ParamAuthorization;
pub(super) use validating::ValidatingAdmissionPolicy;

use std::sync::{Arc, Mutex, PoisonError};

use kinds::policies::{Binding, Criteria};
use model::{ObjectKey, Resource};

use crate::admission::AdmissionTarget;
use crate::admission::informers::{CachedObjects, InformerCache, PluginInformer};
use crate::registry::Object;
use policy_request::PolicyRequest;

const GROUP: &str = "admissionregistration.k8s.io";

/// The informers of policies and bindings. Policies are compiled when they are cached.
struct PolicyInformers<P> {
    policies: Arc<InformerCache<P>>,
    bindings: Arc<InformerCache<Binding>>,
    bound: Mutex<Option<Arc<BoundPolicies<P>>>>,
}

/// Policies with their bindings, and the cache contents that they were computed from.
struct BoundPolicies<P> {
    policies: CachedObjects<P>,
    bindings: CachedObjects<Binding>,
    all: Vec<(Arc<P>, Vec<Arc<Binding>>)>,
}

impl<P: Send + Sync + 'static> PolicyInformers<P> {
    fn new(policies: &str, bindings: &str, read: fn(&ObjectKey, Object) -> Option<P>) -> Self {
        let read_binding = |_: &ObjectKey, object: Object| Some(Binding::read(&object));
        Self {
            policies: InformerCache::new(Resource::new(GROUP, policies), read),
            bindings: InformerCache::new(Resource::new(GROUP, bindings), read_binding),
            bound: Mutex::default(),
        }
    }

    fn informers(&self) -> [Arc<dyn PluginInformer>; 2] {
        [self.policies.clone(), self.bindings.clone()]
    }

    /// The bound policies with their bindings, ordered by name. Recomputed only after a change.
    fn bound(&self) -> Option<Arc<BoundPolicies<P>>> {
        let (policies, bindings) = (self.policies.of("")?, self.bindings.of("")?);
        let mut known = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bound) = &*known
            && Arc::ptr_eq(&bound.policies, &policies)
            && Arc::ptr_eq(&bound.bindings, &bindings)
        {
            return Some(bound.clone());
        }
        let bindings_of = |name: &String| -> Vec<Arc<Binding>> {
            bindings.values().filter(|binding| binding.policy == *name).cloned().collect()
        };
        let all = policies.iter().map(|(name, policy)| (policy.clone(), bindings_of(name)));
        let all = all.filter(|(_, bindings)| !bindings.is_empty()).collect();
        let bound = Arc::new(BoundPolicies { policies, bindings, all });
        *known = Some(bound.clone());
        Some(bound)
    }
}

/// The policy kinds themselves are exempt: a policy about them could lock itself in.
const POLICY_KINDS: [&str; 4] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// Reviews are exempt: a policy about them could break authentication and authorization of the cluster.
const EXCLUDED_REVIEWS: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Whether policies apply to a resource. Unlike webhooks, they apply to webhook configurations.
fn is_judged(target: AdmissionTarget<'_>) -> bool {
    let (group, plural) = (target.resource_type.group.as_str(), target.resource_type.plural.as_str());
    let is_policy = group == GROUP && POLICY_KINDS.contains(&plural);
    !is_policy && !EXCLUDED_REVIEWS.contains(&(group, plural))
}

/// Whether the namespace selector matches the request.
async fn selects_namespace(
    criteria: &Criteria,
    policy_request: &PolicyRequest<'_, '_>,
    object: Option<&Object>,
) -> bool {
    if !criteria.selects_namespaces() || policy_request.is_outside_namespaces() {
        return true;
    }
    // A Namespace that is written is matched by its new labels.
    let is_namespace = policy_request.request.call.resource_type.is_namespace();
    let namespace = match object.filter(|_| is_namespace && policy_request.request.subresource().is_empty()) {
        Some(written) => Some(written),
        None => policy_request.namespace_object().await,
    };
    let labels = namespace.and_then(|namespace| namespace.get("metadata")?.get("labels")?.as_object());
    criteria.selects_namespace(labels)
}
