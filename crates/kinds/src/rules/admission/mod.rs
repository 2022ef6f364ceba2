//! The group `admissionregistration.k8s.io`.

mod client_config;
mod matching;
mod mutating_policy;
mod policy;
mod policy_binding;
mod review_versions;
mod rule;
mod webhook;

use super::KindRules;

pub(super) use client_config::bad_client_config;
pub(super) use review_versions::{REVIEW_VERSIONS, bad_version_names};

const GROUP: &str = "admissionregistration.k8s.io";

pub(super) const RULES: &[KindRules] = &[
    mutating_policy::RULES,
    policy::RULES,
    policy_binding::MUTATING,
    policy_binding::RULES,
    webhook::MUTATING,
    webhook::VALIDATING,
];
