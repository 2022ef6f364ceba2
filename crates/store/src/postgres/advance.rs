//! Advancing the clock, with the mark at it: every revision before it expires, and none of them is given out again.

use model::Revision;

use super::failure::{Failure, corrupt};
use super::locks;
use super::rows::{integer, revision};
use super::session::{STATEMENT_TIMEOUT, Session};
use crate::types::{ClockState, Error};

const ADVANCE: &str = "
    WITH next AS MATERIALIZED (SELECT greatest($1, t.revision + 1) AS revision FROM clock t), marked AS (
        UPDATE compaction m SET compacted = next.revision FROM next WHERE m.id
    )
    UPDATE clock t SET revision = next.revision, at = statement_timestamp() FROM next WHERE t.id
    RETURNING t.revision, pg_notify('orlop', t.revision::text)";

/// Advances the clock to a revision, or by one where it is there already.
pub async fn advance(session: &mut Session, to: Revision) -> Result<ClockState, Error> {
    let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {}", locks::wait_for(locks::COMMIT));
    execute(session, &begin).await?;
    let rows = session.query(ADVANCE, &[&integer(to)]).await?;
    let current = revision(rows.first().ok_or_else(|| corrupt("the clock is missing"))?, 0)?;
    execute(session, "COMMIT").await?;
    Ok(ClockState { current, compacted: current })
}

async fn execute(session: &mut Session, sql: &str) -> Result<(), Failure> {
    session.driver.within(STATEMENT_TIMEOUT, session.client.batch_execute(sql)).await
}
