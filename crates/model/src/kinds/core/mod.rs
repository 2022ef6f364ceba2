//! The core group.

mod config_map;
mod data;
mod event;
mod namespace;
mod pod;
mod pod_template;
mod secret;
mod service_account;

use super::KindRules;

pub(super) const RULES: &[KindRules] = &[
    config_map::RULES,
    event::RULES,
    namespace::RULES,
    pod_template::RULES,
    secret::RULES,
    service_account::RULES,
];
