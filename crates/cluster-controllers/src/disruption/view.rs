//! Budgets and their Pods, as far as they matter.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, OwnerReference};
use kube::core::{Selector, SelectorExt};
use serde::{Deserialize, Serialize};

/// A PodDisruptionBudget.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct Budget {
    /// Its metadata.
    #[serde(default)]
    pub metadata: BudgetMetadata,
    /// The desired state.
    #[serde(default)]
    pub spec: BudgetSpec,
    /// How it is.
    #[serde(default)]
    pub status: Status,
}

/// Which state of a budget it is.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetMetadata {
    /// Its revision.
    pub resource_version: String,
    /// How often it was changed.
    pub generation: i64,
}

/// The desired state of a budget.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetSpec {
    /// How many Pods must be there.
    pub min_available: Option<Amount>,
    /// How many may be away.
    pub max_unavailable: Option<Amount>,
    /// Its Pods.
    pub selector: Option<LabelSelector>,
}

/// A number of Pods, or a share of them.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Amount {
    /// So many.
    Number(i32),
    /// For instance `50%`.
    Share(String),
}

/// How a budget is.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// The generation that this is about.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Pods whose eviction was allowed, and when.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub disrupted_pods: BTreeMap<String, Timestamp>,
    /// How many may be taken away now.
    pub disruptions_allowed: i32,
    /// How many are healthy.
    pub current_healthy: i32,
    /// How many must be.
    pub desired_healthy: i32,
    /// How many there should be.
    pub expected_pods: i32,
    /// The observed state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// A Pod.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct Pod {
    /// Its metadata.
    #[serde(default)]
    pub metadata: PodMetadata,
    /// How it is.
    #[serde(default)]
    pub status: PodStatus,
}

/// Where a Pod is, and whose it is.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMetadata {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// When its deletion began.
    pub deletion_timestamp: Option<Timestamp>,
    /// Its owners.
    pub owner_references: Vec<OwnerReference>,
}

/// How a Pod is.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct PodStatus {
    /// The observed state.
    pub conditions: Vec<PodCondition>,
}

/// Something that is known of a Pod.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct PodCondition {
    /// For instance `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
}

impl Budget {
    /// Whether a Pod with these labels is one of its own: of all where the selector is empty, of none without one.
    pub fn fits(&self, labels: &BTreeMap<String, String>) -> bool {
        let selector = self.spec.selector.clone().map(Selector::try_from);
        selector.is_some_and(|selector| selector.is_ok_and(|selector| selector.matches(labels)))
    }
}

impl Pod {
    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        self.status.conditions.iter().any(|condition| condition.kind == "Ready" && condition.status == "True")
    }

    /// Whether its deletion has begun.
    pub fn is_ending(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Its controller.
    pub fn owner(&self) -> Option<&OwnerReference> {
        self.metadata.owner_references.iter().find(|owner| owner.controller == Some(true))
    }
}
