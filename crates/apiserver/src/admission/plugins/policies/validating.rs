//! `ValidatingAdmissionPolicy`: policies judge what will be written.

use std::sync::Arc;

use kinds::policies::{Binding, Judgement, Matched, ValidatingPolicy};
use model::error::Error;

use super::asking::{Facts, target};
use super::params::{self, Problem};
use super::seen::{Seen, is_about};
use super::{Followed, is_judged, selects_namespace, view};
use crate::admission::follow::Follows;
use crate::admission::{Phases, Plugin, Request, Step, Target};
use crate::registry::Object;

pub(in super::super) struct ValidatingAdmissionPolicy(Followed<ValidatingPolicy>);

impl ValidatingAdmissionPolicy {
    pub fn new() -> Self {
        Self(Followed::new(
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            |_, object| Some(ValidatingPolicy::compile(&object)),
        ))
    }

    pub fn follows(&self) -> [Arc<dyn Follows>; 2] {
        self.0.follows()
    }
}

impl Plugin for ValidatingAdmissionPolicy {
    fn handles(&self, target: Target<'_>) -> Phases {
        Phases::validating(is_judged(target))
    }

    fn connects(&self) -> bool {
        true
    }

    fn validate<'a>(&'a self, request: &'a Request<'_>, object: Option<&'a Object>) -> Step<'a> {
        let Some(bound) = self.0.bound().filter(|bound| !bound.all.is_empty()) else { return Step::OK };
        let equivalents = view::equivalents(request);
        let named: Vec<_> = equivalents.iter().map(|of| view::named(of)).collect();
        let of_request = target(request, &named);
        let about = bound.all.iter().filter_map(|(policy, bindings)| {
            let matched = policy.criteria.rules(&of_request);
            let is_asked = matched != Matched::No && policy.criteria.selects_object(object, request.old);
            is_asked.then(|| (policy.clone(), bindings.clone(), matched))
        });
        let about: Vec<_> = about.collect();
        if about.is_empty() {
            return Step::OK;
        }
        drop(named);
        Step::later(async move {
            let facts = Facts::new(request, equivalents);
            let mut judgement = Judgement::default();
            for (policy, bindings, matched) in &about {
                judge(&facts, object, (policy, bindings, *matched), &mut judgement).await?;
            }
            answer(request, object, judgement.finish())
        })
    }
}

/// Adds what a policy that is about a request says of it.
async fn judge(
    facts: &Facts<'_, '_>,
    object: Option<&Object>,
    (policy, bindings, matched): (&ValidatingPolicy, &[Arc<Binding>], Matched),
    judgement: &mut Judgement,
) -> Result<(), Error> {
    let (request, api) = (facts.request, &facts.request.call.api);
    if !selects_namespace(&policy.criteria, facts, object).await {
        return Ok(());
    }
    let kind = match policy.param_kind.as_ref().map(|kind| params::kind_of(api, kind)).transpose() {
        Ok(kind) => kind,
        Err(problem) => {
            judgement.unusable(policy, None, &problem);
            return Ok(());
        }
    };
    let mut seen = None;
    for binding in bindings {
        if !is_about(binding, facts, object).await {
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
        if seen.is_none() && !params.is_empty() {
            seen = Some(Seen::new(facts, object, matched).await?);
        }
        let Some(seen) = &seen else { continue };
        for params in &params {
            judgement.add(policy, binding, policy.judge(&seen.input(facts, params.as_ref())));
        }
    }
    Ok(())
}

fn answer(request: &Request<'_>, object: Option<&Object>, judgement: Judgement) -> Result<(), Error> {
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
