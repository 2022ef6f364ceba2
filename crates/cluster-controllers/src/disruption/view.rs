//! Views of PodDisruptionBudgets and Pods.

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
    /// The spec.
    #[serde(default)]
    pub spec: BudgetSpec,
    /// The status.
    #[serde(default)]
    pub status: Status,
}

/// The metadata fields of a budget that the controller reads.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetMetadata {
    /// Its resource version.
    pub resource_version: String,
    /// The generation of its spec.
    pub generation: i64,
}

/// The spec of a budget.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetSpec {
    /// The minimum of available Pods.
    pub min_available: Option<Amount>,
    /// The maximum of unavailable Pods.
    pub max_unavailable: Option<Amount>,
    /// The selector of its Pods.
    pub selector: Option<LabelSelector>,
}

/// A number of Pods, or a percentage.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Amount {
    /// A number.
    Number(i32),
    /// For instance `50%`.
    Share(String),
}

/// The status of a budget.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// The generation that was reconciled.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Evicted Pods that are not deleted yet, with the times of their evictions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub disrupted_pods: BTreeMap<String, Timestamp>,
    /// The number of Pods that may be evicted now.
    pub disruptions_allowed: i32,
    /// The number of healthy Pods.
    pub current_healthy: i32,
    /// The number of Pods that must be healthy.
    pub desired_healthy: i32,
    /// The number of expected Pods.
    pub expected_pods: i32,
    /// The conditions.
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
    /// The status.
    #[serde(default)]
    pub status: PodStatus,
}

/// The metadata fields of a Pod that the controller reads.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMetadata {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The start of its deletion.
    pub deletion_timestamp: Option<Timestamp>,
    /// Its owners.
    pub owner_references: Vec<OwnerReference>,
}

/// The status of a Pod.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct PodStatus {
    /// The conditions.
    pub conditions: Vec<PodCondition>,
}

/// A condition of a Pod.
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
    /// Whether the selector matches these labels: an empty one matches all, a missing one none.
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

    /// Whether it is being deleted.
    pub fn is_ending(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The reference to its controller.
    pub fn owner(&self) -> Option<&OwnerReference> {
        self.metadata.owner_references.iter().find(|owner| owner.controller == Some(true))
    }
}
