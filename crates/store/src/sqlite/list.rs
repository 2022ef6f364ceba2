//! Lists: candidates from the heads or from the index, merged with versions superseded since, filtered by
//! attributes.

use model::selector::{Requirement, Test};
use model::{Revision, Uid};
use rusqlite::{Connection, Row, Rows, ToSql, params};

use super::error::{corrupt, unavailable};
use super::read::{attributes, bytes, clock, integer, offset, revision, text};
use crate::listing::{
    CAPS, Drive, ListedVersion, PageBuilder, Start, as_of, choose, indexable, key_of, merge, only_drive,
};
use crate::plan::target_letter;
use crate::types::{Error, ListQuery, Page, Stored};

/// Heads in key order, behind a position.
const HEADS: &str = "
    SELECT namespace, name, revision FROM heads
    WHERE resource = ?1 AND (namespace, name) > (?2, ?3) ORDER BY namespace, name";

const HEADS_OF_NAMESPACE: &str = "
    SELECT namespace, name, revision FROM heads
    WHERE resource = ?1 AND namespace = ?2 AND name > ?3 ORDER BY name";

/// Heads with a value of a label or field, in key order, behind a position. CROSS JOIN keeps SQLite from
/// reordering it, which would lose the order.
const ENTRIES: &str = "
    SELECT e.namespace, e.name, h.revision FROM entries e
    CROSS JOIN heads h ON h.resource = e.resource AND h.namespace = e.namespace AND h.name = e.name
    WHERE e.resource = ?1 AND e.target = ?4 AND e.key = ?5 AND e.value = ?6
      AND (e.namespace, e.name) > (?2, ?3) ORDER BY e.namespace, e.name";

const ENTRIES_OF_NAMESPACE: &str = "
    SELECT e.namespace, e.name, h.revision FROM entries e
    CROSS JOIN heads h ON h.resource = e.resource AND h.namespace = e.namespace AND h.name = e.name
    WHERE e.resource = ?1 AND e.target = ?4 AND e.key = ?5 AND e.value = ?6
      AND e.namespace = ?2 AND e.name > ?3 ORDER BY e.name";

/// Versions that were current at a revision and no longer are, in key order, behind a position.
const HISTORY: &str = "
    SELECT namespace, name, revision FROM history
    WHERE resource = ?1 AND (namespace, name) > (?2, ?3) AND revision <= ?4 AND superseded_by > ?4
    ORDER BY namespace, name";

const HISTORY_OF_NAMESPACE: &str = "
    SELECT namespace, name, revision FROM history
    WHERE resource = ?1 AND namespace = ?2 AND name > ?3 AND revision <= ?4 AND superseded_by > ?4
    ORDER BY name";

/// The heads of a name in each namespace. The counts know which namespaces there are.
const KEYS_BY_NAME: &str = "
    SELECT h.namespace, h.name FROM counts n
    CROSS JOIN heads h ON h.resource = n.resource AND h.namespace = n.namespace
    WHERE n.resource = ?1 AND h.name = ?2 AND (?3 IS NULL OR n.namespace = ?3)";

const HEAD: &str = "SELECT revision FROM heads WHERE resource = ?1 AND namespace = ?2 AND name = ?3";

const VERSION: &str = "SELECT attributes, uid, version_at, value FROM changes WHERE revision = ?1";

/// All of the above, for the test of their query plans.
#[cfg(test)]
pub const STATEMENTS: &[&str] = &[
    HEADS,
    HEADS_OF_NAMESPACE,
    ENTRIES,
    ENTRIES_OF_NAMESPACE,
    HISTORY,
    HISTORY_OF_NAMESPACE,
    KEYS_BY_NAME,
    HEAD,
    VERSION,
];

/// One page.
pub fn list(connection: &Connection, query: &ListQuery) -> Result<Page, Error> {
    let snapshot = connection.unchecked_transaction().map_err(unavailable)?;
    let clock = clock(&snapshot)?;
    let at = as_of(query.at, clock)?;
    let is_now = at == clock.current;
    let total = if is_now { Some(total(&snapshot, query)?) } else { None };
    let Some(start) = Start::of(query) else {
        return Ok(PageBuilder::new(0).finish(at, false, total));
    };
    let reader = Reader { connection: &snapshot, query, start: &start, at, is_now };
    let (page, more) = match drive(&snapshot, query, &start)? {
        Drive::Scan => reader.streamed(HEADS, HEADS_OF_NAMESPACE, &[])?,
        Drive::Ordered(requirement, value) => reader.streamed(
            ENTRIES,
            ENTRIES_OF_NAMESPACE,
            &[&target_letter(requirement.target), &requirement.key, &value],
        )?,
        Drive::Names(names) => reader.sorted(keys_by_name(&snapshot, query, &start, names)?)?,
        Drive::Few(requirement) => reader.sorted(keys_by_entry(&snapshot, query, &start, requirement)?)?,
    };
    Ok(page.finish(at, more, total))
}

