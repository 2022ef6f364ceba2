//! The checks of a PostgreSQL database, also while servers use it.

use std::path::Path;

use model::{Attributes, Resource};

use super::queries::{self, Dialect};
use super::{IndexCheck, RESTORE, Report};
use crate::postgres::check::Checker;
use crate::types::Error;

const DIALECT: Dialect = Dialect { marks: "compaction" };

/// Heads per query.
const PAGE: i64 = 500;

const HEADS: &str = "
    SELECT h.resource, h.namespace, h.name, c.attributes FROM heads h JOIN changes c ON c.revision = h.revision
    WHERE (h.resource, h.namespace, h.name) > ($1, $2, $3) ORDER BY h.resource, h.namespace, h.name LIMIT $4";

/// The given entries that exist.
const ENTRIES: &str = "
    SELECT EXISTS (SELECT FROM entries e WHERE e.term = w.term AND e.value = w.value
                   AND e.namespace = w.namespace AND e.name = w.name)
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY
         AS w (term, value, namespace, name, place) ORDER BY w.place";

/// Checks a database in one read-only transaction: all checks see the same commit.
///
/// # Errors
/// When the database cannot be reached, or does not belong to this program. A violated invariant is a
/// finding, not an error.
pub async fn postgres(url: &str, passfile: Option<&Path>) -> Result<Report, Error> {
    let mut checker = Checker::connect(url, passfile).await?;
    let mut report = Report::default();
    for query in queries::all(DIALECT) {
        let rows = checker.query(&query.sql, &[]).await?;
        let found = rows.iter().map(|row| row.get(0)).collect();
        report.note(query.check, query.remedy, found);
    }
    let mut check = IndexCheck::default();
    let actual = index(&mut checker, &mut check).await?;
    check.finish(actual, &mut report);
    Ok(report)
}

async fn index(checker: &mut Checker, check: &mut IndexCheck) -> Result<i64, Error> {
    let mut last = (String::new(), String::new(), String::new());
    loop {
        let rows = checker.query(HEADS, &[&last.0, &last.1, &last.2, &PAGE]).await?;
        let Some(end) = rows.last() else { break };
        last = (end.get(0), end.get(1), end.get(2));
        let (mut terms, mut values, mut namespaces, mut names) = (vec![], vec![], vec![], vec![]);
        let mut wanted = Vec::new();
        for row in &rows {
            let (resource, namespace, name): (String, String, String) = (row.get(0), row.get(1), row.get(2));
            let object = format!("{resource} {namespace}/{name}");
            let Some(attributes) = Attributes::from_bytes(row.get(3)) else {
                check.missing.push(format!("the labels of {object} cannot be read"));
                continue;
            };
            for entry in check.entries(&attributes) {
                let (term, value) = Checker::numbers(&Resource::from_text(&resource), &entry);
                terms.push(term);
                values.push(value);
                namespaces.push(namespace.clone());
                names.push(name.clone());
                wanted.push((object.clone(), entry));
            }
        }
        let found = checker.query(ENTRIES, &[&terms, &values, &namespaces, &names]).await?;
        for ((object, entry), row) in wanted.iter().zip(&found) {
            if !row.get::<_, bool>(0) {
                check.miss(object, entry);
            }
        }
    }
    let rows = checker.query("SELECT count(*) FROM entries", &[]).await?;
    rows.first().map(|row| row.get(0)).ok_or_else(|| Error::Corrupt { reason: RESTORE.to_owned() })
}
