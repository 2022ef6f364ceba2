//! Authorization: may this caller do this? Whoever is not allowed is denied.

use model::error::{Error, quote};
use serde_json::Value;

use super::Identity;
use crate::request::path::ResourcePath;

/// What a caller wants to do.
#[derive(Clone, Copy, Debug)]
pub enum AuthorizerAttributes<'a> {
    /// A verb on objects.
    Resource {
        /// What they want to do, as RBAC rules name it.
        verb: &'a str,
        /// With what.
        path: &'a ResourcePath,
    },
    /// A method on a plain path.
    Path {
        /// The method in lower case, as RBAC rules name it.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

/// The answer of an authorizer. Reasons may be empty; that of a refusal is shown to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes, and nobody else is asked.
    Allow {
        /// Why.
        reason: String,
    },
    /// No, and nobody else is asked.
    Deny {
        /// Why.
        reason: String,
    },
    /// Not by this authorizer. Where no other one allows it, it is refused.
    NoOpinion {
        /// Why.
        reason: String,
    },
}

impl Decision {
    /// Yes, without a word.
    pub fn allow() -> Self {
        Self::Allow { reason: String::new() }
    }

    /// Whether it is a yes.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }
}

/// Decides who may do what.
///
/// ```
/// use apiserver::auth::{Authorizer, Decision, Identity, AuthorizerAttributes};
///
/// /// Readers may read; of the others it knows nothing.
/// struct Readers;
///
/// impl Authorizer for Readers {
///     fn decide(&self, caller: &Identity, attributes: AuthorizerAttributes<'_>) -> Decision {
///         let reads = matches!(attributes, AuthorizerAttributes::Resource { verb: "get" | "list" | "watch", .. });
///         match caller.is_in("readers") && reads {
///             true => Decision::Allow { reason: "readers may read".to_owned() },
///             false => Decision::NoOpinion { reason: String::new() },
///         }
///     }
/// }
///
/// let attributes = AuthorizerAttributes::Path { verb: "get", path: "/metrics" };
/// let reader = Identity::authenticated("jane", ["readers".to_owned()]);
/// assert!(!Readers.decide(&reader, attributes).is_allowed());
/// ```
///
/// A server asks it in the order of its modes: `builder.authorization(vec![Mode::Own(Arc::new(Readers)), Mode::Rbac])`.
pub trait Authorizer: Send + Sync {
    /// Whether this caller may do this.
    fn decide(&self, caller: &Identity, attributes: AuthorizerAttributes<'_>) -> Decision;

    /// What this caller may do in a namespace, as far as it can be listed.
    fn rules(&self, _caller: &Identity, _namespace: &str) -> Rules {
        Rules { is_incomplete: true, ..Rules::default() }
    }

    /// Refuses with Kubernetes' words what it does not allow.
    ///
    /// # Errors
    /// The refusal.
    fn require(&self, caller: &Identity, attributes: AuthorizerAttributes<'_>) -> Result<(), Error> {
        allowed(self.decide(caller, attributes), caller, attributes)
    }
}

/// A decision as what comes of it.
pub(crate) fn allowed(
    decision: Decision,
    caller: &Identity,
    attributes: AuthorizerAttributes<'_>,
) -> Result<(), Error> {
    match decision {
        Decision::Allow { .. } => Ok(()),
        Decision::Deny { reason } | Decision::NoOpinion { reason } => {
            Err(refusal(caller, attributes, &reason))
        }
    }
}

/// What a caller may do, in the form of `SelfSubjectRulesReview`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// Rules about resources: `verbs`, `apiGroups`, `resources`, `resourceNames`.
    pub resources: Vec<Value>,
    /// Rules about plain paths: `verbs`, `nonResourceURLs`.
    pub paths: Vec<Value>,
    /// Whether there may be more.
    pub is_incomplete: bool,
    /// What went wrong while they were looked for; empty if nothing did.
    pub problem: String,
}

/// The refusal in Kubernetes' words.
fn refusal(caller: &Identity, attributes: AuthorizerAttributes<'_>, reason: &str) -> Error {
    let user = &caller.name;
    let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    match attributes {
        AuthorizerAttributes::Path { verb, path } => Error::Forbidden {
            group: String::new(),
            resource: String::new(),
            name: String::new(),
            message: format!("User {} cannot {verb} path {}{because}", quote(user), quote(path)),
        },
        AuthorizerAttributes::Resource { verb, path } => {
            let ResourcePath { group, resource, subresource, namespace, name, .. } = path;
            let sub = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
            let scope = if namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {}", quote(namespace))
            };
            Error::Forbidden {
                group: group.clone(),
                resource: resource.clone(),
                name: name.clone(),
                message: format!(
                    "User {} cannot {verb} resource \"{resource}{sub}\" in API group {} {scope}{because}",
                    quote(user),
                    quote(group)
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_names_user_verb_and_resource() {
        let path = ResourcePath {
            resource: "leases".to_owned(),
            group: "coordination.k8s.io".to_owned(),
            namespace: "n".to_owned(),
            subresource: "status".to_owned(),
            ..ResourcePath::default()
        };
        let attributes = AuthorizerAttributes::Resource { verb: "get", path: &path };
        let Error::Forbidden { message, .. } = refusal(&Identity::anonymous(), attributes, "") else {
            panic!()
        };
        assert_eq!(
            message,
            "User \"system:anonymous\" cannot get resource \"leases/status\" in API group \"coordination.k8s.io\" in the namespace \"n\""
        );
    }
}
