//! The decision whether a database still has the history that this server has seen.

use bytes::Bytes;
use model::{Revision, Uid};

use crate::engine::beyond;
use crate::types::ClockState;

/// Identity of the place where a database lives. An unknown part equals every other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The system identifier: another one after `pg_dump` and restore, or after an upgrade.
    pub system: Option<i64>,
    /// The timeline: another one after a promotion, or after a recovery to a point in time.
    pub timeline: Option<i64>,
    /// The object identifier of the clock's table: another one after `pg_restore --clean`.
    pub relation: Option<i64>,
}

impl Identity {
    fn differs(self, other: Self) -> bool {
        let differ = |a: Option<i64>, b: Option<i64>| a.zip(b).is_some_and(|(a, b)| a != b);
        differ(self.system, other.system)
            || differ(self.timeline, other.timeline)
            || differ(self.relation, other.relation)
    }

    /// Whether it is an earlier timeline of the same system: a primary that was replaced by a replica.
    fn precedes(self, other: Self) -> bool {
        let same = self.system.zip(other.system).is_none_or(|(a, b)| a == b);
        same && self.timeline.zip(other.timeline).is_some_and(|(a, b)| a < b)
    }

    /// Whether it tells something that the other does not.
    pub fn adds_to(self, other: Self) -> bool {
        self.system.is_some() && other.system.is_none()
            || self.timeline.is_some() && other.timeline.is_none()
            || self.relation.is_some() && other.relation.is_none()
    }
}

/// A change in the log. Two histories may have an update of the same object at a revision, so its value
/// counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub revision: Revision,
    pub uid: Uid,
    pub value: Bytes,
}

/// The history that this server knows.
#[derive(Clone, Debug)]
pub struct Known {
    pub identity: Identity,
    pub incarnation: String,
    /// The greatest revision that a client of this server may have got.
    pub seen: Revision,
    /// The last change that this server has read or written.
    pub record: Option<Record>,
}

/// A database as a new session finds it.
#[derive(Clone, Debug)]
pub struct ObservedHistory {
    /// The place where it lives.
    pub identity: Identity,
    /// The place where it lived when it got its incarnation.
    pub stamped: Identity,
    pub incarnation: String,
    pub clock: ClockState,
    /// The change at the revision of [`Known::record`].
    pub record: Option<Record>,
}

/// The decision about a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to do: the history continues.
    Same,
    /// Another server has found the loss and advanced the clock: end all watches.
    Advanced,
    /// Advance the clock, then end all watches.
    Lost {
        /// A revision that no client has seen.
        advance_to: Revision,
    },
    /// Use another session: this database was replaced, and its successor has been seen.
    Former,
}

/// Decides from the known history (none when a server starts) and the observed one.
pub fn decide(known: Option<&Known>, found: &ObservedHistory) -> Verdict {
    let seen = known.map_or(Revision::ZERO, |known| known.seen);
    let lost = Verdict::Lost { advance_to: beyond(found.clock.current.max(seen)) };
    // No server has checked the database since it moved: others may have seen more than it has.
    let moved = found.stamped.differs(found.identity);
    let Some(known) = known else { return if moved { lost } else { Verdict::Same } };
    if found.identity.precedes(known.identity) {
        return Verdict::Former;
    }
    if moved || found.clock.current < seen {
        return lost;
    }
    let changed = known.incarnation != found.incarnation
        || known.identity.differs(found.identity)
        || known.record.as_ref().is_some_and(|record| contradicts(record, found));
    match changed {
        false => Verdict::Same,
        // Everything that was seen lies below the mark.
        true if found.clock.compacted >= seen => Verdict::Advanced,
        true => lost,
    }
}

