//! The next step of a namespace deletion, and the conditions that report remaining objects.

use std::collections::BTreeMap;
use std::time::Duration;

use controller::conditions::{self, StatusCondition};
use kube::api::ApiResource;
use serde::{Deserialize, Serialize};

/// The time for finalizers before the next pass, if nothing changes earlier.
const FINALIZER_SECONDS: i64 = 15;

/// The fields of a remaining object that this controller reads.
#[derive(Debug, Deserialize)]
pub(super) struct RemainingObject {
    pub(super) metadata: LeftMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LeftMetadata {
    pub(super) finalizers: Vec<String>,
    pub(super) deletion_timestamp: Option<String>,
}

/// The remaining objects of one type.
#[derive(Debug, Default)]
pub(super) struct RemainingObjects {
    pub(super) count: usize,
    pub(super) finalizers: BTreeMap<String, usize>,
}

impl RemainingObjects {
    pub(super) fn add(&mut self, finalizers: &[String]) {
        self.count += 1;
        for finalizer in finalizers {
            *self.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }
}

/// The deletion of the objects of one type.
#[derive(Debug)]
pub(super) struct Sweep {
    pub(super) resource: ApiResource,
    pub(super) found: RemainingObjects,
    /// Estimated seconds until its objects are gone.
    pub(super) estimate: i64,
    pub(super) error: Option<String>,
}

impl Sweep {
    /// `estimate` is the time of graceful deletions.
    pub(super) fn of(namespace: &str, resource: ApiResource, found: RemainingObjects, estimate: i64) -> Self {
        let (estimate, error) = if found.count == 0 {
            (0, None)
        } else if estimate != 0 {
            (estimate, None)
        } else if !found.finalizers.is_empty() {
            (FINALIZER_SECONDS, None)
        } else {
            let ApiResource { group, version, plural, .. } = &resource;
            let of = format!("{group}/{version}, Resource={plural}");
            (0, Some(format!("unexpected items still remain in namespace: {namespace} for gvr: {of}")))
        };
        Self { resource, found, estimate, error }
    }

    pub(super) fn failed(resource: ApiResource, error: String) -> Self {
        Self { resource, found: RemainingObjects::default(), estimate: 0, error: Some(error) }
    }
}

/// The result of a pass over a namespace.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Groups whose discovery failed, with the reasons.
    pub(super) unknown: BTreeMap<String, String>,
    pub(super) sweeps: Vec<Sweep>,
    /// Whether other types wait until all Pods are gone.
    pub(super) are_pods_left: bool,
}

/// The next step of a namespace deletion.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DeletionStep {
    /// It is empty: remove the finalizer.
    Finalize,
    /// Objects remain that other controllers must finalize.
    Wait(Duration),
    /// A request failed.
    Retry(String),
}

impl Findings {
    pub(super) fn step(&self) -> DeletionStep {
        let errors: Vec<String> = self.unknown_text().into_iter().chain(self.errors()).collect();
        if !errors.is_empty() {
            return DeletionStep::Retry(errors.join(", "));
        }
        match self.sweeps.iter().map(|sweep| sweep.estimate).max().unwrap_or(0) {
            0 => DeletionStep::Finalize,
            seconds => DeletionStep::Wait(Duration::from_secs(u64::try_from(seconds / 2 + 1).unwrap_or(1))),
        }
    }

    fn errors(&self) -> impl Iterator<Item = String> {
        self.sweeps.iter().filter_map(|sweep| sweep.error.clone())
    }

    fn unknown_text(&self) -> Option<String> {
        if self.unknown.is_empty() {
            return None;
        }
        let reasons: Vec<String> =
            self.unknown.iter().map(|(group, reason)| format!("{group}: {reason}")).collect();
        Some(format!("unable to retrieve the complete list of server APIs: {}", reasons.join(", ")))
    }

    /// Reason and message of a condition that is true; `None` if it is false.
    fn trouble(&self, condition: &str) -> Option<(&'static str, String)> {
        let is_counted = !self.are_pods_left;
        match condition {
            "NamespaceDeletionDiscoveryFailure" => {
                let (groups, text) = (self.unknown.len(), self.unknown_text()?);
                let message = format!("Discovery failed for some groups, {groups} failing: {text}");
                Some(("DiscoveryFailed", message))
            }
            "NamespaceDeletionContentFailure" => {
                let mut errors: Vec<String> = self.errors().collect();
                errors.sort();
                let count = errors.len();
                let message =
                    format!("Failed to delete all resource types, {count} remaining: {}", errors.join(", "));
                (count > 0).then_some(("ContentDeletionFailed", message))
            }
            "NamespaceContentRemaining" if is_counted => {
                let left = self.sweeps.iter().filter(|sweep| sweep.found.count > 0);
                let texts =
                    left.map(|Sweep { resource: ApiResource { plural, group, .. }, found, .. }| {
                        format!("{plural}.{group} has {} resource instances", found.count)
                    });
                sorted(texts)
                    .map(|text| ("SomeResourcesRemain", format!("Some resources are remaining: {text}")))
            }
            "NamespaceFinalizersRemaining" if is_counted => {
                let mut counts = BTreeMap::<&str, usize>::new();
                for (finalizer, count) in self.sweeps.iter().flat_map(|sweep| &sweep.found.finalizers) {
                    *counts.entry(finalizer).or_default() += count;
                }
                let texts = counts
                    .iter()
                    .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"));
                sorted(texts).map(|text| {
                    let message = format!("Some content in the namespace has finalizers remaining: {text}");
                    ("SomeFinalizersRemain", message)
                })
            }
            _ => None,
        }
    }
}

fn sorted(texts: impl Iterator<Item = String>) -> Option<String> {
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// A condition of a namespace.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) name: String,
    pub(super) status: String,
    pub(super) last_transition_time: Option<String>,
    pub(super) reason: String,
    pub(super) message: String,
}

impl StatusCondition for Condition {
    fn type_name(&self) -> &str {
        &self.name
    }

    fn status(&self) -> &str {
        &self.status
    }

    fn keep_transition_time(&mut self, old: &Self) {
        self.last_transition_time = old.last_transition_time.clone();
    }
}

/// Reason and message of each condition that is false.
const WELL: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

/// The new conditions; `None` if they are unchanged.
pub(super) fn conditions(old: &[Condition], findings: &Findings, now: &str) -> Option<Vec<Condition>> {
    let mut new = old.to_vec();
    for (name, reason, message) in WELL {
        let (status, reason, message) = match findings.trouble(name) {
            Some((reason, message)) => ("True", reason, message),
            None => ("False", reason, message.to_owned()),
        };
        let made = Condition {
            name: name.to_owned(),
            status: status.to_owned(),
            last_transition_time: Some(now.to_owned()),
            reason: reason.to_owned(),
            message,
        };
        conditions::set(&mut new, made);
    }
    (new != old).then_some(new)
}
