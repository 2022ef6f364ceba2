//! What admission plugins decide, without asking anybody: pure functions over objects.

pub mod configuration;
pub mod kubeconfig;
pub mod limit_range;
pub mod tolerations;
