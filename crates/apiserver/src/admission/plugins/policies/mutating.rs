//! `MutatingAdmissionPolicy`: policies change the object.

use std::sync::Arc;

use kinds::apply::merge_configuration;
use kinds::policies::{Binding, Matched, MutatingPolicy, MutationResult, apply_operations};
use model::error::{Denied, Error};
use serde_json::Value;

use super::params::{self, Problem};
use super::policy_request::{PolicyRequest, target};
use super::versioned_request::{VersionedRequest, is_about};
use super::{PolicyInformers, equivalents, is_judged, selects_namespace};
use crate::admission::informers::PluginInformer;
use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::{Object, Served};

pub(in super::super) struct MutatingAdmissionPolicy(PolicyInformers<MutatingPolicy>);

impl MutatingAdmissionPolicy {
    pub fn new() -> Self {
        Self(PolicyInformers::new(
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            |_, object| Some(MutatingPolicy::compile(&object)),
        ))
    }

    pub fn informers(&self) -> [Arc<dyn PluginInformer>; 2] {
        self.0.informers()
    }
}

/// A policy that matches a request, its bindings, and the type that it matched.
struct MatchedPolicy {
    policy: Arc<MutatingPolicy>,
    bindings: Vec<Arc<Binding>>,
    matched: Matched,
}

impl Plugin for MutatingAdmissionPolicy {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        Phases::mutating(is_judged(target) && target.operation != Operation::Delete)
    }

    fn connects(&self) -> bool {
        true
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        let Some(object) = object else { return PluginResult::OK };
        let Some(bound) = self.0.bound().filter(|bound| !bound.all.is_empty()) else {
            return PluginResult::OK;
        };
        let equivalents = equivalents::equivalents(request);
        let named: Vec<_> = equivalents.iter().map(|of| equivalents::matched_resource(of)).collect();
        let of_request = target(request, &named);
        let is_again = request.is_again();
        let matching = bound.all.iter().filter_map(|(policy, bindings)| {
            let matched = policy.criteria.rules(&of_request);
            let is_asked = matched != Matched::No
                && (policy.is_reinvoked || !is_again)
                && policy.criteria.selects_object(Some(object), request.old);
            is_asked.then(|| MatchedPolicy { policy: policy.clone(), bindings: bindings.clone(), matched })
        });
        let matching: Vec<MatchedPolicy> = matching.collect();
        if matching.is_empty() {
            return PluginResult::OK;
        }
        drop(named);
        PluginResult::later(async move {
            let policy_request = PolicyRequest::new(request, equivalents);
            let mut changing =
                Changing { policy_request: &policy_request, object, refusals: Vec::new(), is_changed: false };
            for policy in &matching {
                changing.policy(policy).await?;
            }
            if changing.is_changed {
                request.note_change();
            }
            changing.answer()
        })
    }
}

/// The refusal of a policy.
struct PolicyRefusal {
    message: String,
    reason: &'static str,
}

/// A request while policies change its object one after the other.
struct Changing<'c, 'r, 'a> {
    policy_request: &'c PolicyRequest<'r, 'a>,
    object: &'c mut Object,
    refusals: Vec<PolicyRefusal>,
    is_changed: bool,
}

