//! The group `policy`.

mod eviction;
mod pod_disruption_budget;

use super::KindRules;

pub use eviction::{evict, note_eviction};

pub(super) const RULES: &[KindRules] = &[pod_disruption_budget::RULES];
