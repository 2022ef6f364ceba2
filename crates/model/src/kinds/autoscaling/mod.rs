//! The group `autoscaling`.

mod horizontal_pod_autoscaler;
mod metrics;

use super::KindRules;

pub(super) const RULES: &[KindRules] = &[horizontal_pod_autoscaler::RULES];
