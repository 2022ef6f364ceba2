//! Pod Security standards: validation of Pods by the labels of their namespace, with Kubernetes' messages.
//!
//! [`Configuration`] has the defaults and exemptions of a server; the labels of a namespace override the defaults. All
//! functions expect objects after defaulting and mutation.

mod baseline;
mod checks;
mod configuration;
mod namespace;
mod pods;
mod read;
mod restricted;
mod standard;
#[cfg(test)]
mod tests;

pub use checks::{Violations, violations};
pub use configuration::{Configuration, Exemptions};
pub use namespace::{ExistingPods, NamespaceVerdict};
pub use pods::{Judged, PodRequest, Subject, Verdict};
pub use read::ConfigurationError;
pub use standard::{Level, Policy, Standard, Version};
