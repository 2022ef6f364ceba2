//! The core group.

mod config_map;
mod data;
mod endpoints;
mod event;
mod namespace;
mod node;
mod node_selector;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_template;
mod replication_controller;
mod secret;
mod service;
mod service_account;

use super::KindRules;

pub(super) use persistent_volume::{Inline, bad_volume_spec};
pub(super) use service::{PROTOCOLS, balancer_addresses, balancer_host};

pub(super) const RULES: &[KindRules] = &[
    config_map::RULES,
    endpoints::RULES,
    event::RULES,
    event::OF_EVENTS,
    namespace::RULES,
    node::RULES,
    persistent_volume::RULES,
    persistent_volume_claim::RULES,
    pod::RULES,
    pod_template::RULES,
    replication_controller::RULES,
    secret::RULES,
    service::RULES,
    service_account::RULES,
];
