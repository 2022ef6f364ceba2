//! The verbs of the API, and sets of them.

use std::fmt;

/// What a request does to a resource. The names are those that authorization and discovery use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Make a new object.
    Create,
    /// Delete one object.
    Delete,
    /// Delete all objects of a selection.
    DeleteCollection,
    /// Read one object.
    Get,
    /// Read many objects.
    List,
    /// Change an object by a patch.
    Patch,
    /// Replace an object.
    Update,
    /// Follow changes.
    Watch,
}

impl Verb {
    /// All verbs, in the order in which discovery lists them.
    pub const ALL: [Self; 8] = [
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];

    /// As in discovery and in RBAC rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }

    /// The verb of this name, as in discovery.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == name)
    }

    /// Whether it may change what is stored.
    pub fn is_mutating(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Any combination of verbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verbs(u8);

impl Verbs {
    /// Every verb.
    pub const ALL: Self = Self(u8::MAX);

    /// Exactly these.
    pub fn of(verbs: &[Verb]) -> Self {
        verbs.iter().fold(Self::default(), |set, verb| Self(set.0 | bit(*verb)))
    }

    /// All of this set but one.
    #[must_use]
    pub fn without(self, verb: Verb) -> Self {
        Self(self.0 & !bit(verb))
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether the set has it.
    pub fn contains(self, verb: Verb) -> bool {
        self.0 & bit(verb) != 0
    }

    /// In the order of discovery.
    pub fn iter(self) -> impl Iterator<Item = Verb> {
        Verb::ALL.into_iter().filter(move |verb| self.contains(*verb))
    }
}

fn bit(verb: Verb) -> u8 {
    1 << (verb as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_combination_is_a_set() {
        let set = Verbs::of(&[Verb::Watch, Verb::Get]);
        assert_eq!(set.iter().map(Verb::as_str).collect::<Vec<_>>(), ["get", "watch"]);
        assert!(!set.contains(Verb::List));
        assert_eq!(Verbs::ALL.iter().count(), 8);
        assert!(!Verbs::ALL.without(Verb::DeleteCollection).contains(Verb::DeleteCollection));
    }
}
