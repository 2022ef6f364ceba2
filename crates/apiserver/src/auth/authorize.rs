//! Authorization: may this caller do this? Whoever is not allowed is denied.

use model::error::Error;
use serde_json::{Value, json};

use super::Identity;
use crate::request::path::ResourcePath;

/// What a caller wants to do.
#[derive(Clone, Copy, Debug)]
pub enum Question<'a> {
    /// A verb on objects.
    Resource {
        /// What they want to do, as RBAC rules name it.
        verb: &'a str,
        /// With what.
        place: &'a ResourcePath,
    },
    /// A method on a plain path.
    Path {
        /// The method in lower case, as RBAC rules name it.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

/// The answer of an authorizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes.
    Allow,
    /// No; the reason is shown to the caller and may be empty.
    Deny {
        /// Why.
        reason: String,
    },
}

/// Decides who may do what.
pub trait Authorizer: Send + Sync {
    /// Whether this caller may do this.
    fn decide(&self, caller: &Identity, question: Question<'_>) -> Decision;

    /// What this caller may do in a namespace, as far as it can be listed.
    fn rules(&self, _caller: &Identity, _namespace: &str) -> Rules {
        Rules { resources: Vec::new(), paths: Vec::new(), is_incomplete: true }
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
}

/// The members of `system:masters` may do everything; everyone may see whether the server lives and which version it is;
/// nobody may do anything else.
pub struct MastersOnly;

const FOR_EVERYONE: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

impl Authorizer for MastersOnly {
    fn decide(&self, caller: &Identity, question: Question<'_>) -> Decision {
        let public =
            matches!(question, Question::Path { verb: "get" | "head", path } if FOR_EVERYONE.contains(&path));
        if public || caller.is_in("system:masters") {
            Decision::Allow
        } else {
            Decision::Deny { reason: String::new() }
        }
    }

    fn rules(&self, caller: &Identity, _namespace: &str) -> Rules {
        let health = json!({"verbs": ["get"], "nonResourceURLs": FOR_EVERYONE});
        if !caller.is_in("system:masters") {
            return Rules { paths: vec![health], ..Rules::default() };
        }
        let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        let all_paths = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
        Rules { resources: vec![all], paths: vec![all_paths, health], is_incomplete: false }
    }
}

/// The refusal in Kubernetes' words.
pub fn refusal(caller: &Identity, question: Question<'_>, reason: &str) -> Error {
    let user = &caller.name;
    let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    match question {
        Question::Path { verb, path } => Error::Forbidden {
            group: String::new(),
            resource: String::new(),
            name: String::new(),
            message: format!("User {user:?} cannot {verb} path {path:?}{because}"),
        },
        Question::Resource { verb, place } => {
            let ResourcePath { group, resource, subresource, namespace, name, .. } = place;
            let sub = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
            let scope = if namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {namespace:?}")
            };
            Error::Forbidden {
                group: group.clone(),
                resource: resource.clone(),
                name: name.clone(),
                message: format!(
                    "User {user:?} cannot {verb} resource \"{resource}{sub}\" in API group {group:?} {scope}{because}"
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::verb::Verb;

    #[test]
    fn only_masters_may_do_anything_but_ask_for_health() {
        let master = Identity::authenticated("a", ["system:masters".to_owned()]);
        let user = Identity::authenticated("b", ["developers".to_owned()]);
        let place = ResourcePath { resource: "secrets".to_owned(), ..ResourcePath::default() };
        for verb in Verb::ALL {
            let question = Question::Resource { verb: verb.as_str(), place: &place };
            assert_eq!(MastersOnly.decide(&master, question), Decision::Allow);
            for caller in [&user, &Identity::anonymous()] {
                assert_ne!(MastersOnly.decide(caller, question), Decision::Allow);
            }
        }
        for (path, everyone) in
            [("/livez", true), ("/version", true), ("/livez/ping", false), ("/api", false)]
        {
            let decision = MastersOnly.decide(&Identity::anonymous(), Question::Path { verb: "get", path });
            assert_eq!(decision == Decision::Allow, everyone, "{path}");
        }
        let write = Question::Path { verb: "post", path: "/livez" };
        assert_ne!(MastersOnly.decide(&Identity::anonymous(), write), Decision::Allow);
    }

    #[test]
    fn the_refusal_names_user_verb_and_resource() {
        let place = ResourcePath {
            resource: "leases".to_owned(),
            group: "coordination.k8s.io".to_owned(),
            namespace: "n".to_owned(),
            subresource: "status".to_owned(),
            ..ResourcePath::default()
        };
        let question = Question::Resource { verb: "get", place: &place };
        let Error::Forbidden { message, .. } = refusal(&Identity::anonymous(), question, "") else {
            panic!()
        };
        assert_eq!(
            message,
            "User \"system:anonymous\" cannot get resource \"leases/status\" in API group \"coordination.k8s.io\" in the namespace \"n\""
        );
    }
}
