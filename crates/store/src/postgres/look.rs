//! Statements that compare a PostgreSQL with the known history, and those that advance its clock.

use model::{Revision, Uid};
use tokio_postgres::Row;

use super::bell::Ring;
use super::failure::{Failure, corrupt};
use super::locks;
use super::rows::{self, get, integer, optional_revision, value};
use super::session::{STATEMENT_TIMEOUT, Session};
use crate::history::decide::{Identity, ObservedHistory, Record, Verdict, decide};
use crate::history::{Generation, History, Moment};
use crate::types::{ClockState, Error};

/// Every PostgreSQL has it, but some managed ones restrict it.
const SYSTEM: &str = "SELECT system_identifier FROM pg_control_system()";

/// The timeline that is written to. `pg_control_checkpoint` has that of the last checkpoint, which may
/// precede a promotion.
const TIMELINE: &str = "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)";

/// The clock, the incarnation, and the change at a revision, in one state.
const FOUND: &str = "
    SELECT t.revision, m.compacted, i.incarnation::text, i.system, i.timeline, i.relation,
           'orlop.clock'::regclass::oid::bigint, c.revision, c.uid, c.value
    FROM clock t CROSS JOIN compaction m CROSS JOIN incarnation i LEFT JOIN LATERAL (
        SELECT c.revision, c.uid, c.value FROM changes c WHERE c.revision = $1 OFFSET 0
    ) c ON true";

/// Fills in the parts of an identity that an older version of this program, or a restricted PostgreSQL, left
/// open.
const STAMP: &str = "
    UPDATE incarnation SET system = coalesce(system, $1), timeline = coalesce(timeline, $2),
           relation = coalesce(relation, $3) WHERE id";

/// Another incarnation, at a greater revision.
const ADVANCE: &str = "
    WITH next AS MATERIALIZED (SELECT greatest($1, t.revision + 1) AS revision FROM clock t), marked AS (
        UPDATE compaction m SET compacted = next.revision FROM next WHERE m.id
    ), stamped AS (
        UPDATE incarnation i SET incarnation = gen_random_uuid(), system = $2, timeline = $3, relation = $4 WHERE i.id
    )
    UPDATE clock t SET revision = next.revision, at = statement_timestamp() FROM next WHERE t.id
    RETURNING pg_notify('orlop', t.revision::text)";

/// Checks the database behind a new session, and advances its clock after a loss. Returns the generation of
/// the session.
pub async fn check(session: &mut Session, history: &History, ring: &Ring) -> Result<Generation, Error> {
    let identity = identity(session).await?;
    loop {
        let since = history.now();
        let found = found(session, identity, &since).await?;
        let settled = match decide(since.known.as_ref(), &found) {
            Verdict::Former => return Err(former(&since, &found)),
            Verdict::Same => {
                stamp(session, &found).await;
                history.goes_on(&since, &found)
            }
            Verdict::Advanced => {
                tracing::warn!(
                    clock = %found.clock.current,
                    "another server advanced the clock of the database; ending all watches"
                );
                lose(history, &since, &found, ring)
            }
            Verdict::Lost { .. } => match recover(session, identity, &since).await? {
                None => false,
                Some(advanced) => {
                    tracing::error!(
                        seen = %history.seen(), found = %found.clock.current, now = %advanced.clock.current,
                        identity = ?found.identity, stamped = ?found.stamped,
                        "the database lost commits or moved; advanced its clock, ending all watches"
                    );
                    lose(history, &since, &advanced, ring)
                }
            },
        };
        if settled {
            return Ok(history.generation());
        }
    }
}

/// Ends all watches, unless another session has. Returns false if it has.
fn lose(history: &History, since: &Moment, found: &ObservedHistory, ring: &Ring) -> bool {
    let is_news = history.was_lost(since, found);
    if is_news {
        ring.saw(found.clock.current);
        ring.ring();
    }
    is_news
}

/// Advances the clock to a revision on demand.
pub async fn advance(
    session: &mut Session,
    history: &History,
    ring: &Ring,
    to: Revision,
) -> Result<ClockState, Error> {
    let identity = identity(session).await?;
    begin(session).await?;
    let since = history.now();
    let found = read(session, identity, None).await?;
    let advanced = commit_advance(session, found.identity, to).await?;
    lose(history, &since, &advanced, ring);
    Ok(advanced.clock)
}