fn total(connection: &Connection, query: &ListQuery) -> Result<u64, Error> {
    let count: i64 = match &query.namespace {
        Some(namespace) => connection
            .prepare_cached(
                "SELECT coalesce(sum(objects), 0) FROM counts WHERE resource = ?1 AND namespace = ?2",
            )
            .and_then(|mut sum| sum.query_row(params![query.resource.as_str(), namespace], |row| row.get(0))),
        None => connection
            .prepare_cached("SELECT coalesce(sum(objects), 0) FROM counts WHERE resource = ?1")
            .and_then(|mut sum| sum.query_row([query.resource.as_str()], |row| row.get(0))),
    }
    .map_err(unavailable)?;
    u64::try_from(count).map_err(|_| corrupt("a count of objects is negative"))
}

/// The drive of the list: the requirement with the fewest entries, if any has few.
pub fn drive<'a>(connection: &Connection, query: &'a ListQuery, start: &Start) -> Result<Drive<'a>, Error> {
    if let Some(drive) = only_drive(&query.selector) {
        return Ok(drive);
    }
    let mut counted = Vec::new();
    for cap in CAPS {
        counted = indexable(&query.selector)
            .map(|requirement| Ok((requirement, count(connection, query, start, requirement, cap)?)))
            .collect::<Result<_, Error>>()?;
        if counted.iter().any(|(_, count)| *count < cap) {
            break;
        }
    }
    Ok(choose(&counted))
}

/// Number of entries of a requirement, at most `cap`.
fn count(
    connection: &Connection,
    query: &ListQuery,
    start: &Start,
    requirement: &Requirement,
    cap: u64,
) -> Result<u64, Error> {
    let mut sum = 0;
    each_range(query, start, requirement, |condition, parameters| {
        let sql = format!("SELECT count(*) FROM (SELECT 1 FROM entries WHERE {condition} LIMIT {cap})");
        let count: i64 = connection
            .prepare_cached(&sql)
            .and_then(|mut statement| statement.query_row(parameters, |row| row.get(0)))
            .map_err(unavailable)?;
        sum += count.unsigned_abs();
        Ok(sum < cap)
    })?;
    Ok(sum.min(cap))
}

fn keys_by_entry(
    connection: &Connection,
    query: &ListQuery,
    start: &Start,
    requirement: &Requirement,
) -> Result<Vec<(String, String)>, Error> {
    let mut keys = Vec::new();
    each_range(query, start, requirement, |condition, parameters| {
        let mut statement = connection
            .prepare_cached(&format!("SELECT namespace, name FROM entries WHERE {condition}"))
            .map_err(unavailable)?;
        let mut rows = statement.query(parameters).map_err(unavailable)?;
        collect_keys(&mut rows, start, &mut keys)?;
        Ok(true)
    })?;
    Ok(keys)
}

/// Calls `visit` with the condition and the parameters of each range of the index that holds matches, until
/// it returns `false`.
fn each_range(
    query: &ListQuery,
    start: &Start,
    requirement: &Requirement,
    mut visit: impl FnMut(&str, &[&dyn ToSql]) -> Result<bool, Error>,
) -> Result<(), Error> {
    let (resource, target) = (query.resource.as_str(), target_letter(requirement.target));
    let Test::In(values) = &requirement.test else {
        // All values of a key follow it, so a namespace does not narrow the range.
        visit("resource = ?1 AND target = ?2 AND key = ?3", &[&resource, &target, &requirement.key])?;
        return Ok(());
    };
    for (place, value) in values.iter().enumerate() {
        if values[..place].contains(value) {
            continue;
        }
        let condition = "resource = ?1 AND target = ?2 AND key = ?3 AND value = ?4";
        let more = if start.confined {
            let condition = format!("{condition} AND namespace = ?5");
            visit(&condition, &[&resource, &target, &requirement.key, value, &start.namespace])?
        } else {
            visit(condition, &[&resource, &target, &requirement.key, value])?
        };
        if !more {
            break;
        }
    }
    Ok(())
}

fn keys_by_name(
    connection: &Connection,
    query: &ListQuery,
    start: &Start,
    names: &[String],
) -> Result<Vec<(String, String)>, Error> {
    let mut statement = connection.prepare_cached(KEYS_BY_NAME).map_err(unavailable)?;
    let only = start.confined.then_some(&start.namespace);
    let mut keys = Vec::new();
    for name in names {
        let mut rows = statement.query(params![query.resource.as_str(), name, only]).map_err(unavailable)?;
        collect_keys(&mut rows, start, &mut keys)?;
    }
    Ok(keys)
}

