//! Reading one object, the clock, and the log.

use bytes::Bytes;
use model::{Attributes, ObjectKey, Resource, Revision, Uid};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::error::{corrupt, unavailable};
use crate::engine::{Bound, Changes};
use crate::history::decide::{Identity, ObservedHistory, Record};
use crate::listing::{as_of, not_compacted};
use crate::types::{Action, Change, ClockState, Error, Stored};

const CLOCK: &str = "SELECT revision, compacted FROM clock";

const INCARNATION: &str = "SELECT incarnation FROM clock";

const RECORD: &str = "SELECT revision, uid, value FROM changes WHERE revision = ?1";

const HEAD: &str = "
    SELECT c.revision, c.uid, c.version_at, c.value FROM heads h JOIN changes c ON c.revision = h.revision
    WHERE h.resource = ?1 AND h.namespace = ?2 AND h.name = ?3";

const SUPERSEDED: &str = "
    SELECT c.revision, c.uid, c.version_at, c.value, h.superseded_by
    FROM history h JOIN changes c ON c.revision = h.revision
    WHERE h.resource = ?1 AND h.namespace = ?2 AND h.name = ?3 AND h.revision <= ?4
    ORDER BY h.revision DESC LIMIT 1";

const LOG: &str = "
    SELECT c.revision, c.resource, c.namespace, c.name, c.uid, c.action, c.previous, c.attributes, p.attributes,
           c.version_at, c.value
    FROM changes c LEFT JOIN changes p ON p.revision = c.previous
    WHERE c.revision > ?1 ORDER BY c.revision LIMIT ?2";

const LOG_OF_RESOURCE: &str = "
    SELECT c.revision, c.resource, c.namespace, c.name, c.uid, c.action, c.previous, c.attributes, p.attributes,
           c.version_at, c.value
    FROM changes c LEFT JOIN changes p ON p.revision = c.previous
    WHERE c.resource = ?3 AND c.revision > ?1 ORDER BY c.revision LIMIT ?2";

/// All of the above, for the test of their query plans.
#[cfg(test)]
pub const STATEMENTS: &[&str] = &[CLOCK, INCARNATION, RECORD, HEAD, SUPERSEDED, LOG, LOG_OF_RESOURCE];