/// Advances the clock, unless another session was faster: then the caller checks again.
async fn recover(
    session: &mut Session,
    identity: Identity,
    since: &Moment,
) -> Result<Option<ObservedHistory>, Error> {
    begin(session).await?;
    let found = found(session, identity, since).await?;
    match decide(since.known.as_ref(), &found) {
        Verdict::Lost { advance_to } => commit_advance(session, found.identity, advance_to).await.map(Some),
        _ => {
            execute(session, "ROLLBACK").await?;
            Ok(None)
        }
    }
}

/// Begins a transaction that holds off all other commits.
async fn begin(session: &mut Session) -> Result<(), Failure> {
    let lock = locks::wait_for(locks::COMMIT);
    execute(session, &format!("BEGIN ISOLATION LEVEL READ COMMITTED; {lock}")).await
}

async fn commit_advance(
    session: &mut Session,
    identity: Identity,
    to: Revision,
) -> Result<ObservedHistory, Error> {
    let Identity { system, timeline, relation } = identity;
    session.query(ADVANCE, &[&integer(to), &system, &timeline, &relation]).await?;
    let found = read(session, identity, None).await?;
    execute(session, "COMMIT").await?;
    Ok(found)
}

async fn found(session: &mut Session, identity: Identity, since: &Moment) -> Result<ObservedHistory, Error> {
    let record = since.known.as_ref().and_then(|known| known.record.as_ref());
    read(session, identity, record.map(|record| record.revision)).await
}

async fn read(
    session: &mut Session,
    identity: Identity,
    record: Option<Revision>,
) -> Result<ObservedHistory, Error> {
    let rows = session.query(FOUND, &[&record.map(integer)]).await?;
    let row = rows.first().ok_or_else(|| corrupt("the clock or its incarnation is missing"))?;
    Ok(ObservedHistory {
        identity: Identity { relation: get(row, 6)?, ..identity },
        stamped: Identity { system: get(row, 3)?, timeline: get(row, 4)?, relation: get(row, 5)? },
        incarnation: get(row, 2)?,
        clock: rows::clock(row, 0)?,
        record: match optional_revision(row, 7)? {
            None => None,
            Some(revision) => Some(Record { revision, uid: Uid(get(row, 8)?), value: value(row, 9)? }),
        },
    })
}

/// The place where the database lives, as far as PostgreSQL tells.
async fn identity(session: &mut Session) -> Result<Identity, Error> {
    let system = told(session.query(SYSTEM, &[]).await)?;
    let timeline = told(session.query(TIMELINE, &[]).await)?;
    let timeline: Option<String> = timeline.as_ref().map(|row| get(row, 0)).transpose()?;
    Ok(Identity {
        system: system.as_ref().map(|row| get(row, 0)).transpose()?,
        timeline: timeline.and_then(|digits| i64::from_str_radix(&digits, 16).ok()),
        relation: None,
    })
}

/// A row, unless PostgreSQL refuses to show it.
fn told(answer: Result<Vec<Row>, Failure>) -> Result<Option<Row>, Error> {
    match answer {
        Ok(rows) => Ok(rows.into_iter().next()),
        Err(failure) if failure.is_loss() => Err(failure.into()),
        Err(failure) => {
            tracing::debug!(error = %Error::from(failure), "cannot read a part of the identity of PostgreSQL");
            Ok(None)
        }
    }
}

/// Records the identity. A database that cannot be written to now is stamped by a later session.
async fn stamp(session: &mut Session, found: &ObservedHistory) {
    if !found.identity.adds_to(found.stamped) {
        return;
    }
    let Identity { system, timeline, relation } = found.identity;
    if let Err(failure) = session.query(STAMP, &[&system, &timeline, &relation]).await {
        tracing::debug!(error = %Error::from(failure), "cannot record the identity of the database; a later session retries");
    }
}

fn former(since: &Moment, found: &ObservedHistory) -> Error {
    let seen = since.known.as_ref().and_then(|known| known.identity.timeline).unwrap_or_default();
    let here = found.identity.timeline.unwrap_or_default();
    Error::Unavailable {
        reason: format!(
            "PostgreSQL is on timeline {here} and this server has seen timeline {seen}: it is a former primary; where it was \
             restored on purpose, restart this server"
        ),
    }
}

async fn execute(session: &mut Session, sql: &str) -> Result<(), Failure> {
    session.driver.within(STATEMENT_TIMEOUT, session.client.batch_execute(sql)).await
}

/// All statements, each with its purpose and its number of parameters.
#[cfg(test)]
pub fn statements() -> [(&'static str, &'static str, usize); 3] {
    [("found", FOUND, 1), ("stamp", STAMP, 3), ("advance", ADVANCE, 4)]
}