fn collect_keys(rows: &mut Rows<'_>, start: &Start, keys: &mut Vec<(String, String)>) -> Result<(), Error> {
    while let Some(row) = rows.next().map_err(unavailable)? {
        let (namespace, name) = (text(row, 0)?, text(row, 1)?);
        if start.admits(&namespace, &name) {
            keys.push((namespace, name));
        }
    }
    Ok(())
}

/// State that all ways of reading a page share.
struct Reader<'a> {
    connection: &'a Connection,
    query: &'a ListQuery,
    start: &'a Start,
    at: Revision,
    is_now: bool,
}

impl Reader<'_> {
    /// Candidates from a query in key order: `all` over all namespaces, `one` within one.
    fn streamed(&self, all: &str, one: &str, further: &[&dyn ToSql]) -> Result<(PageBuilder, bool), Error> {
        let sql = if self.start.confined { one } else { all };
        let mut statement = self.connection.prepare_cached(sql).map_err(unavailable)?;
        let resource = self.query.resource.as_str();
        let mut parameters: Vec<&dyn ToSql> = vec![&resource, &self.start.namespace, &self.start.name];
        parameters.extend_from_slice(further);
        let rows = statement.query(&*parameters).map_err(unavailable)?;
        self.page(versions(rows))
    }

    /// Candidates that are few: sorted here, each looked up among the heads.
    fn sorted(&self, mut keys: Vec<(String, String)>) -> Result<(PageBuilder, bool), Error> {
        keys.sort_unstable();
        keys.dedup();
        let mut lookup = self.connection.prepare_cached(HEAD).map_err(unavailable)?;
        let heads = keys.into_iter().map(|(namespace, name)| {
            let mut rows =
                lookup.query(params![self.query.resource.as_str(), namespace, name]).map_err(unavailable)?;
            let row = rows.next().map_err(unavailable)?;
            let revision = revision(row.ok_or_else(|| corrupt("an index entry has no head"))?, 0)?;
            Ok(ListedVersion { namespace, name, revision })
        });
        self.page(heads)
    }

    fn page(
        &self,
        heads: impl Iterator<Item = Result<ListedVersion, Error>>,
    ) -> Result<(PageBuilder, bool), Error> {
        if self.is_now {
            return self.fill(heads);
        }
        let at = self.at;
        let old_enough =
            heads.filter(|version| version.as_ref().map_or(true, |version| version.revision <= at));
        let sql = if self.start.confined { HISTORY_OF_NAMESPACE } else { HISTORY };
        let mut statement = self.connection.prepare_cached(sql).map_err(unavailable)?;
        let resource = self.query.resource.as_str();
        let rows = statement
            .query(params![resource, self.start.namespace, self.start.name, integer(at)])
            .map_err(unavailable)?;
        self.fill(merge(old_enough, versions(rows)))
    }

    /// Takes matching versions until the page is full; returns whether there is one more.
    fn fill(
        &self,
        versions: impl Iterator<Item = Result<ListedVersion, Error>>,
    ) -> Result<(PageBuilder, bool), Error> {
        let mut page = PageBuilder::new(self.query.limit);
        let mut lookup = self.connection.prepare_cached(VERSION).map_err(unavailable)?;
        for version in versions {
            let version = version?;
            let revision = version.revision;
            if self.query.selector.is_empty() && page.is_full() {
                return Ok((page, true));
            }
            let mut rows = lookup.query([integer(revision)]).map_err(unavailable)?;
            let row = rows.next().map_err(unavailable)?;
            let row = row.ok_or_else(|| corrupt(format!("version {revision} is missing from the log")))?;
            let key = key_of(self.query, version);
            if !self.query.selector.is_empty() && !self.query.selector.matches(&key, &attributes(row, 0)?) {
                continue;
            }
            if page.is_full() {
                return Ok((page, true));
            }
            page.push(Stored {
                key,
                revision,
                uid: Uid(text(row, 1)?),
                version_at: offset(row, 2)?,
                value: bytes(row, 3)?,
            });
        }
        Ok((page, false))
    }
}

/// Rows of namespace, name, revision.
fn versions(mut rows: Rows<'_>) -> impl Iterator<Item = Result<ListedVersion, Error>> {
    std::iter::from_fn(move || {
        rows.next().map_err(unavailable).and_then(|row| row.map(version).transpose()).transpose()
    })
}

fn version(row: &Row<'_>) -> Result<ListedVersion, Error> {
    Ok(ListedVersion { namespace: text(row, 0)?, name: text(row, 1)?, revision: revision(row, 2)? })
}
