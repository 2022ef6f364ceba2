//! The fencing epoch of a leader: a number that grows with every leadership, for writes that a deposed leader must not make.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use thiserror::Error;

/// The annotation with the epoch of the leader that wrote an object last.
pub const EPOCH_ANNOTATION: &str = "leader.orlop.dev/epoch";

/// The epoch of one leadership: the creation of the Lease, and its `leaseTransitions`. A later leadership has a greater one, also after the
/// Lease was deleted and created again.
///
/// A leader that loses its lease stops, but a request of it may still be on its way. Where that matters, an object carries the epoch of its
/// last writer: the leader reads the object, [checks](Epoch::check) its annotations, and writes it with its own epoch
/// ([`Epoch::stamp`]) and the resource version that it read as precondition. A write of a deposed leader fails then: by the check if the new
/// leader has written the object already, by the precondition if it does so meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch {
    /// The creation of the Lease, in seconds.
    created: i64,
    transitions: u64,
}

/// A later leader has written the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the leader of epoch {own} is superseded: epoch {other} has written the object")]
pub struct Superseded {
    own: Epoch,
    other: Epoch,
}

impl Epoch {
    pub(super) fn new(created: Option<Timestamp>, transitions: u64) -> Self {
        Self { created: created.map_or(0, Timestamp::as_second), transitions }
    }

    /// Whether this leader may write an object with these annotations. An object without an epoch, or with an unreadable one, is free.
    ///
    /// # Errors
    /// [`Superseded`] if a later leader has written it.
    pub fn check(self, annotations: &BTreeMap<String, String>) -> Result<(), Superseded> {
        let other = annotations.get(EPOCH_ANNOTATION).and_then(|text| text.parse::<Self>().ok());
        match other {
            Some(other) if other > self => Err(Superseded { own: self, other }),
            _ => Ok(()),
        }
    }

    /// Writes this epoch into the annotations of an object.
    pub fn stamp(self, annotations: &mut BTreeMap<String, String>) {
        annotations.insert(EPOCH_ANNOTATION.to_owned(), self.to_string());
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.created, self.transitions)
    }
}

impl FromStr for Epoch {
    type Err = InvalidEpoch;

    fn from_str(text: &str) -> Result<Self, InvalidEpoch> {
        let (created, transitions) = text.split_once('.').ok_or(InvalidEpoch)?;
        let created = created.parse().map_err(|_| InvalidEpoch)?;
        Ok(Self { created, transitions: transitions.parse().map_err(|_| InvalidEpoch)? })
    }
}

/// The text of an epoch is not two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an epoch is two numbers, such as 1767225600.7")]
pub struct InvalidEpoch;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_leader_is_refused_where_a_later_one_has_written() {
        let epoch = |created: i64, transitions| Epoch { created, transitions };
        let mut annotations = BTreeMap::new();
        assert_eq!(epoch(10, 0).check(&annotations), Ok(()));
        epoch(10, 7).stamp(&mut annotations);
        assert_eq!(annotations[EPOCH_ANNOTATION], "10.7");
        for (leader, is_free) in [
            (epoch(10, 6), false),
            (epoch(10, 7), true),
            (epoch(10, 10), true),
            (epoch(9, 99), false),
            (epoch(11, 0), true),
        ] {
            assert_eq!(leader.check(&annotations).is_ok(), is_free, "{leader}");
        }
        annotations.insert(EPOCH_ANNOTATION.to_owned(), "soon".to_owned());
        assert_eq!(epoch(0, 0).check(&annotations), Ok(()));
    }
}
