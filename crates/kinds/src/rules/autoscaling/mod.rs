//! The group `autoscaling`.

mod horizontal_pod_autoscaler;
mod metrics;
mod scale;

use super::KindRules;

pub use scale::{scale_of, set_scale, validate_scale};

pub(super) const RULES: &[KindRules] = &[horizontal_pod_autoscaler::RULES, scale::RULES];
