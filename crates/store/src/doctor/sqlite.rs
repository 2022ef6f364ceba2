//! The checks of a database file.

use std::path::Path;

use rusqlite::{Connection, params};

use super::queries::{self, Dialect};
use super::{IndexCheck, RESTORE, Report};
use crate::plan::target_letter;
use crate::sqlite::connect_to_check;
use crate::types::Error;

const DIALECT: Dialect = Dialect { marks: "clock" };

const FILE: &str = "the file is a sound SQLite database";

const HEADS: &str = "
    SELECT h.resource, h.namespace, h.name, c.attributes FROM heads h JOIN changes c ON c.revision = h.revision";

const ENTRY: &str = "
    SELECT EXISTS (SELECT 1 FROM entries WHERE resource = ?1 AND target = ?2 AND key = ?3 AND value = ?4
                   AND namespace = ?5 AND name = ?6)";

/// Checks the database of a server that is not running. It changes nothing, not even the write-ahead log.
///
/// # Errors
/// When the file cannot be opened, or a server holds it. A violated invariant is a finding, not an error.
pub fn sqlite(database: &Path) -> Result<Report, Error> {
    let (connection, _lock) = connect_to_check(database)?;
    let mut report = Report::default();
    let sound = integrity(&connection).unwrap_or_else(|error| vec![error.to_string()]);
    report.note(FILE, RESTORE, sound);
    for query in queries::all(DIALECT) {
        let found = texts(&connection, &query.sql).unwrap_or_else(|error| vec![error.to_string()]);
        report.note(query.check, query.remedy, found);
    }
    let mut check = IndexCheck::default();
    match index(&connection, &mut check) {
        Ok(actual) => check.finish(actual, &mut report),
        Err(error) => report.note(super::INDEX, RESTORE, vec![error.to_string()]),
    }
    Ok(report)
}

fn integrity(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let lines = texts(connection, "PRAGMA integrity_check(4)")?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

fn texts(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// Looks up each entry that a head must have; returns the number of entries in the index.
fn index(connection: &Connection, check: &mut IndexCheck) -> rusqlite::Result<i64> {
    let (mut heads, mut entry) = (connection.prepare(HEADS)?, connection.prepare(ENTRY)?);
    let mut rows = heads.query([])?;
    while let Some(row) = rows.next()? {
        let (resource, namespace, name): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let object = format!("{resource} {namespace}/{name}");
        let Some(attributes) = model::Attributes::from_bytes(row.get_ref(3)?.as_bytes()?) else {
            check.missing.push(format!("the labels of {object} cannot be read"));
            continue;
        };
        for of in check.entries(&attributes) {
            let target = target_letter(of.target);
            let parameters = params![resource, target, of.key, of.value, namespace, name];
            if !entry.query_row(parameters, |row| row.get::<_, bool>(0))? {
                check.miss(&object, &of);
            }
        }
    }
    connection.query_row("SELECT count(*) FROM entries", [], |row| row.get(0))
}
