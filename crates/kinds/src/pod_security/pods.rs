//! Pods, and what Pods are made from.

use model::Object;
use model::error::FieldError;
use model::object::{items, text, text_in, value};
use serde_json::Value;

use super::checks::{Violations, violations};
use super::configuration::Configuration;
use super::standard::{Level, Standard};

/// Kinds that hold the template of a Pod, by group and plural, with the way to it.
const TEMPLATES: &[(&str, &str, &[&str])] = &[
    ("", "podtemplates", &["template"]),
    ("", "replicationcontrollers", &["spec", "template"]),
    ("apps", "daemonsets", &["spec", "template"]),
    ("apps", "deployments", &["spec", "template"]),
    ("apps", "replicasets", &["spec", "template"]),
    ("apps", "statefulsets", &["spec", "template"]),
    ("batch", "cronjobs", &["spec", "jobTemplate", "spec", "template"]),
    ("batch", "jobs", &["spec", "template"]),
];

/// Parts of a Pod with which nobody changes what it may do.
const HARMLESS_PARTS: [&str; 8] =
    ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

/// What is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Subject {
    /// A namespace.
    Namespace,
    /// A Pod.
    Pod,
    /// Something that Pods are made from, with the way to the template.
    Template(&'static [&'static str]),
}

impl Subject {
    /// What a write of a resource, or of a part of it, is to Pod Security; nothing if it is nothing.
    pub fn of(group: &str, plural: &str, subresource: &str) -> Option<Self> {
        match (group, plural) {
            ("", "namespaces") => subresource.is_empty().then_some(Self::Namespace),
            ("", "pods") => (!HARMLESS_PARTS.contains(&subresource)).then_some(Self::Pod),
            _ if !subresource.is_empty() => None,
            _ => {
                let template = TEMPLATES.iter().find(|(g, p, _)| *g == group && *p == plural);
                template.map(|(_, _, way)| Self::Template(way))
            }
        }
    }
}

/// A write of a Pod or of what Pods are made from.
#[derive(Clone, Copy, Debug)]
pub struct PodRequest<'a> {
    /// What is written.
    pub object: &'a Object,
    /// What it was, if it is updated.
    pub old: Option<&'a Object>,
}

/// What becomes of a Pod.
#[derive(Debug, Default, PartialEq)]
pub struct Verdict {
    /// Why it is refused.
    pub refusal: Option<String>,
    /// What its writer is told.
    pub warnings: Vec<String>,
    /// What is noted, by keys without their prefix.
    pub annotations: Vec<(&'static str, String)>,
}

impl Verdict {
    fn noted(key: &'static str, value: impl Into<String>) -> Self {
        Self { annotations: vec![(key, value.into())], ..Self::default() }
    }
}

/// What can be said without the labels of the namespace, or that they are needed.
#[derive(Debug, PartialEq)]
pub enum Judged {
    /// It is decided.
    Decided(Verdict),
    /// It depends on the namespace.
    ByNamespace,
}

impl Configuration {
    /// Judges by what is known without the namespace.
    pub fn judge_caller(&self, user: &str, namespace: &str) -> Judged {
        if self.exemptions.namespaces.contains(namespace) {
            return Judged::Decided(Verdict::noted("exempt", "namespace"));
        }
        if self.exemptions.users.contains(user) {
            return Judged::Decided(Verdict::noted("exempt", "user"));
        }
        Judged::ByNamespace
    }

    /// Judges a Pod by the labels of its namespace.
    pub fn judge_pod(&self, labels: Option<&Object>, request: &PodRequest<'_>) -> Verdict {
        let (policy, errors) = self.policy(labels);
        if errors.is_empty() && policy.is_privileged() {
            return Verdict::noted("enforce-policy", Standard::PRIVILEGED.to_string());
        }
        if request.old.is_some_and(|old| !is_significant(request.object, old)) {
            return Verdict::default();
        }
        let mut known = Known::default();
        let mut verdict = match self.begun(&errors, request.object) {
            Ok(verdict) => verdict,
            Err(exempt) => return exempt,
        };
        verdict.annotations.push(("enforce-policy", policy.enforce.to_string()));
        verdict.refusal = known
            .broken(policy.enforce, request.object)
            .map(|details| format!("violates PodSecurity \"{}\": {details}", policy.enforce));
        self.told(&mut verdict, &mut known, (policy.audit, policy.warn), request.object);
        verdict
    }

