//! Validation of Pods and of Pod templates.

use model::Object;
use model::error::FieldError;
use model::object::{items, text, text_in, value};
use serde_json::Value;

use super::checks::{Violations, violations};
use super::configuration::Configuration;
use super::standard::{Level, Policy, Standard};

/// Kinds with a Pod template, by group and plural, with the path of the template.
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

/// Subresources that cannot change the privileges of a Pod.
const HARMLESS_SUBRESOURCES: [&str; 8] =
    ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

/// The kinds of objects that Pod Security validates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Subject {
    /// A namespace.
    Namespace,
    /// A Pod.
    Pod,
    /// A kind with a Pod template, and the path of the template.
    Template(&'static [&'static str]),
}

impl Subject {
    /// The subject of a write of a resource or subresource; `None` if Pod Security ignores it.
    pub fn of(group: &str, plural: &str, subresource: &str) -> Option<Self> {
        match (group, plural) {
            ("", "namespaces") => subresource.is_empty().then_some(Self::Namespace),
            ("", "pods") => (!HARMLESS_SUBRESOURCES.contains(&subresource)).then_some(Self::Pod),
            _ if !subresource.is_empty() => None,
            _ => {
                let template = TEMPLATES.iter().find(|(g, p, _)| *g == group && *p == plural);
                template.map(|(_, _, way)| Self::Template(way))
            }
        }
    }
}

/// A write of a Pod or of a kind with a Pod template.
#[derive(Clone, Copy, Debug)]
pub struct PodRequest<'a> {
    /// The new object.
    pub object: &'a Object,
    /// The old object of an update.
    pub old: Option<&'a Object>,
}

/// The decision about a Pod.
#[derive(Debug, Default, PartialEq)]
pub struct Verdict {
    /// The reason of a refusal.
    pub refusal: Option<String>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Audit annotations, by keys without their prefix.
    pub annotations: Vec<(&'static str, String)>,
}

impl Verdict {
    fn noted(key: &'static str, value: impl Into<String>) -> Self {
        Self { annotations: vec![(key, value.into())], ..Self::default() }
    }
}

/// A decision that needs no labels of the namespace, or the fact that they are needed.
#[derive(Debug, PartialEq)]
pub enum Judged {
    /// Decided without the namespace.
    Decided(Verdict),
    /// Depends on the labels of the namespace.
    ByNamespace,
}

impl Configuration {
    /// Decides by the exemptions of user and namespace.
    pub fn judge_caller(&self, user: &str, namespace: &str) -> Judged {
        if self.exemptions.namespaces.contains(namespace) {
            return Judged::Decided(Verdict::noted("exempt", "namespace"));
        }
        if self.exemptions.users.contains(user) {
            return Judged::Decided(Verdict::noted("exempt", "user"));
        }
        Judged::ByNamespace
    }

    /// Validates a Pod by the labels of its namespace.
    pub fn judge_pod(&self, labels: Option<&Object>, request: &PodRequest<'_>) -> Verdict {
        let (policy, errors) = self.policy(labels);
        if errors.is_empty() && policy.is_privileged() {
            return Verdict::noted("enforce-policy", Standard::PRIVILEGED.to_string());
        }
        if request.old.is_some_and(|old| !is_significant(request.object, old)) {
            return Verdict::default();
        }
        let mut known = CachedViolations::default();
        let mut verdict = match self.initial_verdict(&errors, request.object) {
            Ok(verdict) => verdict,
            Err(exempt) => return exempt,
        };
        verdict.annotations.push(("enforce-policy", policy.enforce.to_string()));
        verdict.refusal = known
            .broken(policy.enforce, request.object)
            .map(|details| format!("violates PodSecurity \"{}\": {details}", policy.enforce));
        self.report_violations(&mut verdict, &mut known, &policy, request.object);
        verdict
    }

    /// Validates a Pod template by the labels of its namespace: it gets warnings, but is never refused.
    pub fn judge_template(&self, labels: Option<&Object>, way: &[&str], object: &Object) -> Verdict {
        let (policy, errors) = self.policy(labels);
        let is_silent =
            [policy.warn, policy.audit].iter().all(|standard| standard.level == Level::Privileged);
        if errors.is_empty() && is_silent {
            return Verdict::default();
        }
        // Only a ReplicationController may lack a template.
        let Some(Value::Object(template)) = value(object, way) else { return Verdict::default() };
        match self.initial_verdict(&errors, template) {
            Ok(mut verdict) => {
                self.report_violations(&mut verdict, &mut CachedViolations::default(), &policy, template);
                verdict
            }
            Err(exempt) => exempt,
        }
    }

    /// A verdict with the audit annotation about invalid labels, or an exempt one by runtime class.
    fn initial_verdict(&self, errors: &[FieldError], pod: &Object) -> Result<Verdict, Verdict> {
        if self.exemptions.runtime_classes.contains(text(pod, &["spec", "runtimeClassName"])) {
            return Err(Verdict::noted("exempt", "runtimeClass"));
        }
        Ok(match errors {
            [] => Verdict::default(),
            _ => Verdict::noted("error", format!("Failed to parse policy: {}", joined_errors(errors))),
        })
    }

    /// Adds the audit annotation and the warning about violations.
    fn report_violations(
        &self,
        verdict: &mut Verdict,
        known: &mut CachedViolations,
        policy: &Policy,
        pod: &Object,
    ) {
        let Policy { audit, warn, .. } = *policy;
        let would = |standard: Standard, details: &str| {
            format!("would violate PodSecurity \"{standard}\": {details}")
        };
        if let Some(details) = known.broken(audit, pod) {
            verdict.annotations.push(("audit-violations", would(audit, details)));
        }
        // A refused request gets no warnings in addition.
        if verdict.refusal.is_none()
            && let Some(details) = known.broken(warn, pod)
        {
            verdict.warnings.push(would(warn, details));
        }
    }
}

/// The violations of a Pod, computed once per standard.
#[derive(Default)]
struct CachedViolations(Vec<(Standard, Option<String>)>);

impl CachedViolations {
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

/// Joins several errors into one message.
fn joined_errors(errors: &[FieldError]) -> String {
    match errors {
        [one] => one.to_string(),
        _ => format!("[{}]", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Whether an update changes fields that Pod Security checks: images and the number of containers.
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
