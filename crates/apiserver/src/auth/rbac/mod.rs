//! The RBAC authorizer: an index of roles and bindings that informers keep current.

mod informer;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kinds::rbac::{Caller, GROUP, Index, RequestAttributes, Verdict, Words, not_found};
use model::Resource;
use serde_json::json;

pub(crate) use informer::start_informers;

use super::{Authorizer, AuthorizerAttributes, Decision, Identity, Rules};
use crate::informer::Position;
use crate::registry::ResourceType;

/// The kinds of RBAC objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RbacKind {
    Roles,
    ClusterRoles,
    RoleBindings,
    ClusterRoleBindings,
}

impl RbacKind {
    pub const ALL: [Self; 4] =
        [Self::Roles, Self::ClusterRoles, Self::RoleBindings, Self::ClusterRoleBindings];

    pub fn of(resource_type: &ResourceType) -> Option<Self> {
        let is_it = |kind: &Self| resource_type.group == GROUP && resource_type.plural == kind.plural();
        Self::ALL.into_iter().find(is_it)
    }

    pub fn plural(self) -> &'static str {
        match self {
            Self::Roles => "roles",
            Self::ClusterRoles => "clusterroles",
            Self::RoleBindings => "rolebindings",
            Self::ClusterRoleBindings => "clusterrolebindings",
        }
    }

    /// The resource in the store.
    pub fn resource(self) -> Resource {
        Resource::new(GROUP, self.plural())
    }

    pub fn is_binding(self) -> bool {
        matches!(self, Self::RoleBindings | Self::ClusterRoleBindings)
    }

    pub fn is_of_cluster(self) -> bool {
        matches!(self, Self::ClusterRoles | Self::ClusterRoleBindings)
    }
}

/// The current rules, and the position of each informer.
#[derive(Default)]
pub(crate) struct Rbac {
    index: RwLock<Index>,
    positions: [Position; 4],
}

impl Rbac {
    /// With fixed rules, for servers without RBAC objects.
    pub fn fixed(index: Index) -> Self {
        Self { index: RwLock::new(index), ..Self::default() }
    }

    pub fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The position of the informer of a kind.
    pub fn position(&self, kind: RbacKind) -> &Position {
        &self.positions[kind as usize]
    }
}

impl Authorizer for Rbac {
    fn decide(&self, caller: &Identity, attributes: AuthorizerAttributes<'_>) -> Decision {
        match self.index().decide(of(caller), request(attributes)) {
            Verdict::Allowed(by) => Decision::Allow { reason: format!("RBAC: allowed by {by}") },
            Verdict::NoRule(problem) if problem.is_empty() => Decision::NoOpinion { reason: problem },
            Verdict::NoRule(problem) => Decision::NoOpinion { reason: format!("RBAC: {problem}") },
        }
    }

    fn rules(&self, caller: &Identity, namespace: &str) -> Rules {
        let (rules, lacking) = self.index().rules_of(of(caller), namespace);
        let mut listed = Rules { problem: not_found(&lacking, Words::Singular), ..Rules::default() };
        for mut rule in rules {
            if !rule.paths.is_empty() {
                listed.paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.paths}));
            }
            if !rule.resources.is_empty() {
                rule.paths.clear();
                listed.resources.push(serde_json::to_value(&rule).unwrap_or_default());
            }
        }
        listed
    }
}

/// A caller as RBAC rules see it.
pub(crate) fn of(caller: &Identity) -> Caller<'_> {
    Caller { name: &caller.name, groups: &caller.groups }
}

fn request(attributes: AuthorizerAttributes<'_>) -> RequestAttributes<'_> {
    match attributes {
        AuthorizerAttributes::Resource { verb, path } => RequestAttributes::Resource {
            verb,
            group: &path.group,
            resource: &path.resource,
            subresource: &path.subresource,
            namespace: &path.namespace,
            name: &path.name,
        },
        AuthorizerAttributes::Path { verb, path } => RequestAttributes::Path { verb, path },
    }
}