    /// Judges something that Pods are made from by the labels of its namespace: it is never refused.
    pub fn judge_template(&self, labels: Option<&Object>, way: &[&str], object: &Object) -> Verdict {
        let (policy, errors) = self.policy(labels);
        let is_silent =
            [policy.warn, policy.audit].iter().all(|standard| standard.level == Level::Privileged);
        if errors.is_empty() && is_silent {
            return Verdict::default();
        }
        // Only a ReplicationController may have no template at all.
        let Some(Value::Object(template)) = value(object, way) else { return Verdict::default() };
        match self.begun(&errors, template) {
            Ok(mut verdict) => {
                self.told(&mut verdict, &mut Known::default(), (policy.audit, policy.warn), template);
                verdict
            }
            Err(exempt) => exempt,
        }
    }

    /// A verdict with what is noted about labels, unless the class of runtime is exempt.
    fn begun(&self, errors: &[FieldError], pod: &Object) -> Result<Verdict, Verdict> {
        if self.exemptions.runtime_classes.contains(text(pod, &["spec", "runtimeClassName"])) {
            return Err(Verdict::noted("exempt", "runtimeClass"));
        }
        Ok(match errors {
            [] => Verdict::default(),
            _ => Verdict::noted("error", format!("Failed to parse policy: {}", together(errors))),
        })
    }

    fn told(
        &self,
        verdict: &mut Verdict,
        known: &mut Known,
        (audit, warn): (Standard, Standard),
        pod: &Object,
    ) {
        let would = |standard: Standard, details: &str| {
            format!("would violate PodSecurity \"{standard}\": {details}")
        };
        if let Some(details) = known.broken(audit, pod) {
            verdict.annotations.push(("audit-violations", would(audit, details)));
        }
        // Who is refused is not warned, too.
        if verdict.refusal.is_none()
            && let Some(details) = known.broken(warn, pod)
        {
            verdict.warnings.push(would(warn, details));
        }
    }
}

/// What a Pod breaks, computed once for each standard.
#[derive(Default)]
struct Known(Vec<(Standard, Option<String>)>);

impl Known {
    fn broken(&mut self, standard: Standard, pod: &Object) -> Option<&str> {
        let index = match self.0.iter().position(|(known, _)| *known == standard) {
            Some(index) => index,
            None => {
                let broken: Violations = violations(standard, pod);
                self.0.push((standard, (!broken.is_empty()).then(|| broken.details())));
                self.0.len() - 1
            }
        };
        self.0[index].1.as_deref()
    }
}

/// Several errors in one text.
fn together(errors: &[FieldError]) -> String {
    match errors {
        [one] => one.to_string(),
        _ => format!("[{}]", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Whether an update changes anything that Pod Security looks at: images, and the number of containers.
fn is_significant(new: &Object, old: &Object) -> bool {
    let lists_differ = |list: &str| {
        let (new, old) = (items(new, &["spec", list]), items(old, &["spec", list]));
        let image = |container| text_in(container, "image");
        new.len() != old.len() || new.iter().map(image).ne(old.iter().map(image))
    };
    let ephemeral = |object| items(object, &["spec", "ephemeralContainers"]);
    ["containers", "initContainers"].into_iter().any(lists_differ)
        || ephemeral(new).iter().any(|container| {
            let name = text_in(container, "name");
            let before = ephemeral(old).iter().find(|old| text_in(old, "name") == name);
            before.is_none_or(|before| text_in(before, "image") != text_in(container, "image"))
        })
}
