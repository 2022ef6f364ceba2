//! Reading one object, the clock, and the log.
//!
//! Every read is one statement, so its result and the compaction mark are of one committed state.

use std::time::Duration;

use model::{ObjectKey, Resource, Revision};
use tokio_postgres::Row;

use super::failure::corrupt;
use super::gets::of_key;
use super::limits::is_storable;
use super::readers::{Query, Readers};
use super::rows::{self, get, integer, optional_revision};
use crate::engine::{Bound, Changes};
use crate::listing::{as_of, not_compacted};
use crate::types::{ClockState, Error, Stored};

const CLOCK: &str = "SELECT t.revision, m.compacted FROM clock t CROSS JOIN compaction m";

/// The head if it was current then, or the version that was superseded since.
const VERSION: &str = "
    SELECT (SELECT t.revision FROM clock t), (SELECT m.compacted FROM compaction m),
           v.revision, v.uid, v.version_at, v.value
    FROM (VALUES (true)) AS one LEFT JOIN LATERAL (
        SELECT k.revision, c.uid, c.version_at, c.value
        FROM (
            (SELECT h.revision FROM heads h
             WHERE h.resource = $1 AND h.namespace = $2 AND h.name = $3 AND h.revision <= $4)
            UNION ALL
            (SELECT s.revision FROM (
                SELECT s.revision, s.superseded_by FROM history s
                WHERE s.resource = $1 AND s.namespace = $2 AND s.name = $3 AND s.revision <= $4
                ORDER BY s.resource DESC, s.namespace DESC, s.name DESC, s.revision DESC LIMIT 1
            ) s WHERE s.superseded_by > $4)
        ) k
        LEFT JOIN LATERAL (
            SELECT c.uid, c.version_at, c.value FROM changes c WHERE c.revision = k.revision OFFSET 0
        ) c ON true
    ) v ON true";

