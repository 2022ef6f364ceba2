//! The core group.

mod component_status;
mod config_map;
mod data;
mod endpoints;
mod event;
mod limit_range;
mod namespace;
mod node;
mod node_selector;
mod persistent_volume;
mod persistent_volume_claim;
pub(super) mod pod;
mod pod_template;
mod replication_controller;
mod resource_name;
mod resource_quota;
mod secret;
mod service;
mod service_account;

use super::KindRules;

pub(super) use node_selector::bad_node_selector;
pub(super) use persistent_volume::{Inline, bad_volume_spec};
pub(super) use persistent_volume_claim::bad_claim_template;
pub use pod::{bind, validate_binding};
pub(super) use pod::{check_claim_metadata, check_container_resources, check_tolerations};
pub(super) use resource_name::bad_container_resource_name;
pub(super) use service::{PROTOCOLS, balancer_addresses, balancer_host};

pub(super) const RULES: &[KindRules] = &[
    config_map::RULES,
    component_status::RULES,
    endpoints::RULES,
    event::RULES,
    event::OF_EVENTS,
    limit_range::RULES,
    namespace::RULES,
    node::RULES,
    persistent_volume::RULES,
    persistent_volume_claim::RULES,
    pod::RULES,
    pod_template::RULES,
    replication_controller::RULES,
    resource_quota::RULES,
    secret::RULES,
    service::RULES,
    service_account::RULES,
];
