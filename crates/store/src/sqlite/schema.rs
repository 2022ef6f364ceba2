//! The tables, as numbered migrations: a database of an older version is migrated, one of a newer version is
//! refused.

use rusqlite::{Connection, TransactionBehavior};

use super::error::{open_failed, unavailable};
use crate::types::Error;

/// Marks a file as this program's ("Orlp"), so that no other program's database is ever migrated.
const APPLICATION_ID: i32 = 0x4f72_6c70;

/// Step `n` brings version `n` to version `n + 1`. A step that was released is never changed.
const STEPS: &[&str] = &[
    // The clock starts at 1: to a Kubernetes client resourceVersion 0 means "any". A change holds its value
    // last, so that a read of the attributes alone never touches the pages of the value.
    "
    CREATE TABLE clock (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        revision INTEGER NOT NULL,
        compacted INTEGER NOT NULL,
        swept INTEGER NOT NULL
    ) STRICT;
    INSERT INTO clock VALUES (1, 1, 0, 0);
    CREATE TABLE changes (
        revision INTEGER PRIMARY KEY,
        resource TEXT NOT NULL,
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        uid TEXT NOT NULL,
        action INTEGER NOT NULL,
        previous INTEGER NOT NULL,
        at INTEGER NOT NULL,
        attributes BLOB NOT NULL,
        version_at INTEGER NOT NULL,
        value BLOB NOT NULL
    ) STRICT;
    CREATE INDEX changes_of_resource ON changes (resource);
    CREATE TABLE heads (
        resource TEXT NOT NULL,
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        revision INTEGER NOT NULL,
        PRIMARY KEY (resource, namespace, name)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE history (
        resource TEXT NOT NULL,
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        revision INTEGER NOT NULL,
        superseded_by INTEGER NOT NULL,
        PRIMARY KEY (resource, namespace, name, revision)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE entries (
        resource TEXT NOT NULL,
        target TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        PRIMARY KEY (resource, target, key, value, namespace, name)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE counts (
        resource TEXT NOT NULL,
        namespace TEXT NOT NULL,
        objects INTEGER NOT NULL,
        PRIMARY KEY (resource, namespace)
    ) STRICT, WITHOUT ROWID;
    ",
    // Bytes of values and attributes that became history, and of those that were swept: the difference is the
    // present size.
    "
    ALTER TABLE clock ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE clock ADD COLUMN swept_bytes INTEGER NOT NULL DEFAULT 0;
    UPDATE clock SET kept_bytes = (
        SELECT coalesce(sum(length(c.value) + length(c.attributes)), 0)
        FROM history h JOIN changes c ON c.revision = h.revision
    ) + (
        SELECT coalesce(sum(length(c.value) + length(c.attributes)), 0)
        FROM changes c WHERE c.revision > clock.swept AND c.action = 3
    );
    ",
    // The incarnation of the history changes with each advance of the clock: a server that finds another one
    // lists again.
    "
    ALTER TABLE clock ADD COLUMN incarnation TEXT NOT NULL DEFAULT '';
    UPDATE clock SET incarnation = lower(hex(randomblob(16)));
    ",
];

/// Migrates a database to the version of this program.
pub fn migrate(connection: &mut Connection, name: &str) -> Result<(), Error> {
    let failed = |error: rusqlite::Error| open_failed(name, &unavailable(error));
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let missing = missing(&tx, name)?;
    if missing.is_empty() {
        return Ok(());
    }
    for step in missing {
        tx.execute_batch(step).map_err(failed)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    tx.pragma_update(None, "user_version", STEPS.len().to_string()).map_err(failed)?;
    tx.commit().map_err(failed)
}

/// Refuses a database that does not have the version of this program, and changes nothing.
pub fn check(connection: &Connection, name: &str) -> Result<(), Error> {
    if missing(connection, name)?.is_empty() {
        return Ok(());
    }
    let reason =
        format!("{name} is empty or of an older version: start a server on it once, which brings it forward");
    Err(Error::Open { reason })
}

/// The migrations that a database lacks.
fn missing(connection: &Connection, name: &str) -> Result<&'static [&'static str], Error> {
    let failed = |error: rusqlite::Error| open_failed(name, &unavailable(error));
    let pragma = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let version = pragma("PRAGMA user_version").map_err(failed)?;
    let tables = pragma("SELECT count(*) FROM sqlite_schema").map_err(failed)?;
    let application = pragma("PRAGMA application_id").map_err(failed)?;
    if tables > 0 && application != i64::from(APPLICATION_ID) {
        return Err(Error::Open {
            reason: format!("{name} is a database of another program: choose another file"),
        });
    }
    let missing = usize::try_from(version).ok().and_then(|done| STEPS.get(done..));
    missing.ok_or_else(|| Error::Open {
        reason: format!(
            "{name} has schema version {version} and this program knows only up to {}: \
                 use the newer program that wrote it",
            STEPS.len()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(connection: &Connection) -> Vec<String> {
        let mut statement = connection
            .prepare("SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1")
            .unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// A database as the program that knew only the first `version` migrations left it.
    fn of_version(version: usize) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        for step in &STEPS[..version] {
            connection.execute_batch(step).unwrap();
        }
        if version > 0 {
            connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        }
        connection.pragma_update(None, "user_version", version.to_string()).unwrap();
        connection
    }

    #[test]
    fn a_database_of_every_older_version_ends_with_the_schema_of_a_fresh_one() {
        let mut fresh = Connection::open_in_memory().unwrap();
        migrate(&mut fresh, "fresh").unwrap();
        for version in 0..=STEPS.len() {
            let mut old = of_version(version);
            migrate(&mut old, "old").unwrap();
            assert_eq!(schema(&old), schema(&fresh), "from version {version}");
            migrate(&mut old, "old").unwrap();
            assert_eq!(schema(&old), schema(&fresh), "from version {version}, twice");
        }
    }

    #[test]
    fn history_of_an_older_version_is_counted() {
        let mut old = of_version(1);
        old.execute_batch(
            "INSERT INTO changes VALUES (2, 'r', 'n', 'a', 'u', 1, 0, 0, x'00', 0, x'000000'),
                (3, 'r', 'n', 'a', 'u', 2, 2, 0, x'00', 0, x'0000'), (4, 'r', 'n', 'b', 'u', 1, 0, 0, x'00', 0, x'00'),
                (5, 'r', 'n', 'b', 'u', 3, 4, 0, x'00', 0, x'0000000000');
             INSERT INTO history VALUES ('r', 'n', 'a', 2, 3), ('r', 'n', 'b', 4, 5);
             INSERT INTO heads VALUES ('r', 'n', 'a', 3);",
        )
        .unwrap();
        migrate(&mut old, "old").unwrap();
        let kept: i64 = old.query_row("SELECT kept_bytes FROM clock", [], |row| row.get(0)).unwrap();
        // The first version of a, the only one of b, and its deletion: all but the head.
        assert_eq!(kept, 4 + 2 + 6);
    }

    #[test]
    fn a_newer_version_is_refused_with_a_remedy() {
        let mut newer = of_version(STEPS.len());
        newer.pragma_update(None, "user_version", (STEPS.len() + 1).to_string()).unwrap();
        let error = migrate(&mut newer, "state.db").unwrap_err();
        assert!(matches!(&error, Error::Open { reason } if reason.contains("state.db has schema version")));
    }

    #[test]
    fn a_database_of_another_program_is_left_alone() {
        let mut other = Connection::open_in_memory().unwrap();
        other.execute_batch("CREATE TABLE theirs (a)").unwrap();
        let error = migrate(&mut other, "state.db").unwrap_err();
        assert!(matches!(&error, Error::Open { reason } if reason.contains("another program")));
        assert_eq!(schema(&other).len(), 1);
    }
}
