//! The objects of a request in the version that a policy asks for.

use kinds::policies::{Binding, Input, Matched};
use model::error::Error;

use super::asking::{Facts, target};
use super::{selects_namespace, view};
use crate::registry::{Object, Served};

/// The objects of a request in the version that a policy asks for.
pub(super) struct Seen<'f> {
    /// The type as which they are shown.
    pub of: &'f Served,
    pub object: Option<Object>,
    old: Option<Object>,
    request: Object,
    namespace: Option<Object>,
}

impl<'f> Seen<'f> {
    pub async fn new(
        facts: &'f Facts<'_, '_>,
        object: Option<&Object>,
        matched: Matched,
    ) -> Result<Self, Error> {
        let (from, of_path) = (facts.request.shown, &*facts.request.call.resource_type);
        let matched: &Served = match matched {
            Matched::Equivalent(index) => &facts.equivalents[index],
            _ => of_path,
        };
        // A part such as a scale has a type of its own, which is the same in every version of the object.
        let of = if std::ptr::eq(from, of_path) { matched } else { from };
        let mut shown = [None, None];
        let old = facts.request.whole_old().await?;
        for (shown, object) in shown.iter_mut().zip([object, old.as_deref()]) {
            if let Some(object) = object {
                *shown = Some(view::shown(from, of, object).await?);
            }
        }
        let [object, old] = shown;
        let is_namespace = facts.request.call.resource_type.is_namespace();
        let namespace = match is_namespace || facts.is_outside_namespaces() {
            true => None,
            false => facts.namespace_object().await.cloned(),
        };
        Ok(Self { of, object, old, request: facts.request_value(matched), namespace })
    }

    pub fn input<'s>(&'s self, facts: &'s Facts<'_, '_>, params: Option<&'s Object>) -> Input<'s> {
        Input {
            object: self.object.as_ref(),
            old_object: self.old.as_ref(),
            request: &self.request,
            namespace: self.namespace.as_ref(),
            params,
            authorizer: &facts.authorizer,
            resource_check: &facts.resource_check,
        }
    }
}

/// Whether a binding holds for a request.
pub(super) async fn is_about(binding: &Binding, facts: &Facts<'_, '_>, object: Option<&Object>) -> bool {
    let Some(criteria) = &binding.criteria else { return true };
    let named: Vec<_> = facts.equivalents.iter().map(|of| view::named(of)).collect();
    criteria.rules(&target(facts.request, &named)) != Matched::No
        && criteria.selects_object(object, facts.request.old)
        && selects_namespace(criteria, facts, object).await
}
