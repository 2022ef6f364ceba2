//! What a server is told about Pod Security: the policy of namespaces without labels, and who is exempt.

use std::collections::BTreeSet;

use super::standard::Policy;

/// What holds for all namespaces of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// What holds where labels say nothing.
    pub defaults: Policy,
    /// Who is not looked at.
    pub exemptions: Exemptions,
}

/// Who is not looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exemptions {
    /// Users by name.
    pub users: BTreeSet<String>,
    /// Namespaces by name.
    pub namespaces: BTreeSet<String>,
    /// Classes of runtimes by name.
    pub runtime_classes: BTreeSet<String>,
}

impl Default for Configuration {
    fn default() -> Self {
        Self { defaults: Policy::PRIVILEGED, exemptions: Exemptions::default() }
    }
}
