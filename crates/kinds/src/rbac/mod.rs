//! Role-based access control: rules, bindings and decisions. Pure.

mod bootstrap;
mod cover;
mod index;
mod rule;
#[cfg(test)]
mod tests;

pub use bootstrap::{Bootstrapped, bootstrap, bootstrap_index, reconciled};
pub use cover::{missing, names_of_missing};
pub use index::{Index, Verdict, Words, not_found};
pub use rule::{Binding, Caller, PolicyRule, RequestAttributes, Role, RoleRef, Subject};

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
