//! Authorization: decides whether a caller may do something. The default is denial.

use model::error::{Error, quote};
use serde_json::Value;

use super::Identity;
use crate::request::path::ResourcePath;

/// Authorizer attributes: a verb on a resource or on a non-resource path.
#[derive(Clone, Copy, Debug)]
pub enum AuthorizerAttributes<'a> {
    /// A verb on a resource.
    Resource {
        /// The verb, as RBAC rules name it.
        verb: &'a str,
        /// The resource.
        path: &'a ResourcePath,
    },
    /// A verb on a non-resource path.
    Path {
        /// The HTTP method in lower case.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

/// The decision of an authorizer. The reason may be empty; callers see the reason of a denial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Allowed; later authorizers are skipped.
    Allow {
        /// The reason.
        reason: String,
    },
    /// Denied; later authorizers are skipped.
    Deny {
        /// The reason.
        reason: String,
    },
    /// No opinion. If no authorizer allows the request, it is denied.
    NoOpinion {
        /// The reason.
        reason: String,
    },
}

impl Decision {
    /// Allowed, without a reason.
    pub fn allow() -> Self {
        Self::Allow { reason: String::new() }
    }

    /// Whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }
}

/// An authorizer.
///
/// ```
/// use apiserver::auth::{Authorizer, Decision, Identity, AuthorizerAttributes};
///
/// /// Allows members of `readers` to read, and has no opinion about other callers.
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
/// Add it to the modes of a server: `builder.authorization(vec![Mode::Own(Arc::new(Readers)), Mode::Rbac])`.
pub trait Authorizer: Send + Sync {
    /// Decides about a request of a caller.
    fn decide(&self, caller: &Identity, attributes: AuthorizerAttributes<'_>) -> Decision;

    /// Lists the rules of a caller in a namespace.
    fn rules(&self, _caller: &Identity, _namespace: &str) -> Rules {
        Rules { is_incomplete: true, ..Rules::default() }
    }

    /// Like [`Authorizer::decide`], with the denial as an error.
    ///
    /// # Errors
    /// Kubernetes' message of the denial.
    fn require(&self, caller: &Identity, attributes: AuthorizerAttributes<'_>) -> Result<(), Error> {
        allowed(self.decide(caller, attributes), caller, attributes)
    }
}

/// Converts a decision to a result.
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

/// The rules of a caller, as in `SelfSubjectRulesReview`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// Rules about resources: `verbs`, `apiGroups`, `resources`, `resourceNames`.
    pub resources: Vec<Value>,
    /// Rules about non-resource paths: `verbs`, `nonResourceURLs`.
    pub paths: Vec<Value>,
    /// Whether rules may be missing.
    pub is_incomplete: bool,
    /// The error of the evaluation; empty if there was none.
    pub problem: String,
}

/// Kubernetes' message of a denial.
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
