//! The Pod Security standards: which Pods a namespace takes, which ones it warns about, and in which words.
//!
//! [`Configuration`] is what a server is told once; the labels of a namespace say the rest. Everything here looks at
//! objects as they are after defaults and mutation.

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