/// Whether the log has another change at the record's revision. Compaction may have removed the original.
fn contradicts(record: &Record, found: &ObservedHistory) -> bool {
    match &found.record {
        Some(other) => record != other,
        None => record.revision > found.clock.compacted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(revision: u64, value: &'static str) -> Option<Record> {
        let value = Bytes::from_static(value.as_bytes());
        Some(Record { revision: Revision(revision), uid: Uid("u".into()), value })
    }

    const HOME: Identity = Identity { system: Some(7), timeline: Some(2), relation: Some(9) };

    fn known() -> Known {
        Known { identity: HOME, incarnation: "a".into(), seen: Revision(260), record: record(250, "ours") }
    }

    fn found() -> ObservedHistory {
        let clock = ClockState { current: Revision(260), compacted: Revision(100) };
        let record = record(250, "ours");
        ObservedHistory { identity: HOME, stamped: HOME, incarnation: "a".into(), clock, record }
    }

    fn clock(current: u64, compacted: u64) -> ClockState {
        ClockState { current: Revision(current), compacted: Revision(compacted) }
    }

    fn lost(after: u64) -> Verdict {
        Verdict::Lost { advance_to: beyond(Revision(after)) }
    }

    #[test]
    fn a_history_that_goes_on_is_the_same_and_every_other_is_lost_or_advanced() {
        let on = |timeline| Identity { timeline: Some(timeline), ..HOME };
        let advanced = |timeline, mark| ObservedHistory {
            identity: on(timeline),
            stamped: on(3),
            incarnation: "b".into(),
            clock: clock(2000, mark),
            record: None,
        };
        let cases: [(&str, ObservedHistory, Verdict); 15] = [
            ("nothing happened", found(), Verdict::Same),
            ("others committed", ObservedHistory { clock: clock(900, 100), ..found() }, Verdict::Same),
            (
                "compaction took the record",
                ObservedHistory { clock: clock(900, 255), record: None, ..found() },
                Verdict::Same,
            ),
            ("the clock is behind", ObservedHistory { clock: clock(259, 100), ..found() }, lost(260)),
            (
                "another record",
                ObservedHistory { clock: clock(900, 100), record: record(250, "theirs"), ..found() },
                lost(900),
            ),
            ("no record above the mark", ObservedHistory { record: None, ..found() }, lost(260)),
            ("promoted", ObservedHistory { identity: on(3), ..found() }, lost(260)),
            (
                "promoted with a greater clock",
                ObservedHistory { identity: on(3), clock: clock(300, 100), ..found() },
                lost(300),
            ),
            ("promoted, and another server has advanced", advanced(3, 2000), Verdict::Advanced),
            ("advanced, but not past what was seen here", advanced(3, 255), lost(2000)),
            ("advanced and promoted again", advanced(4, 2000), lost(2000)),
            (
                "advanced by an operator",
                ObservedHistory { incarnation: "b".into(), clock: clock(2000, 2000), ..found() },
                Verdict::Advanced,
            ),
            (
                "another cluster",
                ObservedHistory {
                    identity: Identity { system: Some(8), timeline: Some(1), ..HOME },
                    ..found()
                },
                lost(260),
            ),
            (
                "the former primary",
                ObservedHistory { identity: on(1), stamped: on(1), ..found() },
                Verdict::Former,
            ),
            ("nothing told", ObservedHistory { identity: Identity::default(), ..found() }, Verdict::Same),
        ];
        for (what, found, verdict) in cases {
            assert_eq!(decide(Some(&known()), &found), verdict, "{what}");
        }
    }

    #[test]
    fn a_starting_server_detects_a_database_that_moved_meanwhile() {
        assert_eq!(decide(None, &found()), Verdict::Same);
        let promoted = Identity { timeline: Some(3), ..HOME };
        assert_eq!(decide(None, &ObservedHistory { identity: promoted, ..found() }), lost(260));
        // A database of before this table, and a PostgreSQL that tells nothing.
        assert_eq!(decide(None, &ObservedHistory { stamped: Identity::default(), ..found() }), Verdict::Same);
        assert_eq!(
            decide(None, &ObservedHistory { identity: Identity::default(), ..found() }),
            Verdict::Same
        );
        assert!(HOME.adds_to(Identity { timeline: None, ..HOME }) && !Identity::default().adds_to(HOME));
    }
}
