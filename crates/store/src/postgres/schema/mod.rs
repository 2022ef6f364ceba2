//! The tables, as numbered migrations: a database of an older version is migrated, one of a newer version is
//! refused.

use super::address::Address;
use super::failure::Failure;
use super::locks;
use super::session::{STATEMENT_TIMEOUT, Session};
use crate::types::Error;

/// The oldest PostgreSQL that is tested.
const OLDEST: i32 = 15;

/// Step `n` brings version `n` to version `n + 1`. A step that was released is never changed.
pub const STEPS: &[&str] = &[include_str!("0001.sql"), include_str!("0002.sql"), include_str!("0003.sql")];

/// Migrates the database to the version of this program. Of several servers that start at once one does it.
pub async fn migrate(session: &mut Session, address: &Address) -> Result<(), Error> {
    let found = look(session).await.map_err(|failure| failure.on_open(address))?;
    found.check(address, STEPS.len())?;
    // A database that is up to date is not written to, so that a server can start on one that is read-only
    // for now.
    if found.version == STEPS.len() {
        return Ok(());
    }
    bring_forward(session, STEPS).await.map_err(|failure| failure.on_open(address))
}

/// Refuses a database that does not have the version of this program, and changes nothing.
pub async fn check(session: &mut Session, address: &Address) -> Result<(), Error> {
    let found = look(session).await.map_err(|failure| failure.on_open(address))?;
    found.check(address, STEPS.len())?;
    if found.version == STEPS.len() {
        return Ok(());
    }
    let place = address.place();
    let reason = format!(
        "the database of {place} is empty or of an older version: start a server on it once, which brings it forward"
    );
    Err(Error::Open { reason })
}

/// State of the tables.
struct SchemaState {
    postgres: i32,
    encoding: String,
    foreign: bool,
    version: usize,
}

impl SchemaState {
    fn check(&self, address: &Address, known: usize) -> Result<(), Error> {
        let place = address.place();
        let Self { postgres, encoding, version, .. } = self;
        let reason = if postgres / 10_000 < OLDEST {
            let major = postgres / 10_000;
            format!("PostgreSQL at {place} is version {major}: use {OLDEST} or newer")
        } else if encoding != "UTF8" {
            format!("the database of {place} has the encoding {encoding}: create one with ENCODING 'UTF8'")
        } else if self.foreign {
            format!(
                "the schema orlop in the database of {place} is not of this program: use another database"
            )
        } else if *version > known {
            format!(
                "the database of {place} has schema version {version} and this program knows only up to {known}: \
                 use the newer program that wrote it"
            )
        } else {
            return Ok(());
        };
        Err(Error::Open { reason })
    }
}

async fn look(session: &mut Session) -> Result<SchemaState, Failure> {
    let rows = session
        .query(
            "SELECT current_setting('server_version_num')::integer, current_setting('server_encoding'),
                    to_regclass('orlop.migrations') IS NOT NULL,
                    EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace('orlop'))",
            &[],
        )
        .await?;
    let row = rows.first().ok_or(Failure::Late)?;
    let (ours, any): (bool, bool) = (row.try_get(2)?, row.try_get(3)?);
    let version = if ours { version(session).await? } else { 0 };
    Ok(SchemaState { postgres: row.try_get(0)?, encoding: row.try_get(1)?, foreign: any && !ours, version })
}

async fn version(session: &mut Session) -> Result<usize, Failure> {
    let rows = session.query("SELECT coalesce(max(version), 0) FROM orlop.migrations", &[]).await?;
    let row = rows.first().ok_or(Failure::Late)?;
    Ok(usize::try_from(row.try_get::<_, i32>(0)?).unwrap_or_default())
}

/// Runs the missing migrations, all or none.
pub async fn bring_forward(session: &mut Session, steps: &[&str]) -> Result<(), Failure> {
    execute(session, &format!("BEGIN; {}", locks::wait_for(locks::MIGRATION))).await?;
    // The table and not `to_regnamespace`, which may answer from a cache older than the lock.
    let rows = session.query("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'orlop')", &[]).await?;
    let exists = rows.first().is_some_and(|row| row.get(0));
    if !exists {
        // Not `IF NOT EXISTS`, which needs the privilege to create even if there is nothing to create.
        execute(session, "CREATE SCHEMA orlop").await?;
    }
    execute(
        session,
        "CREATE TABLE IF NOT EXISTS orlop.migrations (
            version integer PRIMARY KEY,
            at timestamptz NOT NULL DEFAULT now()
         )",
    )
    .await?;
    let done = version(session).await?;
    for (number, step) in (1..).zip(steps).skip(done) {
        execute(session, step).await?;
        execute(session, &format!("INSERT INTO orlop.migrations (version) VALUES ({number})")).await?;
    }
    execute(session, "COMMIT").await
}

async fn execute(session: &mut Session, sql: &str) -> Result<(), Failure> {
    session.driver.within(STATEMENT_TIMEOUT, session.client.batch_execute(sql)).await
}
