//! The configuration of Pod Security: the policy of namespaces without labels, and the exemptions.

use std::collections::BTreeSet;

use super::standard::Policy;

/// The configuration of the `PodSecurity` admission plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The policy of namespaces without labels.
    pub defaults: Policy,
    /// Exempt users, namespaces and runtime classes.
    pub exemptions: Exemptions,
}

/// Exempt users, namespaces and runtime classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exemptions {
    /// Users by name.
    pub users: BTreeSet<String>,
    /// Namespaces by name.
    pub namespaces: BTreeSet<String>,
    /// Runtime classes by name.
    pub runtime_classes: BTreeSet<String>,
}

impl Default for Configuration {
    fn default() -> Self {
        Self { defaults: Policy::PRIVILEGED, exemptions: Exemptions::default() }
    }
}
