//! One step of compaction.

use model::Revision;
use rusqlite::{Connection, OptionalExtension, Transaction as Tx, TransactionBehavior, params};

use super::error::unavailable;
use super::read::{clock, integer, revision, text};
use crate::engine::Sweep;
use crate::types::{Action, Error};

/// Raises the mark, then sweeps at most `limit` revisions below it.
pub fn compact(connection: &mut Connection, through: Revision, limit: u64) -> Result<Sweep, Error> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(unavailable)?;
    let clock = clock(&tx)?;
    if through > clock.current {
        return Err(Error::Future { requested: through, current: clock.current });
    }
    let mark = through.max(clock.compacted);
    let swept =
        tx.query_row("SELECT swept FROM clock", [], |row| row.get::<_, i64>(0)).map_err(unavailable)?;
    // By changes and not by revisions, of which an advanced clock skips many.
    let next = tx
        .prepare_cached(
            "SELECT revision FROM changes WHERE revision > ?1 AND revision <= ?2 ORDER BY revision LIMIT 1 OFFSET ?3",
        )
        .and_then(|mut statement| {
            let before = i64::try_from(limit.saturating_sub(1)).unwrap_or(i64::MAX);
            statement.query_row(params![swept, integer(mark), before], |row| row.get(0)).optional()
        })
        .map_err(unavailable)?
        .unwrap_or(integer(mark));
    let bytes = sweep(&tx, swept, next)?;
    let update = "UPDATE clock SET compacted = ?1, swept = ?2, swept_bytes = swept_bytes + ?3";
    tx.execute(update, params![integer(mark), next, bytes]).map_err(unavailable)?;
    tx.commit().map_err(unavailable)?;
    Ok(if next < integer(mark) { Sweep::More } else { Sweep::Done })
}

/// The bytes of values and attributes that are history.
pub fn history_bytes(connection: &Connection) -> Result<u64, Error> {
    let kept: i64 = connection
        .prepare_cached("SELECT kept_bytes - swept_bytes FROM clock")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(unavailable)?;
    Ok(u64::try_from(kept).unwrap_or_default())
}

/// Removes the versions that the changes in `(from, to]` replaced, and the deletions among them: no reader at or above `to` sees
/// them. Returns the bytes removed.
fn sweep(tx: &Tx<'_>, from: i64, to: i64) -> Result<i64, Error> {
    let mut scan = tx
        .prepare_cached(
            "SELECT revision, previous, action, resource, namespace, name FROM changes
             WHERE revision > ?1 AND revision <= ?2",
        )
        .map_err(unavailable)?;
    let mut rows = scan.query([from, to]).map_err(unavailable)?;
    // All are read before the first is deleted: a later change of this range may have replaced an earlier one.
    let mut replaced = Vec::new();
    let mut deletions = Vec::new();
    while let Some(row) = rows.next().map_err(unavailable)? {
        let previous = revision(row, 1)?;
        if previous > Revision::ZERO {
            replaced.push((previous, text(row, 3)?, text(row, 4)?, text(row, 5)?));
        }
        if row.get::<_, i16>(2).map_err(unavailable)? == Action::Delete.code() {
            deletions.push(revision(row, 0)?);
        }
    }
    let mut forget = tx
        .prepare_cached(
            "DELETE FROM changes WHERE revision = ?1 RETURNING length(value) + length(attributes)",
        )
        .map_err(unavailable)?;
    let mut removed = 0;
    let mut forget = |revision: Revision| -> Result<(), Error> {
        let bytes: Option<i64> =
            forget.query_row([integer(revision)], |row| row.get(0)).optional().map_err(unavailable)?;
        removed += bytes.unwrap_or_default();
        Ok(())
    };
    let mut unkeep = tx
        .prepare_cached(
            "DELETE FROM history WHERE resource = ?1 AND namespace = ?2 AND name = ?3 AND revision = ?4",
        )
        .map_err(unavailable)?;
    for (revision, resource, namespace, name) in replaced {
        forget(revision)?;
        unkeep.execute(params![resource, namespace, name, integer(revision)]).map_err(unavailable)?;
    }
    for revision in deletions {
        forget(revision)?;
    }
    Ok(removed)
}
