//! The whole input of one policy: the objects of a request in the version that the policy matched. `equivalents.rs` converts
//! the single objects.

use kinds::policies::{Binding, Input, Matched};
use model::error::Error;

use super::policy_request::{PolicyRequest, target};
use super::{equivalents, selects_namespace};
use crate::registry::{Object, Served};

/// The object, the old object and the namespace of a request, in the version that a policy matched.
pub(super) struct VersionedRequest<'f> {
    /// The type of the converted objects.
    pub of: &'f Served,
    pub object: Option<Object>,
    old: Option<Object>,
    request: Object,
    namespace: Option<Object>,
}

impl<'f> VersionedRequest<'f> {
    pub async fn new(
        policy_request: &'f PolicyRequest<'_, '_>,
        object: Option<&Object>,
        matched: Matched,
    ) -> Result<Self, Error> {
        let (from, of_path) = (policy_request.request.shown, &*policy_request.request.call.resource_type);
        let matched: &Served = match matched {
            Matched::Equivalent(index) => &policy_request.equivalents[index],
            _ => of_path,
        };
        // A subresource object such as Scale has one type in every version of its parent.
        let of = if std::ptr::eq(from, of_path) { matched } else { from };
        let mut shown = [None, None];
        let old = policy_request.request.whole_old().await?;
        for (shown, object) in shown.iter_mut().zip([object, old.as_deref()]) {
            if let Some(object) = object {
                *shown = Some(equivalents::to_equivalent(from, of, object).await?);
            }
        }
        let [object, old] = shown;
        let is_namespace = policy_request.request.call.resource_type.is_namespace();
        let namespace = match is_namespace || policy_request.is_outside_namespaces() {
            true => None,
            false => policy_request.namespace_object().await.cloned(),
        };
        Ok(Self { of, object, old, request: policy_request.request_value(matched), namespace })
    }

    pub fn input<'s>(
        &'s self,
        policy_request: &'s PolicyRequest<'_, '_>,
        params: Option<&'s Object>,
    ) -> Input<'s> {
        Input {
            object: self.object.as_ref(),
            old_object: self.old.as_ref(),
            request: &self.request,
            namespace: self.namespace.as_ref(),
            params,
            authorizer: &policy_request.authorizer,
            resource_check: &policy_request.resource_check,
        }
    }
}

/// Whether the match criteria of a binding select the request.
pub(super) async fn is_about(
    binding: &Binding,
    policy_request: &PolicyRequest<'_, '_>,
    object: Option<&Object>,
) -> bool {
    let Some(criteria) = &binding.criteria else { return true };
    let named: Vec<_> =
        policy_request.equivalents.iter().map(|of| equivalents::matched_resource(of)).collect();
    criteria.rules(&target(policy_request.request, &named)) != Matched::No
        && criteria.selects_object(object, policy_request.request.old)
        && selects_namespace(criteria, policy_request, object).await
}
