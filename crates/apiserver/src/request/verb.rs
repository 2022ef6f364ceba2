//! The verbs of the API, and sets of them.

use std::fmt;

/// A verb, as authorization and discovery name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Create an object.
    Create,
    /// Delete one object.
    Delete,
    /// Delete all selected objects.
    DeleteCollection,
    /// Read one object.
    Get,
    /// Read many objects.
    List,
    /// Patch an object.
    Patch,
    /// Replace an object.
    Update,
    /// Watch objects.
    Watch,
}

impl Verb {
    /// All verbs, in the order of discovery.
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

    /// The name in discovery and RBAC rules.
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

    /// The verb of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == name)
    }

    /// Whether it may write.
    pub fn is_mutating(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of verbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verbs(u8);

impl Verbs {
    /// Every verb.
    pub const ALL: Self = Self(u8::MAX);

    /// A set of these verbs.
    pub fn of(verbs: &[Verb]) -> Self {
        verbs.iter().fold(Self::default(), |set, verb| Self(set.0 | bit(*verb)))
    }

    /// The set without one verb.
    #[must_use]
    pub fn without(self, verb: Verb) -> Self {
        Self(self.0 & !bit(verb))
    }

    /// The intersection of two sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether the set has a verb.
    pub fn contains(self, verb: Verb) -> bool {
        self.0 & bit(verb) != 0
    }

    /// The verbs in the order of discovery.
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
