//! What admission plugins decide, without asking anybody: pure functions over objects.

pub mod configuration;
pub mod kubeconfig;
pub mod limit_range;
pub mod tolerations;

/// An object as plugins see it.
type Object = serde_json::Map<String, serde_json::Value>;
