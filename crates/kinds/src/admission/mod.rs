//! The decisions of admission plugins: pure functions of objects.

pub mod configuration;
pub mod kubeconfig;
pub mod limit_range;
pub mod tolerations;