/// A piece of the log. A value is left out once those before it take too many bytes.
macro_rules! log {
    ($which:literal) => {
        concat!(
            "
    SELECT (SELECT t.revision FROM clock t), (SELECT m.compacted FROM compaction m),
           p.revision, p.resource, p.namespace, p.name, p.uid, p.action, p.previous,
           p.attributes, p.before, p.version_at, CASE WHEN p.bytes < $3 THEN p.value END
    FROM (VALUES (true)) AS one LEFT JOIN LATERAL (
        SELECT c.*, b.attributes AS before,
               coalesce(sum(octet_length(c.value)) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes
        FROM (SELECT * FROM changes c WHERE ",
            $which,
            " LIMIT $2) c
        LEFT JOIN LATERAL (
            SELECT b.attributes FROM changes b WHERE b.revision = c.previous AND c.previous > 0 OFFSET 0
        ) b ON true
    ) p ON true"
        )
    };
}

const LOG: &str = log!("c.revision > $1 ORDER BY c.revision");

/// Written such that only the index by resource has the order.
const LOG_OF_RESOURCE: &str =
    log!("(c.resource, c.revision) > ($4, $1) AND c.resource <= $4 ORDER BY c.resource, c.revision");

/// The newest revision that is old enough, by a binary search over the log; the mark if there is none above it. Above the mark
/// only the first revision of a database is without a change, and it is as old as the database.
const COMMITTED_BY: &str = "
    WITH RECURSIVE search (low, high, till) AS (
        SELECT m.compacted, t.revision, clock_timestamp() - make_interval(secs => $1)
        FROM clock t CROSS JOIN compaction m
        UNION ALL
        SELECT CASE WHEN old THEN middle ELSE low END, CASE WHEN old THEN high ELSE middle - 1 END, till
        FROM (
            SELECT s.low, s.high, s.till, s.middle,
                   coalesce((SELECT c.at <= s.till FROM changes c WHERE c.revision = s.middle), true) AS old
            FROM (SELECT low, high, till, (low + high + 1) / 2 AS middle FROM search WHERE low < high) s
        ) s
    )
    SELECT low FROM search WHERE low >= high";

/// All ages beyond this are alike, and PostgreSQL's intervals end here.
const AGE_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The clock.
pub async fn clock(readers: &Readers) -> Result<ClockState, Error> {
    rows::clock(first(&readers.query(Query::new(CLOCK)).await?)?, 0)
}

/// One object, as of now or of a revision.
pub async fn object(
    readers: &Readers,
    key: &ObjectKey,
    at: Option<Revision>,
) -> Result<Option<Stored>, Error> {
    if !is_storable(key) {
        return match at {
            None => Ok(None),
            Some(_) => as_of(at, clock(readers).await?).map(|_| None),
        };
    }
    let Some(revision) = at else { return readers.get(key.clone()).await };
    let found = readers.query(of_key(Query::new(VERSION), key).with(integer(revision))).await?;
    let row = first(&found)?;
    as_of(at, rows::clock(row, 0)?)?;
    match optional_revision(row, 2)? {
        None => Ok(None),
        Some(then) if get::<Option<&str>>(row, 3)?.is_none() => Err(missing(then)),
        Some(_) => rows::stored(row, 2, key.clone()).map(Some),
    }
}

/// A piece of the log.
pub async fn changes(
    readers: &Readers,
    of: Option<&Resource>,
    after: Revision,
    bound: Bound,
) -> Result<Changes, Error> {
    let limit = i64::try_from(bound.changes).unwrap_or(i64::MAX);
    let bytes = i64::try_from(bound.bytes.max(1)).unwrap_or(i64::MAX);
    let mut query = Query::new(if of.is_some() { LOG_OF_RESOURCE } else { LOG });
    query = query.with(integer(after)).with(limit).with(bytes);
    if let Some(resource) = of {
        query = query.with(resource.as_str().to_owned());
    }
    let found = readers.query(query).await?;
    let clock = rows::clock(first(&found)?, 0)?;
    not_compacted(after, clock)?;
    let mut changes = Vec::with_capacity(found.len());
    let mut cut = found.len() >= bound.changes;
    for row in &found {
        if optional_revision(row, 2)?.is_none() {
            break;
        }
        if get::<Option<&[u8]>>(row, 12)?.is_none() {
            cut = true;
            break;
        }
        changes.push(rows::change(row, 2)?);
    }
    if of.is_none() {
        without_gaps(after, changes.iter().map(|change| change.revision), clock)?;
    }
    let last = changes.last().map(|change| change.revision);
    Ok(Changes { through: last.filter(|_| cut).unwrap_or(clock.current), changes })
}

/// Fails on a gap: a watch would miss the change for ever.
fn without_gaps(
    after: Revision,
    revisions: impl Iterator<Item = Revision>,
    clock: ClockState,
) -> Result<(), Error> {
    // The clock starts at 1, which is no change.
    let mut expected = after.max(Revision(1));
    for revision in revisions {
        expected = expected.next();
        if revision != expected || revision > clock.current {
            return Err(missing(expected));
        }
    }
    Ok(())
}

/// The newest revision that was committed at least `age` ago, by the clock of the database's server.
pub async fn older_than(readers: &Readers, age: Duration) -> Result<Revision, Error> {
    let query = Query::new(COMMITTED_BY).with(age.min(AGE_MAX).as_secs_f64());
    rows::revision(first(&readers.query(query).await?)?, 0)
}

/// The first row. A statement that always returns one returned none: the row of the clock or of the mark is
/// gone.
pub fn first(found: &[Row]) -> Result<&Row, Error> {
    found.first().ok_or_else(|| corrupt("the clock is missing"))
}

/// Error for a version that has to exist and does not.
pub fn missing(revision: Revision) -> Error {
    corrupt(format!("version {revision} is missing from the log"))
}

/// All statements, each with its purpose and its number of parameters.
#[cfg(test)]
pub fn statements() -> [(&'static str, &'static str, usize); 5] {
    [
        ("clock", CLOCK, 0),
        ("version", VERSION, 4),
        ("log", LOG, 3),
        ("log of a resource", LOG_OF_RESOURCE, 4),
        ("committed by", COMMITTED_BY, 1),
    ]
}
