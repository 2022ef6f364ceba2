//! The group `storage.k8s.io`.

mod storage_class;

use super::KindRules;

pub(super) const RULES: &[KindRules] = &[storage_class::RULES];