impl Changing<'_, '_, '_> {
    async fn policy(
        &mut self,
        MatchedPolicy { policy, bindings, matched }: &MatchedPolicy,
    ) -> Result<(), Error> {
        let policy_request = self.policy_request;
        let (request, api) = (policy_request.request, &policy_request.request.call.api);
        if !selects_namespace(&policy.criteria, policy_request, Some(self.object)).await {
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
                self.unusable(policy, None, &problem);
                return Ok(());
            }
        };
        for binding in bindings {
            if !is_about(binding, policy_request, Some(self.object)).await {
                continue;
            }
            let params = match params::of_binding(api, kind.as_deref(), binding, request.namespace()).await {
                Ok(params) => params,
                Err(Problem::Configuration(problem)) => {
                    self.unusable(policy, Some(binding), &problem);
                    continue;
                }
                Err(Problem::Failure(error)) => return Err(error),
            };
            for params in &params {
                self.change(policy, binding, *matched, params.as_ref()).await?;
            }
        }
        Ok(())
    }

    /// Applies the mutations of a policy with one set of parameters.
    async fn change(
        &mut self,
        policy: &MutatingPolicy,
        binding: &Binding,
        matched: Matched,
        params: Option<&Object>,
    ) -> Result<(), Error> {
        let policy_request = self.policy_request;
        let mut versioned = VersionedRequest::new(policy_request, Some(self.object), matched).await?;
        match policy.is_about(&versioned.input(policy_request, params)) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(problem) => {
                self.refuse(policy, Some(binding), problem, "Invalid");
                return Ok(());
            }
        }
        let (resource, before) = (&policy_request.request.call.resource_type, versioned.object.clone());
        for index in 0..policy.changes() {
            let changed = policy.change(index, &versioned.input(policy_request, params));
            let live = versioned.object.as_ref().expect("nothing is changed where nothing is written");
            match changed.and_then(|change| applied(resource, versioned.of, live, change)) {
                Ok(Some(changed)) => versioned.object = Some(completed(versioned.of, changed)?),
                Ok(None) => {}
                Err(problem) => self.refuse(policy, Some(binding), problem, "Invalid"),
            }
        }
        if versioned.object != before
            && let Some(changed) = versioned.object
        {
            self.is_changed = true;
            *self.object = equivalents::from_equivalent(
                versioned.of,
                policy_request.request.shown,
                changed,
                self.object,
            )
            .await?;
        }
        Ok(())
    }

    fn unusable(&mut self, policy: &MutatingPolicy, binding: Option<&Binding>, problem: &str) {
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.refuse(policy, binding, format!("failed to configure {what}: {problem}"), "Forbidden");
    }

    fn refuse(
        &mut self,
        policy: &MutatingPolicy,
        binding: Option<&Binding>,
        problem: String,
        reason: &'static str,
    ) {
        if policy.ignores_failures {
            return;
        }
        let message = match binding {
            Some(binding) => {
                format!("policy '{}' with binding '{}' denied request: {problem}", policy.name, binding.name)
            }
            None => format!("policy \"{}\" denied request: {problem}", policy.name),
        };
        self.refusals.push(PolicyRefusal { message, reason });
    }

    fn answer(self) -> Result<(), Error> {
        let request = self.policy_request.request;
        let Some(first) = self.refusals.first() else { return Ok(()) };
        let of = &request.call.resource_type;
        Err(Error::Denied(Box::new(Denied {
            group: of.group.clone(),
            resource: of.plural.clone(),
            name: request.name_in_messages(Some(self.object)).to_owned(),
            message: first.message.clone(),
            reason: first.reason,
            code: 403,
            causes: self.refusals.iter().map(|refused| refused.message.clone()).collect(),
        })))
    }
}

/// Applies one mutation; `None` if the object stays as it is.
fn applied(
    resource: &Served,
    of: &Served,
    live: &Object,
    change: MutationResult,
) -> Result<Option<Object>, String> {
    // Kubernetes does not find the type of a subresource of another group, such as Scale.
    let is_foreign = of.group != resource.group;
    match change {
        MutationResult::Configuration(_) if is_foreign => Err(format!(
            "error applying patch: failed to convert patch object to typed object: no corresponding type for {}, Kind={}",
            of.api_version(),
            of.kind
        )),
        MutationResult::Operations(_) if is_foreign && resource.custom.is_some() => {
            Err(format!("request to convert CR to an invalid group/version: {}", of.api_version()))
        }
        MutationResult::Configuration(mut config) => {
            let mut live = live.clone();
            let named: Vec<_> = ["apiVersion", "kind"].map(|key| (key, live.remove(key))).into();
            named.iter().for_each(|(key, _)| drop(config.remove(*key)));
            let merged = merge_configuration(of.strategy.field_ownership(), &live, &config);
            let mut merged = merged.map_err(|problem| format!("error applying patch: {problem}"))?;
            for (key, value) in named {
                merged.extend(value.map(|value| (key.to_owned(), value)));
            }
            Ok(Some(merged))
        }
        MutationResult::Operations(operations) => {
            let patched = apply_operations(&Value::Object(live.clone()), &operations)?;
            match patched {
                Some(Value::Object(object)) => Ok(Some(object)),
                Some(_) => Err("JSON Patch: the object is none any more".to_owned()),
                None => Ok(None),
            }
        }
    }
}

/// Decodes and defaults a changed object.
fn completed(of: &Served, mut object: Object) -> Result<Object, Error> {
    of.strategy.decode(&mut object).map_err(Error::internal)?;
    of.strategy.default(&mut object);
    Ok(object)
}
