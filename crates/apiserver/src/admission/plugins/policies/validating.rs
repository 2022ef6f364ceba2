//! `ValidatingAdmissionPolicy`: policies check the object.

use std::sync::Arc;

use kinds::policies::{Binding, Judgement, Matched, ValidatingPolicy};
use model::error::Error;

use super::params::{self, Problem};
use super::policy_request::{PolicyRequest, target};
use super::versioned_request::{VersionedRequest, is_about};
use super::{PolicyInformers, equivalents, is_judged, selects_namespace};
use crate::admission::informers::PluginInformer;
use crate::admission::{AdmissionAttributes, AdmissionTarget, Phases, Plugin, PluginResult};
use crate::registry::Object;

pub(in super::super) struct ValidatingAdmissionPolicy(PolicyInformers<ValidatingPolicy>);

impl ValidatingAdmissionPolicy {
    pub fn new() -> Self {
        Self(PolicyInformers::new(
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            |_, object| Some(ValidatingPolicy::compile(&object)),
        ))
    }

    pub fn informers(&self) -> [Arc<dyn PluginInformer>; 2] {
        self.0.informers()
    }
}

impl Plugin for ValidatingAdmissionPolicy {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::validating(is_judged(target))
    }

    fn connects(&self) -> bool {
        true
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        let Some(bound) = self.0.bound().filter(|bound| !bound.all.is_empty()) else {
            return PluginResult::OK;
        };
        let equivalents = equivalents::equivalents(request);
        let named: Vec<_> = equivalents.iter().map(|of| equivalents::matched_resource(of)).collect();
        let of_request = target(request, &named);
        let about = bound.all.iter().filter_map(|(policy, bindings)| {
            let matched = policy.criteria.rules(&of_request);
            let is_asked = matched != Matched::No && policy.criteria.selects_object(object, request.old);
            is_asked.then(|| (policy.clone(), bindings.clone(), matched))
        });
        let about: Vec<_> = about.collect();
        if about.is_empty() {
            return PluginResult::OK;
        }
        drop(named);
        PluginResult::later(async move {
            let policy_request = PolicyRequest::new(request, equivalents);
            let mut judgement = Judgement::default();
            for (policy, bindings, matched) in &about {
                judge(&policy_request, object, policy, bindings, *matched, &mut judgement).await?;
            }
            answer(request, object, judgement.finish())
        })
    }
}

/// Evaluates a matching policy and adds its results.
async fn judge(
    policy_request: &PolicyRequest<'_, '_>,
    object: Option<&Object>,
    policy: &ValidatingPolicy,
    bindings: &[Arc<Binding>],
    matched: Matched,
    judgement: &mut Judgement,
) -> Result<(), Error> {
    let (request, api) = (policy_request.request, &policy_request.request.call.api);
    if !selects_namespace(&policy.criteria, policy_request, object).await {
        return Ok(());
    }
    let kind = match policy
        .param_kind
        .as_ref()
        .map(|(version, kind)| params::kind_of(api, version, kind))
        .transpose()
    {
        Ok(kind) => kind,
        Err(problem) => {
            judgement.unusable(policy, None, &problem);
            return Ok(());
        }
    };
    let mut versioned = None;
    for binding in bindings {
        if !is_about(binding, policy_request, object).await {
            continue;
        }
        let params = match params::of_binding(api, kind.as_deref(), binding, request.namespace()).await {
            Ok(params) => params,
            Err(Problem::Configuration(problem)) => {
                judgement.unusable(policy, Some(binding), &problem);
                continue;
            }
            Err(Problem::Failure(error)) => return Err(error),
        };
        if versioned.is_none() && !params.is_empty() {
            versioned = Some(VersionedRequest::new(policy_request, object, matched).await?);
        }
        let Some(versioned) = &versioned else { continue };
        for params in &params {
            judgement.add(policy, binding, policy.judge(&versioned.input(policy_request, params.as_ref())));
        }
    }
    Ok(())
}

fn answer(
    request: &AdmissionAttributes<'_>,
    object: Option<&Object>,
    judgement: Judgement,
) -> Result<(), Error> {
    judgement.warnings.iter().for_each(|warning| request.warn(warning));
    for (key, value) in judgement.annotations {
        request.annotate(&key, || value);
    }
    let Some(refusal) = judgement.refusal else { return Ok(()) };
    let of = &request.call.resource_type;
    let about = (of.group.as_str(), of.plural.as_str(), request.name_in_messages(object));
    let (group, resource, name) = about;
    Err(Error::denied(group, resource, name, refusal.message, refusal.reason, refusal.code))
}
