//! The group `policy`.

mod pod_disruption_budget;

use super::KindRules;

pub(super) const RULES: &[KindRules] = &[pod_disruption_budget::RULES];
