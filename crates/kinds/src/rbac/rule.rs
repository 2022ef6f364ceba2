//! Roles, bindings and rules, as far as decisions need them, and what one rule allows.

use model::error::quote;
use serde::{Deserialize, Deserializer, Serialize};

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The user name.
    pub name: &'a str,
    /// All groups.
    pub groups: &'a [String],
}

/// What a caller wants to do.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// A verb on objects; every text but the verb and the resource may be empty.
    Resource {
        /// What they want to do.
        verb: &'a str,
        /// The group of the resource.
        group: &'a str,
        /// The plural name of the resource.
        resource: &'a str,
        /// The part of the object.
        subresource: &'a str,
        /// Where.
        namespace: &'a str,
        /// With which object.
        name: &'a str,
    },
    /// A method on a plain path.
    Path {
        /// The method in lower case.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

/// One rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// What may be done; `*` for everything.
    #[serde(default, deserialize_with = "or_none")]
    pub verbs: Vec<Box<str>>,
    /// With resources of these groups; `*` for all.
    #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<Box<str>>,
    /// With these resources: `pods`, `pods/log`, `*/scale`, `*`.
    #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Box<str>>,
    /// With these objects; none for all.
    #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<Box<str>>,
    /// With these paths; one that ends with `*` stands for all that begin so.
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

/// A role as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Role {
    /// What it allows.
    #[serde(default, deserialize_with = "or_none")]
    pub rules: Vec<PolicyRule>,
}

/// A binding as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    /// Which role.
    pub role_ref: RoleRef,
    /// To whom.
    #[serde(default, deserialize_with = "or_none")]
    pub subjects: Vec<Subject>,
}

/// The role that a binding gives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// Somebody whom a role is given to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: Box<str>,
    /// The name.
    pub name: Box<str>,
    /// Where a service account is; without it where the binding is.
    #[serde(default)]
    pub namespace: Box<str>,
}

impl Subject {
    /// The name of the user that this service account is, if it is one of a binding in this namespace.
    pub(super) fn account(&self, namespace: &str) -> Option<String> {
        let namespace = if self.namespace.is_empty() { namespace } else { &self.namespace };
        (&*self.kind == "ServiceAccount" && !namespace.is_empty())
            .then(|| format!("system:serviceaccount:{namespace}:{}", self.name))
    }

    /// Whether a caller is meant by a binding in this namespace.
    pub(super) fn means(&self, caller: Caller<'_>, namespace: &str) -> bool {
        match &*self.kind {
            "User" => *self.name == *caller.name,
            "Group" => caller.groups.iter().any(|group| **group == *self.name),
            _ => self.account(namespace).is_some_and(|account| account == caller.name),
        }
    }

    /// As reasons name it.
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
    /// Whether it allows what is asked for.
    pub fn allows(&self, request: Request<'_>) -> bool {
        match request {
            Request::Resource { verb, group, resource, subresource, name, .. } => {
                has(&self.verbs, verb)
                    && has(&self.api_groups, group)
                    && self.resources.iter().any(|rule| names_resource(rule, resource, subresource))
                    && (self.resource_names.is_empty()
                        || self.resource_names.iter().any(|own| **own == *name))
            }
            Request::Path { verb, path } => {
                has(&self.verbs, verb) && self.paths.iter().any(|rule| covers_path(rule, path))
            }
        }
    }
}

/// Whether a list has an entry, or stands for all.
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

/// Whether the path of a rule stands for another path.
pub(super) fn covers_path(rule: &str, path: &str) -> bool {
    rule == path || rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*'))
}
