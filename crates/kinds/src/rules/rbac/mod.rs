//! The group `rbac.authorization.k8s.io`.

mod binding;
mod role;

use super::KindRules;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) const RULES: &[KindRules] =
    &[binding::CLUSTER_ROLE_BINDING, binding::ROLE_BINDING, role::CLUSTER_ROLE, role::ROLE];
