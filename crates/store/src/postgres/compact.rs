//! One step of compaction: two statements that no commit ever waits for.

use model::Revision;

use super::locks;
use super::read::first;
use super::readers::{Query, Readers};
use super::rows::{get, integer, revision};
use crate::engine::Sweep;
use crate::types::{Action, Error};

/// Raises the mark, unless it would pass the clock.
const MARK: &str = "
    WITH raised AS (
        UPDATE compaction m SET compacted = $1 FROM clock t
        WHERE m.id AND m.compacted < $1 AND $1 <= t.revision
        RETURNING m.compacted
    )
    SELECT t.revision FROM clock t";

/// Removes the versions that the changes of a range replaced, and their deletions: no reader at or above its
/// end can see them.
///
/// A range has a fixed number of changes, whatever their revisions are: an advanced clock skips many.
///
/// The range is read before the lock is taken, so the previous holder may have swept it already: then it is
/// swept twice, which finds nothing and changes nothing.
const SWEEP: &str = "
    WITH turn AS MATERIALIZED (
        SELECT m.swept AS low,
               coalesce((
                   SELECT c.revision FROM changes c WHERE c.revision > m.swept AND c.revision <= m.compacted
                   ORDER BY c.revision LIMIT 1 OFFSET $1::bigint - 1
               ), m.compacted) AS high,
               pg_try_advisory_xact_lock($2, $3) AS held
        FROM compaction m
    ), gone AS MATERIALIZED (
        SELECT c.revision, c.previous, c.action, c.resource, c.namespace, c.name
        FROM turn CROSS JOIN LATERAL (
            SELECT * FROM changes c WHERE turn.held AND c.revision > turn.low AND c.revision <= turn.high OFFSET 0
        ) c
    ), forget AS (
        DELETE FROM changes WHERE ctid = ANY (ARRAY (
            SELECT c.ctid
            FROM (SELECT previous AS revision FROM gone WHERE previous > 0
                  UNION ALL SELECT revision FROM gone WHERE action = $4) g
            CROSS JOIN LATERAL (SELECT c.ctid FROM changes c WHERE c.revision = g.revision OFFSET 0) c
        )) RETURNING (octet_length(value) + octet_length(attributes))::bigint AS bytes
    ), unkeep AS (
        DELETE FROM history WHERE ctid = ANY (ARRAY (
            SELECT s.ctid FROM gone g CROSS JOIN LATERAL (
                SELECT s.ctid FROM history s
                WHERE s.resource = g.resource AND s.namespace = g.namespace AND s.name = g.name
                  AND s.revision = g.previous OFFSET 0
            ) s
        ))
    ), mark AS (
        UPDATE compaction m SET
            swept = greatest(m.swept, turn.high),
            swept_bytes = m.swept_bytes + (SELECT coalesce(sum(f.bytes), 0)::bigint FROM forget f)
        FROM turn WHERE m.id AND turn.held
    )
    SELECT turn.held, turn.high FROM turn";

/// Removes counts of zero. A row that another session is writing is left for the next time, so that neither
/// waits.
const UNCOUNT: &str = "
    DELETE FROM counts WHERE ctid = ANY (ARRAY (
        SELECT n.ctid FROM counts n WHERE n.objects = 0 LIMIT 1000 FOR UPDATE SKIP LOCKED
    )) AND objects = 0";

/// The bytes of values and attributes that are history.
const HISTORY_BYTES: &str = "
    SELECT greatest(t.kept_bytes - m.swept_bytes, 0) FROM clock t CROSS JOIN compaction m";

/// The bytes of values and attributes that are history.
pub async fn history_bytes(readers: &Readers) -> Result<u64, Error> {
    let found = readers.query(Query::new(HISTORY_BYTES)).await?;
    Ok(get::<i64>(first(&found)?, 0)?.unsigned_abs())
}

/// Raises the mark, then sweeps at most `limit` revisions below it.
pub async fn compact(readers: &Readers, through: Revision, limit: u64) -> Result<Sweep, Error> {
    let found = readers.query(Query::new(MARK).with(integer(through))).await?;
    let current = revision(first(&found)?, 0)?;
    if through > current {
        return Err(Error::Future { requested: through, current });
    }
    let limit = i64::try_from(limit).unwrap_or(i64::MAX / 2);
    let locks::AdvisoryLock { class, key } = locks::SWEEP;
    let sweep = Query::new(SWEEP).with(limit).with(class).with(key).with(Action::Delete.code());
    let found = readers.query(sweep).await?;
    let row = first(&found)?;
    if !get::<bool>(row, 0)? {
        return Ok(Sweep::Busy);
    }
    if revision(row, 1)? < through {
        return Ok(Sweep::More);
    }
    readers.query(Query::new(UNCOUNT)).await?;
    Ok(Sweep::Done)
}

/// All statements, each with its purpose and its number of parameters.
#[cfg(test)]
pub fn statements() -> [(&'static str, &'static str, usize); 4] {
    [("mark", MARK, 1), ("sweep", SWEEP, 4), ("uncount", UNCOUNT, 0), ("history bytes", HISTORY_BYTES, 0)]
}
