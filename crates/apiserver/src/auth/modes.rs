//! The authorization modes of a server, in order.

use std::sync::Arc;

use serde_json::json;

use super::rbac::Rbac;
use super::{Authorizer, AuthorizerAttributes, Decision, Identity, Rules};

/// The group that is always allowed: administrators and loopback requests.
pub(crate) const MASTERS: &str = "system:masters";

/// An authorization mode.
#[derive(Clone)]
pub enum Mode {
    /// Roles and bindings.
    Rbac,
    /// Allows everything.
    AlwaysAllow,
    /// Denies everything.
    AlwaysDeny,
    /// A custom authorizer.
    Own(Arc<dyn Authorizer>),
}

impl std::fmt::Debug for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Rbac => "Rbac",
            Self::AlwaysAllow => "AlwaysAllow",
            Self::AlwaysDeny => "AlwaysDeny",
            Self::Own(_) => "Own",
        })
    }
}

impl Mode {
    /// The mode of `--authorization-mode`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "RBAC" => Self::Rbac,
            "AlwaysAllow" => Self::AlwaysAllow,
            "AlwaysDeny" => Self::AlwaysDeny,
            _ => return None,
        })
    }
}

/// All modes as one authorizer: the first one with an opinion decides.
pub(crate) struct Modes(Vec<Arc<dyn Authorizer>>);

impl Modes {
    pub fn new(modes: Vec<Mode>, rbac: &Arc<Rbac>) -> Self {
        let authorizer = |mode| match mode {
            Mode::Rbac => rbac.clone() as Arc<dyn Authorizer>,
            Mode::AlwaysAllow => Arc::new(AlwaysAllow),
            Mode::AlwaysDeny => Arc::new(AlwaysDeny),
            Mode::Own(own) => own,
        };
        Self(modes.into_iter().map(authorizer).collect())
    }
}

impl Authorizer for Modes {
    fn decide(&self, caller: &Identity, attributes: AuthorizerAttributes<'_>) -> Decision {
        if caller.is_in(MASTERS) {
            return Decision::allow();
        }
        let mut reasons = Vec::new();
        for authorizer in &self.0 {
            match authorizer.decide(caller, attributes) {
                Decision::NoOpinion { reason } if reason.is_empty() => {}
                Decision::NoOpinion { reason } => reasons.push(reason),
                decided => return decided,
            }
        }
        Decision::NoOpinion { reason: reasons.join("\n") }
    }

    fn rules(&self, caller: &Identity, namespace: &str) -> Rules {
        let mut all = Rules::default();
        let mut problems = Vec::new();
        for authorizer in &self.0 {
            let rules = authorizer.rules(caller, namespace);
            all.resources.extend(rules.resources);
            all.paths.extend(rules.paths);
            all.is_incomplete |= rules.is_incomplete;
            problems.extend(Some(rules.problem).filter(|problem| !problem.is_empty()));
        }
        all.problem = problems.join(", ");
        all
    }
}

struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn decide(&self, _caller: &Identity, _question: AuthorizerAttributes<'_>) -> Decision {
        Decision::allow()
    }

    fn rules(&self, _caller: &Identity, _namespace: &str) -> Rules {
        let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        let all_paths = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
        Rules { resources: vec![all], paths: vec![all_paths], ..Rules::default() }
    }
}

struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn decide(&self, _caller: &Identity, _question: AuthorizerAttributes<'_>) -> Decision {
        Decision::NoOpinion { reason: "Everything is forbidden.".to_owned() }
    }

    fn rules(&self, _caller: &Identity, _namespace: &str) -> Rules {
        Rules::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ATTRIBUTES: AuthorizerAttributes<'static> = AuthorizerAttributes::Path { verb: "get", path: "/x" };

    struct Says(Decision);

    impl Authorizer for Says {
        fn decide(&self, _caller: &Identity, _question: AuthorizerAttributes<'_>) -> Decision {
            self.0.clone()
        }
    }

    fn decided(modes: Vec<Mode>, groups: &[&str]) -> Decision {
        let caller = Identity::authenticated("u", groups.iter().map(|group| (*group).to_owned()));
        Modes::new(modes, &Arc::new(Rbac::default())).decide(&caller, ATTRIBUTES)
    }

    #[test]
    fn the_first_opinion_decides_and_no_opinion_is_a_denial() {
        let says = |decision| Mode::Own(Arc::new(Says(decision)));
        let none = |reason: &str| Decision::NoOpinion { reason: reason.to_owned() };
        let no = Decision::Deny { reason: "no".to_owned() };
        assert_eq!(decided(vec![says(none("a")), says(no.clone()), Mode::AlwaysAllow], &[]), no);
        assert!(decided(vec![Mode::Rbac, Mode::AlwaysDeny, Mode::AlwaysAllow], &[]).is_allowed());
        assert_eq!(decided(vec![says(none("a")), says(none("")), says(none("b"))], &[]), none("a\nb"));
        assert_eq!(decided(vec![Mode::AlwaysDeny], &[]), none("Everything is forbidden."));
        assert!(decided(vec![Mode::AlwaysDeny], &[MASTERS]).is_allowed());
    }

    #[test]
    fn modes_have_the_names_of_the_flag() {
        for (name, is_known) in [("RBAC", true), ("AlwaysAllow", true), ("AlwaysDeny", true), ("rbac", false)]
        {
            assert_eq!(Mode::from_name(name).is_some(), is_known, "{name}");
        }
    }
}
