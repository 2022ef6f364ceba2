//! Committing a batch: load, plan, apply, in one transaction.

use std::collections::HashMap;
use std::time::SystemTime;

use model::{ObjectKey, Revision, Uid};
use rusqlite::{Connection, Transaction as Tx, TransactionBehavior, params};

use super::error::{corrupt, unavailable};
use super::read::{attributes, bytes, clock, integer, revision, text};
use crate::engine::{Committed, Transaction};
use crate::plan::{
    BatchPlan, CountMove, Entry, Head, HeadMove, Superseded, Wanted, plan, target_letter, wanted,
};
use crate::types::{ClockState, Error};

/// Commits a batch.
pub fn commit(connection: &mut Connection, batch: Vec<Transaction>) -> Result<Committed, Error> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(unavailable)?;
    let clock = clock(&tx)?;
    let heads = load(&tx, &wanted(&batch))?;
    let plan = plan(batch, heads, clock.current);
    if !plan.changes.is_empty() {
        apply(&tx, &plan, now())?;
        tx.commit().map_err(unavailable)?;
    }
    Ok(Committed { outcomes: plan.outcomes, changes: plan.changes })
}

/// Advances the clock and the mark with it, and begins another incarnation.
pub fn advance(connection: &mut Connection, to: Revision) -> Result<ClockState, Error> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(unavailable)?;
    let current = to.max(clock(&tx)?.current.next());
    let advance = "UPDATE clock SET revision = ?1, compacted = ?1, incarnation = lower(hex(randomblob(16)))";
    tx.execute(advance, [integer(current)]).map_err(unavailable)?;
    tx.commit().map_err(unavailable)?;
    Ok(ClockState { current, compacted: current })
}

/// Unix time in milliseconds.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn load(tx: &Tx<'_>, wanted: &[Wanted<'_>]) -> Result<HashMap<ObjectKey, Head>, Error> {
    let mut statement = tx
        .prepare_cached(
            "SELECT c.revision, c.uid, c.attributes, iif(?4, c.value, NULL), length(c.value) + length(c.attributes)
             FROM heads h JOIN changes c ON c.revision = h.revision
             WHERE h.resource = ?1 AND h.namespace = ?2 AND h.name = ?3",
        )
        .map_err(unavailable)?;
    let mut heads = HashMap::with_capacity(wanted.len());
    for Wanted { key, value } in wanted {
        let mut rows = statement
            .query(params![key.resource.as_str(), key.namespace, key.name, value])
            .map_err(unavailable)?;
        if let Some(row) = rows.next().map_err(unavailable)? {
            let head = Head {
                revision: revision(row, 0)?,
                uid: Uid(text(row, 1)?),
                attributes: attributes(row, 2)?,
                value: if *value { Some(bytes(row, 3)?) } else { None },
                bytes: row.get::<_, i64>(4).map_err(unavailable)?.unsigned_abs(),
            };
            heads.insert((*key).clone(), head);
        }
    }
    Ok(heads)
}

fn apply(tx: &Tx<'_>, plan: &BatchPlan, at: i64) -> Result<(), Error> {
    append(tx, plan, at)
        .and_then(|()| keep(tx, plan))
        .and_then(|()| move_heads(tx, plan))
        .and_then(|()| index(tx, plan))
        .and_then(|()| plan.counts.iter().try_for_each(|count| add_count(tx, count)))
        .map_err(unavailable)?;
    let ticked = tx
        .prepare_cached("UPDATE clock SET revision = ?1, kept_bytes = kept_bytes + ?2 WHERE revision < ?1")
        .and_then(|mut statement| {
            let kept = i64::try_from(plan.history_bytes).unwrap_or(i64::MAX);
            statement.execute([integer(plan.revision), kept])
        })
        .map_err(unavailable)?;
    if ticked == 1 { Ok(()) } else { Err(corrupt("the clock is not one row")) }
}

fn append(tx: &Tx<'_>, plan: &BatchPlan, at: i64) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO changes
         (revision, resource, namespace, name, uid, action, previous, at, attributes, version_at, value)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    for change in &plan.changes {
        statement.execute(params![
            integer(change.revision),
            change.key.resource.as_str(),
            change.key.namespace,
            change.key.name,
            change.uid.0,
            change.action.code(),
            integer(change.previous),
            at,
            change.attributes.to_bytes(),
            i64::try_from(change.version_at).unwrap_or(i64::MAX),
            &change.value[..],
        ])?;
    }
    Ok(())
}

fn keep(tx: &Tx<'_>, plan: &BatchPlan) -> rusqlite::Result<()> {
    let mut keep = tx.prepare_cached(
        "INSERT INTO history (resource, namespace, name, revision, superseded_by) VALUES (?, ?, ?, ?, ?)",
    )?;
    for Superseded { key, revision, by } in &plan.history {
        let (revision, by) = (integer(*revision), integer(*by));
        keep.execute(params![key.resource.as_str(), key.namespace, key.name, revision, by])?;
    }
    Ok(())
}

fn move_heads(tx: &Tx<'_>, plan: &BatchPlan) -> rusqlite::Result<()> {
    let mut set = tx.prepare_cached(
        "INSERT INTO heads (resource, namespace, name, revision) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (resource, namespace, name) DO UPDATE SET revision = excluded.revision",
    )?;
    let mut remove =
        tx.prepare_cached("DELETE FROM heads WHERE resource = ?1 AND namespace = ?2 AND name = ?3")?;
    for HeadMove { key, revision, .. } in &plan.heads {
        let (resource, namespace, name) = (key.resource.as_str(), &key.namespace, &key.name);
        match revision {
            Some(revision) => set.execute(params![resource, namespace, name, integer(*revision)])?,
            None => remove.execute(params![resource, namespace, name])?,
        };
    }
    Ok(())
}

fn index(tx: &Tx<'_>, plan: &BatchPlan) -> rusqlite::Result<()> {
    let mut remove = tx.prepare_cached(
        "DELETE FROM entries WHERE resource = ?1 AND target = ?2 AND key = ?3 AND value = ?4
         AND namespace = ?5 AND name = ?6",
    )?;
    let mut add = tx.prepare_cached(
        "INSERT INTO entries (resource, target, key, value, namespace, name) VALUES (?, ?, ?, ?, ?, ?)",
    )?;
    for HeadMove { key: of, added, removed, .. } in &plan.heads {
        for (statement, entries) in [(&mut remove, removed), (&mut add, added)] {
            for Entry { target, key, value } in entries {
                let target = target_letter(*target);
                statement.execute(params![
                    of.resource.as_str(),
                    target,
                    key,
                    value,
                    of.namespace,
                    of.name
                ])?;
            }
        }
    }
    Ok(())
}

fn add_count(tx: &Tx<'_>, count: &CountMove) -> rusqlite::Result<()> {
    let resource = count.resource.as_str();
    tx.prepare_cached(
        "INSERT INTO counts (resource, namespace, objects) VALUES (?1, ?2, ?3)
         ON CONFLICT (resource, namespace) DO UPDATE SET objects = objects + excluded.objects",
    )?
    .execute(params![resource, count.namespace, count.delta])?;
    if count.delta < 0 {
        // An empty namespace has no row: lists by name go through the rows.
        tx.prepare_cached("DELETE FROM counts WHERE resource = ?1 AND namespace = ?2 AND objects = 0")?
            .execute(params![resource, count.namespace])?;
    }
    Ok(())
}
