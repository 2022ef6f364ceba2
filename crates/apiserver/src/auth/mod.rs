//! Who calls, and whether they may.

pub mod authenticate;
pub mod authorize;

pub use authenticate::{Authentication, Authenticator, Connection, Credentials, StaticToken};
pub use authorize::{Authorizer, Decision, MastersOnly, Question, Rules};

/// A caller, as authentication found them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user name.
    pub name: String,
    /// What tells users of one name apart; may be empty.
    pub uid: String,
    /// The groups, `system:authenticated` or `system:unauthenticated` among them.
    pub groups: Vec<String>,
}

impl Identity {
    /// A caller who proved who they are.
    pub fn authenticated(name: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        if !groups.iter().any(|group| group == "system:authenticated") {
            groups.push("system:authenticated".to_owned());
        }
        Self { name: name.into(), uid: String::new(), groups }
    }

    /// A caller without credentials.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            uid: String::new(),
            groups: vec!["system:unauthenticated".to_owned()],
        }
    }

    /// Whether they are in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}
