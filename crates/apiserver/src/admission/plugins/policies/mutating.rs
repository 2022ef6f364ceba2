//! `MutatingAdmissionPolicy`: policies change what will be written.

use std::sync::Arc;

use kinds::apply::merge_configuration;
use kinds::policies::{Binding, Matched, MutatingPolicy, MutationResult, apply_operations};
use model::error::{Denied, Error};
use serde_json::Value;

use super::asking::{Facts, target};
use super::params::{self, Problem};
use super::seen::{Seen, is_about};
use super::{Followed, is_judged, selects_namespace, view};
use crate::admission::follow::Follows;
use crate::admission::{Operation, Phases, Plugin, Request, Step, Target};
use crate::registry::{Object, Served};

pub(in super::super) struct MutatingAdmissionPolicy(Followed<MutatingPolicy>);

impl MutatingAdmissionPolicy {
    pub fn new() -> Self {
        Self(Followed::new("mutatingadmissionpolicies", "mutatingadmissionpolicybindings", |_, object| {
            Some(MutatingPolicy::compile(&object))
        }))
    }

    pub fn follows(&self) -> [Arc<dyn Follows>; 2] {
        self.0.follows()
    }
}

/// A policy that is about a request, with its bindings and the way in which it is about it.
type About = (Arc<MutatingPolicy>, Vec<Arc<Binding>>, Matched);

impl Plugin for MutatingAdmissionPolicy {
    fn handles(&self, target: Target<'_>) -> Phases {
        Phases::mutating(is_judged(target) && target.operation != Operation::Delete)
    }

    fn connects(&self) -> bool {
        true
    }

    fn admit<'a>(&'a self, request: &'a Request<'_>, object: Option<&'a mut Object>) -> Step<'a> {
        let Some(object) = object else { return Step::OK };
        let Some(bound) = self.0.bound().filter(|bound| !bound.all.is_empty()) else { return Step::OK };
        let equivalents = view::equivalents(request);
        let named: Vec<_> = equivalents.iter().map(|of| view::named(of)).collect();
        let of_request = target(request, &named);
        let is_again = request.is_again();
        let about = bound.all.iter().filter_map(|(policy, bindings)| {
            let matched = policy.criteria.rules(&of_request);
            let is_asked = matched != Matched::No
                && (policy.is_reinvoked || !is_again)
                && policy.criteria.selects_object(Some(object), request.old);
            is_asked.then(|| (policy.clone(), bindings.clone(), matched))
        });
        let about: Vec<About> = about.collect();
        if about.is_empty() {
            return Step::OK;
        }
        drop(named);
        Step::later(async move {
            let facts = Facts::new(request, equivalents);
            let mut changing = Changing { facts: &facts, object, refusals: Vec::new(), is_changed: false };
            for about in &about {
                changing.policy(about).await?;
            }
            if changing.is_changed {
                request.note_change();
            }
            changing.answer()
        })
    }
}

/// Why a policy refuses a request.
struct Refused {
    message: String,
    reason: &'static str,
}

/// A request that policies change one after the other.
struct Changing<'c, 'r, 'a> {
    facts: &'c Facts<'r, 'a>,
    object: &'c mut Object,
    refusals: Vec<Refused>,
    is_changed: bool,
}

impl Changing<'_, '_, '_> {
    async fn policy(&mut self, (policy, bindings, matched): &About) -> Result<(), Error> {
        let facts = self.facts;
        let (request, api) = (facts.request, &facts.request.call.api);
        if !selects_namespace(&policy.criteria, facts, Some(self.object)).await {
            return Ok(());
        }
        let kind = match policy.param_kind.as_ref().map(|kind| params::kind_of(api, kind)).transpose() {
            Ok(kind) => kind,
            Err(problem) => {
                self.unusable(policy, None, &problem);
                return Ok(());
            }
        };
        for binding in bindings {
            if !is_about(binding, facts, Some(self.object)).await {
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

    /// Makes the changes of a policy with parameters.
    async fn change(
        &mut self,
        policy: &MutatingPolicy,
        binding: &Binding,
        matched: Matched,
        params: Option<&Object>,
    ) -> Result<(), Error> {
        let facts = self.facts;
        let mut seen = Seen::new(facts, Some(self.object), matched).await?;
        match policy.is_about(&seen.input(facts, params)) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(problem) => {
                self.refuse(policy, Some(binding), problem, "Invalid");
                return Ok(());
            }
        }
        let (resource, before) = (&facts.request.call.resource_type, seen.object.clone());
        for index in 0..policy.changes() {
            let changed = policy.change(index, &seen.input(facts, params));
            let live = seen.object.as_ref().expect("nothing is changed where nothing is written");
            match changed.and_then(|change| applied(resource, seen.of, live, change)) {
                Ok(Some(changed)) => seen.object = Some(completed(seen.of, changed)?),
                Ok(None) => {}
                Err(problem) => self.refuse(policy, Some(binding), problem, "Invalid"),
            }
        }
        if seen.object != before
            && let Some(changed) = seen.object
        {
            self.is_changed = true;
            *self.object = view::back(seen.of, facts.request.shown, changed, self.object).await?;
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
        self.refusals.push(Refused { message, reason });
    }

    fn answer(self) -> Result<(), Error> {
        let request = self.facts.request;
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

/// What a change makes of an object; nothing if it stays as it is.
fn applied(
    resource: &Served,
    of: &Served,
    live: &Object,
    change: MutationResult,
) -> Result<Option<Object>, String> {
    // A part whose type is of another group, such as a Scale: Kubernetes does not find the type.
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
            let merged = merge_configuration(of.strategy.parts(), &live, &config);
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

/// A changed object in the shape of its type, with what is left open filled in.
fn completed(of: &Served, mut object: Object) -> Result<Object, Error> {
    of.strategy.decode(&mut object).map_err(Error::internal)?;
    of.strategy.default(&mut object);
    Ok(object)
}
