//! Parsed roles, bindings and rules, and the evaluation of one rule.

use model::error::quote;
use serde::{Deserialize, Deserializer, Serialize};

/// The user of a request.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The user name.
    pub name: &'a str,
    /// All groups.
    pub groups: &'a [String],
}

/// The attributes of a request.
#[derive(Clone, Copy, Debug)]
pub enum RequestAttributes<'a> {
    /// A resource request; every field but the verb and the resource may be empty.
    Resource {
        /// The verb.
        verb: &'a str,
        /// The group of the resource.
        group: &'a str,
        /// The plural name of the resource.
        resource: &'a str,
        /// The subresource.
        subresource: &'a str,
        /// The namespace.
        namespace: &'a str,
        /// The name of the object.
        name: &'a str,
    },
    /// A request of a nonresource path.
    Path {
        /// The method in lower case.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

/// A rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// Allowed verbs; `*` for all.
    #[serde(default, deserialize_with = "or_none")]
    pub verbs: Vec<Box<str>>,
    /// API groups; `*` for all.
    #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<Box<str>>,
    /// Resources: `pods`, `pods/log`, `*/scale`, `*`.
    #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Box<str>>,
    /// Resource names; empty for all.
    #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<Box<str>>,
    /// Nonresource paths; one that ends with `*` is a prefix.
    #[serde(default, rename = "nonResourceURLs", deserialize_with = "or_none")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Box<str>>,
}

/// A stored list may be null.
fn or_none<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A stored role.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Role {
    /// Its rules.
    #[serde(default, deserialize_with = "or_none")]
    pub rules: Vec<PolicyRule>,
}

/// A stored binding.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    /// The role that it grants.
    pub role_ref: RoleRef,
    /// The users, groups and service accounts that it grants the role to.
    #[serde(default, deserialize_with = "or_none")]
    pub subjects: Vec<Subject>,
}

/// The reference to a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// A subject of a binding.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: Box<str>,
    /// The name.
    pub name: Box<str>,
    /// The namespace of a service account; empty for that of the binding.
    #[serde(default)]
    pub namespace: Box<str>,
}

impl Subject {
    /// The user name of the service account, for a binding in `namespace`.
    pub(super) fn account(&self, namespace: &str) -> Option<String> {
        let namespace = if self.namespace.is_empty() { namespace } else { &self.namespace };
        (&*self.kind == "ServiceAccount" && !namespace.is_empty())
            .then(|| format!("system:serviceaccount:{namespace}:{}", self.name))
    }

    /// Whether a subject of a binding in `namespace` matches a caller.
    pub(super) fn means(&self, caller: Caller<'_>, namespace: &str) -> bool {
        match &*self.kind {
            "User" => *self.name == *caller.name,
            "Group" => caller.groups.iter().any(|group| **group == *self.name),
            _ => self.account(namespace).is_some_and(|account| account == caller.name),
        }
    }

    /// The subject as the reason of a decision names it.
    pub(super) fn described(&self, namespace: &str) -> String {
        match &*self.kind {
            "ServiceAccount" => {
                let namespace = if self.namespace.is_empty() { namespace } else { &self.namespace };
                format!("ServiceAccount {}", quote(&format!("{}/{namespace}", self.name)))
            }
            kind => format!("{kind} {}", quote(&self.name)),
        }
    }
}

impl PolicyRule {
    /// Whether the rule allows a request.
    pub fn allows(&self, request: RequestAttributes<'_>) -> bool {
        match request {
            RequestAttributes::Resource { verb, group, resource, subresource, name, .. } => {
                has(&self.verbs, verb)
                    && has(&self.api_groups, group)
                    && self.resources.iter().any(|rule| names_resource(rule, resource, subresource))
                    && (self.resource_names.is_empty()
                        || self.resource_names.iter().any(|own| **own == *name))
            }
            RequestAttributes::Path { verb, path } => {
                has(&self.verbs, verb) && self.paths.iter().any(|rule| covers_path(rule, path))
            }
        }
    }
}

/// Whether a list contains an entry or `*`.
fn has(list: &[Box<str>], entry: &str) -> bool {
    list.iter().any(|own| &**own == "*" || **own == *entry)
}

fn names_resource(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == "*" {
        return true;
    }
    if subresource.is_empty() {
        return rule == resource;
    }
    rule.split_once('/').is_some_and(|(of, part)| part == subresource && (of == "*" || of == resource))
}

/// Whether the path of a rule matches a path.
pub(super) fn covers_path(rule: &str, path: &str) -> bool {
    rule == path || rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*'))
}