/// A revision as SQLite keeps it. No stored revision is beyond its range, so a greater one is clamped.
pub fn integer(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

/// A column that holds a revision.
pub fn revision(row: &Row<'_>, column: usize) -> Result<Revision, Error> {
    let number: i64 = row.get(column).map_err(unavailable)?;
    u64::try_from(number).map(Revision).map_err(|_| corrupt("a revision is negative"))
}

/// A column that holds text.
pub fn text(row: &Row<'_>, column: usize) -> Result<String, Error> {
    row.get(column).map_err(unavailable)
}

/// A column that holds bytes.
pub fn bytes(row: &Row<'_>, column: usize) -> Result<Bytes, Error> {
    match row.get_ref(column).map_err(unavailable)? {
        ValueRef::Blob(bytes) => Ok(Bytes::copy_from_slice(bytes)),
        _ => Err(corrupt("a value is no blob")),
    }
}

/// A column that holds attributes; absent ones are empty.
pub fn attributes(row: &Row<'_>, column: usize) -> Result<Attributes, Error> {
    match row.get_ref(column).map_err(unavailable)? {
        ValueRef::Null => Ok(Attributes::default()),
        ValueRef::Blob(bytes) => {
            Attributes::from_bytes(bytes).ok_or_else(|| corrupt("the attributes of a change are unreadable"))
        }
        _ => Err(corrupt("the attributes of a change are no blob")),
    }
}

/// A column that holds an offset into a value.
pub fn offset(row: &Row<'_>, column: usize) -> Result<usize, Error> {
    let number: i64 = row.get(column).map_err(unavailable)?;
    usize::try_from(number).map_err(|_| corrupt("the place of a revision is negative"))
}

/// The clock.
pub fn clock(connection: &Connection) -> Result<ClockState, Error> {
    let mut statement = connection.prepare_cached(CLOCK).map_err(unavailable)?;
    let mut rows = statement.query([]).map_err(unavailable)?;
    let row = rows.next().map_err(unavailable)?.ok_or_else(|| corrupt("the clock is missing"))?;
    Ok(ClockState { current: revision(row, 0)?, compacted: revision(row, 1)? })
}

/// The incarnation of the history.
pub fn incarnation(connection: &Connection) -> Result<String, Error> {
    let mut statement = connection.prepare_cached(INCARNATION).map_err(unavailable)?;
    statement.query_row([], |row| row.get(0)).map_err(unavailable)
}

/// The clock, the incarnation, and the change at a revision, in one state. A file has no identity of its
/// place.
pub fn history(connection: &Connection, record: Option<Revision>) -> Result<ObservedHistory, Error> {
    let snapshot = connection.unchecked_transaction().map_err(unavailable)?;
    let home = Identity::default();
    Ok(ObservedHistory {
        identity: home,
        stamped: home,
        incarnation: incarnation(&snapshot)?,
        clock: clock(&snapshot)?,
        record: match record {
            None => None,
            Some(revision) => recorded(&snapshot, revision)?,
        },
    })
}

fn recorded(connection: &Connection, at: Revision) -> Result<Option<Record>, Error> {
    let mut statement = connection.prepare_cached(RECORD).map_err(unavailable)?;
    let mut rows = statement.query([integer(at)]).map_err(unavailable)?;
    match rows.next().map_err(unavailable)? {
        None => Ok(None),
        Some(row) => {
            Ok(Some(Record { revision: revision(row, 0)?, uid: Uid(text(row, 1)?), value: bytes(row, 2)? }))
        }
    }
}

/// One object, as of now or of a revision.
pub fn get(connection: &Connection, key: &ObjectKey, at: Option<Revision>) -> Result<Option<Stored>, Error> {
    let Some(at) = at else { return head(connection, key) };
    let snapshot = connection.unchecked_transaction().map_err(unavailable)?;
    let at = as_of(Some(at), clock(&snapshot)?)?;
    if let Some(stored) = head(&snapshot, key)?
        && stored.revision <= at
    {
        return Ok(Some(stored));
    }
    superseded(&snapshot, key, at)
}

fn head(connection: &Connection, key: &ObjectKey) -> Result<Option<Stored>, Error> {
    let mut statement = connection.prepare_cached(HEAD).map_err(unavailable)?;
    let mut rows =
        statement.query(params![key.resource.as_str(), key.namespace, key.name]).map_err(unavailable)?;
    rows.next().map_err(unavailable)?.map(|row| stored(row, key.clone())).transpose()
}

/// The version that was current at `at` and no longer is.
fn superseded(connection: &Connection, key: &ObjectKey, at: Revision) -> Result<Option<Stored>, Error> {
    let mut statement = connection.prepare_cached(SUPERSEDED).map_err(unavailable)?;
    let mut rows = statement
        .query(params![key.resource.as_str(), key.namespace, key.name, integer(at)])
        .map_err(unavailable)?;
    match rows.next().map_err(unavailable)? {
        Some(row) if revision(row, 4)? > at => stored(row, key.clone()).map(Some),
        _ => Ok(None),
    }
}

/// A row of revision, uid, version_at, value.
pub fn stored(row: &Row<'_>, key: ObjectKey) -> Result<Stored, Error> {
    Ok(Stored {
        key,
        revision: revision(row, 0)?,
        uid: Uid(text(row, 1)?),
        version_at: offset(row, 2)?,
        value: bytes(row, 3)?,
    })
}

/// A piece of the log.
pub fn changes(
    connection: &Connection,
    of: Option<&Resource>,
    after: Revision,
    bound: Bound,
) -> Result<Changes, Error> {
    let snapshot = connection.unchecked_transaction().map_err(unavailable)?;
    let clock = clock(&snapshot)?;
    not_compacted(after, clock)?;
    let limit = i64::try_from(bound.changes).unwrap_or(i64::MAX);
    let sql = if of.is_some() { LOG_OF_RESOURCE } else { LOG };
    let mut statement = snapshot.prepare_cached(sql).map_err(unavailable)?;
    let mut rows = match of {
        Some(resource) => statement.query(params![integer(after), limit, resource.as_str()]),
        None => statement.query(params![integer(after), limit]),
    }
    .map_err(unavailable)?;
    let mut changes = Vec::new();
    let mut size = 0;
    while let Some(row) = rows.next().map_err(unavailable)? {
        let change = change(row)?;
        size += change.value.len();
        changes.push(change);
        if size >= bound.bytes {
            break;
        }
    }
    let cut = size >= bound.bytes || changes.len() >= bound.changes;
    let last = changes.last().map(|change: &Change| change.revision);
    Ok(Changes { through: last.filter(|_| cut).unwrap_or(clock.current), changes })
}

fn change(row: &Row<'_>) -> Result<Change, Error> {
    let code: i16 = row.get(5).map_err(unavailable)?;
    let previous = revision(row, 6)?;
    if previous > Revision::ZERO && row.get_ref(8).map_err(unavailable)? == ValueRef::Null {
        return Err(corrupt(format!("version {previous} is missing from the log")));
    }
    Ok(Change {
        revision: revision(row, 0)?,
        key: ObjectKey {
            resource: Resource::from_text(&text(row, 1)?),
            namespace: text(row, 2)?,
            name: text(row, 3)?,
        },
        uid: Uid(text(row, 4)?),
        action: Action::from_code(code).ok_or_else(|| corrupt(format!("there is no action {code}")))?,
        previous,
        attributes: attributes(row, 7)?,
        previous_attributes: attributes(row, 8)?,
        version_at: offset(row, 9)?,
        value: bytes(row, 10)?,
    })
}

/// The newest revision that was committed at `at` (Unix time in milliseconds) or before, by a binary search over the log; the mark
/// if there is none above it.
pub fn committed_by(connection: &Connection, at: i64) -> Result<Revision, Error> {
    let snapshot = connection.unchecked_transaction().map_err(unavailable)?;
    let clock = clock(&snapshot)?;
    let mut probe =
        snapshot.prepare_cached("SELECT at FROM changes WHERE revision = ?1").map_err(unavailable)?;
    let (mut known, mut beyond) = (clock.compacted, clock.current.next());
    while known.next() < beyond {
        let middle = Revision(known.0 + (beyond.0 - known.0) / 2);
        let committed: Option<i64> =
            probe.query_row([integer(middle)], |row| row.get(0)).optional().map_err(unavailable)?;
        // Above the mark only the first revision of a database is without a change, and it is as old as the database.
        if committed.is_none_or(|committed| committed <= at) {
            known = middle;
        } else {
            beyond = middle;
        }
    }
    Ok(known)
}
