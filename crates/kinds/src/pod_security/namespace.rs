//! Validation of a namespace's Pod Security labels.

use std::collections::{BTreeMap, BTreeSet};

use model::Object;
use model::error::{FieldError, quote};
use model::object::{is_true, maps, text, value};

use super::checks::violations;
use super::configuration::Configuration;
use super::standard::{Level, Policy, Standard, label};

/// The most existing Pods that are checked when a namespace becomes stricter.
const PODS_MAX: usize = 3_000;

/// The decision about a namespace.
#[derive(Debug, PartialEq)]
pub enum NamespaceVerdict {
    /// Its labels are invalid.
    Invalid(Vec<FieldError>),
    /// It is allowed.
    Fine,
    /// It is allowed with a warning: its labels have no effect.
    Ignored(String),
    /// It is allowed; the caller warns about existing Pods that violate this standard: [`ExistingPods`].
    CheckPods(Standard),
}

/// The labels of a namespace.
pub(super) fn labels(namespace: &Object) -> Option<&Object> {
    value(namespace, &["metadata", "labels"])?.as_object()
}

impl Configuration {
    /// The policy of a namespace with these labels, and the errors of the labels.
    pub fn policy(&self, labels: Option<&Object>) -> (Policy, Vec<FieldError>) {
        Policy::of_labels(labels, &self.defaults)
    }

    /// Validates a namespace that is created, or updated from `old`.
    pub fn judge_namespace(&self, new: &Object, old: Option<&Object>) -> NamespaceVerdict {
        let (policy, errors) = self.policy(labels(new));
        let Some(old) = old else {
            return if errors.is_empty() {
                NamespaceVerdict::Fine
            } else {
                NamespaceVerdict::Invalid(errors)
            };
        };
        let (old_policy, old_errors) = self.policy(labels(old));
        if !errors.is_empty() && errors != old_errors {
            return NamespaceVerdict::Invalid(errors);
        }
        let (enforce, before) = (policy.enforce, old_policy.enforce);
        let is_relaxed = enforce.version == before.version && enforce.level <= before.level;
        if enforce.level == Level::Privileged || is_relaxed {
            return NamespaceVerdict::Fine;
        }
        let name = text(new, &["metadata", "name"]);
        if self.exemptions.namespaces.contains(name) {
            let warning = self.ignored(name, &policy, labels(new));
            return warning.map_or(NamespaceVerdict::Fine, NamespaceVerdict::Ignored);
        }
        NamespaceVerdict::CheckPods(enforce)
    }

    /// The warning that the labels of an exempt namespace have no effect, if they restrict anything.
    fn ignored(&self, name: &str, policy: &Policy, labels: Option<&Object>) -> Option<String> {
        if policy.is_privileged() || *policy == self.defaults {
            return None;
        }
        let is_set = |mode: &str| {
            let has = |name: String| labels.is_some_and(|labels| labels.contains_key(&name));
            has(label(mode)) || has(label(&format!("{mode}-version")))
        };
        let modes = [("enforce", policy.enforce), ("audit", policy.audit), ("warn", policy.warn)];
        let asked =
            modes.into_iter().filter(|(mode, asked)| asked.level != Level::Privileged && is_set(mode));
        let asked: Vec<String> = asked.map(|(mode, standard)| format!("{mode}={standard}")).collect();
        Some(format!(
            "namespace {} is exempt from Pod Security, and the policy ({}) will be ignored",
            quote(name),
            asked.join(", ")
        ))
    }

    /// Starts a check of existing Pods, which the caller adds in the order of their names.
    pub fn existing_pods(&self) -> ExistingPods<'_> {
        ExistingPods {
            exempt: &self.exemptions.runtime_classes,
            controllers: BTreeSet::new(),
            first: Vec::new(),
            others: Vec::new(),
            total: 0,
        }
    }
}

/// The Pods of a namespace that becomes stricter. Keeps at most as many as are checked; one Pod of each controller is
/// checked before the others.
pub struct ExistingPods<'c> {
    exempt: &'c BTreeSet<String>,
    controllers: BTreeSet<String>,
    first: Vec<Object>,
    others: Vec<Object>,
    total: usize,
}

impl ExistingPods<'_> {
    /// Adds the next Pod.
    pub fn add(&mut self, pod: Object) {
        if self.exempt.contains(text(&pod, &["spec", "runtimeClassName"])) {
            return;
        }
        self.total += 1;
        let controller = maps(&pod, &["metadata", "ownerReferences"])
            .find(|(_, owner)| is_true(owner, &["controller"]))
            .map(|(_, owner)| text(owner, &["uid"]).to_owned());
        let is_known = controller.is_some_and(|uid| !self.controllers.insert(uid));
        let kept = if is_known { &mut self.others } else { &mut self.first };
        if kept.len() < PODS_MAX {
            kept.push(pod);
        }
    }

    /// The warnings about Pods that violate the new level.
    pub fn warnings(&self, namespace: &str, enforce: Standard) -> Vec<String> {
        let mut found: BTreeMap<String, (&str, usize)> = BTreeMap::new();
        for pod in self.first.iter().chain(&self.others).take(PODS_MAX) {
            let broken = violations(enforce, pod);
            if broken.is_empty() {
                continue;
            }
            let name = text(pod, &["metadata", "name"]);
            let entry = found.entry(broken.reasons()).or_insert((name, 0));
            entry.0 = entry.0.min(name);
            entry.1 += 1;
        }
        let mut warnings = Vec::new();
        if self.total > PODS_MAX {
            warnings.push(format!(
                "new PodSecurity enforce level only checked against the first {PODS_MAX} of {} existing pods",
                self.total
            ));
        }
        if !found.is_empty() {
            warnings.push(format!(
                "existing pods in namespace {} violate the new PodSecurity enforce level \"{enforce}\"",
                quote(namespace)
            ));
        }
        let lines = found.into_iter().map(|(reasons, (name, count))| match count {
            1 => format!("{name}: {reasons}"),
            2 => format!("{name} (and 1 other pod): {reasons}"),
            _ => format!("{name} (and {} other pods): {reasons}", count - 1),
        });
        let mut lines: Vec<String> = lines.collect();
        lines.sort_unstable();
        warnings.extend(lines);
        warnings
    }
}
