//! Lists: candidates from the heads or from the index, merged with what was superseded since, filtered by attributes.
//!
//! A page that needs several statements is still of one moment: the first statement says which revision it is of, and those
//! that follow read as of that revision.

mod candidates;

use model::selector::{Requirement, Test};
use model::{ObjectKey, Revision};
use tokio_postgres::Row;

use self::candidates::{Candidates, Past};
use super::failure::corrupt;
use super::limits::{comparable, indexed_key};
use super::read::{first, missing};
use super::readers::Readers;
use super::rows::{self, attributes, get, integer};
use crate::listing::{COUNT_CAP, Drive, PageBuilder, Start, as_of, choose, indexable, names, not_compacted};
use crate::types::{Error, ListQuery, Page};

/// Candidates of one statement.
const CHUNK: usize = 2048;

/// Candidates of one statement that brings no values.
const SCAN_CHUNK: usize = 8192;

/// With so few changes since, what was current at a revision is found by those changes; else by the history of each key.
const RECENT: u64 = 4096;

/// How often a list begins again because compaction overtook it between two statements.
const ATTEMPTS: usize = 3;

/// One page. `seen` is about the newest revision.
pub async fn list(readers: &Readers, query: &ListQuery, seen: Revision) -> Result<Page, Error> {
    let start = Start::of(query).and_then(storable);
    // Behind everything there is nothing to find, but still a revision and a total.
    let limit = if start.is_some() { query.limit } else { 0 };
    let start =
        start.unwrap_or_else(|| Start { namespace: String::new(), name: String::new(), confined: false });
    let drive = drive(readers, query, &start).await?;
    let lister = Lister { readers, query, start, limit, drive, seen };
    let mut attempt = 1;
    loop {
        match lister.page().await {
            Err(Error::Expired { .. }) if query.at.is_none() && attempt < ATTEMPTS => attempt += 1,
            page => return page,
        }
    }
}

/// The place as PostgreSQL can compare it; `None` if there can be nothing behind it.
fn storable(start: Start) -> Option<Start> {
    if start.confined && start.namespace.contains('\0') {
        return None;
    }
    let name = if start.namespace.contains('\0') { "\u{10FFFF}" } else { comparable(&start.name) };
    Some(Start {
        name: name.to_owned(),
        namespace: comparable(&start.namespace).to_owned(),
        confined: start.confined,
    })
}

/// What a list is driven by. Requirements are counted only where there is a choice.
async fn drive<'a>(readers: &Readers, query: &'a ListQuery, start: &Start) -> Result<Drive<'a>, Error> {
    if let Some(names) = names(&query.selector) {
        return Ok(Drive::Names(names));
    }
    let indexed: Vec<_> =
        indexable(&query.selector).filter(|requirement| indexed_key(&requirement.key).is_some()).collect();
    if let [Requirement { test: Test::In(values), .. }] = indexed[..]
        && let [value] = &values[..]
    {
        return Ok(Drive::Ordered(indexed[0], value));
    }
    if indexed.is_empty() {
        return Ok(Drive::Scan);
    }
    let found = readers.query(candidates::count(query, start, &indexed)).await?;
    let mut counts = vec![0; indexed.len()];
    for row in &found {
        let place = usize::try_from(get::<i32>(row, 0)?).ok();
        let count = place.and_then(|place| counts.get_mut(place));
        let count: &mut u64 = count.ok_or_else(|| corrupt("a count that nobody asked for"))?;
        *count = count.saturating_add(get::<i64>(row, 1)?.unsigned_abs()).min(COUNT_CAP);
    }
    let counted: Vec<_> = indexed.into_iter().zip(counts).collect();
    Ok(choose(&counted))
}

/// What the statements of a page share.
struct Lister<'a> {
    readers: &'a Readers,
    query: &'a ListQuery,
    start: Start,
    limit: usize,
    drive: Drive<'a>,
    seen: Revision,
}

/// Where a page stands between two statements.
struct Progress {
    start: Start,
    at: Option<Revision>,
    total: Option<u64>,
}

/// What one statement found.
struct Chunk {
    rows: Vec<Row>,
    /// The revision that the page is of.
    revision: Revision,
    /// Whether there are no candidates behind these.
    last: bool,
}

impl Lister<'_> {
    async fn page(&self) -> Result<Page, Error> {
        let progress = Progress { start: self.start.clone(), at: self.query.at, total: None };
        // Whoever looks at every object does not want the values of those that do not match.
        if self.drive == Drive::Scan && !self.query.selector.is_empty() {
            self.scanned(progress).await
        } else {
            self.direct(progress).await
        }
    }

    /// Candidates with their values: most of them will match.
    async fn direct(&self, mut progress: Progress) -> Result<Page, Error> {
        let mut page = PageBuilder::new(self.limit);
        let mut taken = 0;
        loop {
            let wanted = (self.limit - taken).saturating_add(1).min(CHUNK);
            let chunk = self.read(&mut progress, wanted, true).await?;
            let mut done = 0;
            for row in &chunk.rows {
                if let Some(key) = self.selected(row)? {
                    let is_cut = get::<Option<&[u8]>>(row, 9)?.is_none();
                    if page.is_full() || is_cut && taken > 0 {
                        return Ok(page.finish(chunk.revision, true, progress.total));
                    }
                    if is_cut {
                        break;
                    }
                    page.push(rows::stored(row, 6, key)?);
                    taken += 1;
                }
                done += 1;
            }
            if chunk.last && done == chunk.rows.len() {
                return Ok(page.finish(chunk.revision, false, progress.total));
            }
            progress.pass(&self.start, &chunk.rows[..done])?;
        }
    }

    /// Candidates without their values, which are read at the end, of those that match.
    async fn scanned(&self, mut progress: Progress) -> Result<Page, Error> {
        let most = self.limit.min(CHUNK);
        let mut found = Vec::new();
        let mut wanted = most.saturating_add(1);
        loop {
            let chunk = self.read(&mut progress, wanted, false).await?;
            for row in &chunk.rows {
                if let Some(key) = self.selected(row)? {
                    if found.len() == most {
                        return self.values(found, chunk.revision, true, progress.total).await;
                    }
                    found.push((key, rows::revision(row, 6)?));
                }
            }
            if chunk.last {
                return self.values(found, chunk.revision, false, progress.total).await;
            }
            progress.pass(&self.start, &chunk.rows)?;
            wanted = SCAN_CHUNK;
        }
    }

    /// One statement. The first of them settles the revision.
    async fn read(&self, progress: &mut Progress, wanted: usize, values: bool) -> Result<Chunk, Error> {
        let past = progress.at.map(|at| {
            let since = self.seen.0.saturating_sub(at.0);
            (at, if since <= RECENT { Past::Changes } else { Past::History })
        });
        let candidates =
            Candidates { query: self.query, drive: &self.drive, start: &progress.start, past, values };
        let mut found = self.readers.query(candidates.statement(wanted)).await?;
        let row = first(&found)?;
        let clock = rows::clock(row, 0)?;
        let revision = as_of(progress.at, clock)?;
        if progress.total.is_none() && revision == clock.current {
            progress.total = Some(get::<i64>(row, 2)?.unsigned_abs());
        }
        progress.at = Some(revision);
        if get::<Option<&str>>(row, 4)?.is_none() {
            found.clear();
        }
        in_order(&found)?;
        Ok(Chunk { last: found.len() < wanted, rows: found, revision })
    }

    /// The key of a candidate that the selector selects.
    fn selected(&self, row: &Row) -> Result<Option<ObjectKey>, Error> {
        if get::<Option<&str>>(row, 7)?.is_none() {
            return Err(missing(rows::revision(row, 6)?));
        }
        let key =
            ObjectKey { resource: self.query.resource.clone(), namespace: get(row, 3)?, name: get(row, 4)? };
        let selector = &self.query.selector;
        let selected = selector.is_empty() || selector.matches(&key, &attributes(row, 5)?);
        Ok(selected.then_some(key))
    }

    /// The page of these versions, as far as their bytes fit.
    async fn values(
        &self,
        versions: Vec<(ObjectKey, Revision)>,
        revision: Revision,
        more: bool,
        total: Option<u64>,
    ) -> Result<Page, Error> {
        let mut page = PageBuilder::new(self.limit);
        if versions.is_empty() {
            return Ok(page.finish(revision, more, total));
        }
        let revisions = versions.iter().map(|(_, revision)| integer(*revision)).collect();
        let found = self.readers.query(candidates::values(revisions)).await?;
        for (row, (key, version)) in found.iter().zip(versions) {
            if get::<Option<&str>>(row, 2)?.is_none() {
                // It was there a moment ago: only compaction can have taken it.
                not_compacted(revision, rows::clock(row, 5)?)?;
                return Err(missing(version));
            }
            if get::<Option<&[u8]>>(row, 4)?.is_none() {
                return Ok(page.finish(revision, true, total));
            }
            page.push(rows::stored(row, 1, key)?);
        }
        Ok(page.finish(revision, more, total))
    }
}

impl Progress {
    /// The next statement begins behind these candidates.
    fn pass(&mut self, start: &Start, rows: &[Row]) -> Result<(), Error> {
        if let Some(row) = rows.last() {
            self.start = Start { namespace: get(row, 3)?, name: get(row, 4)?, confined: start.confined };
        }
        Ok(())
    }
}

/// The plan of the statement alone decides the order: better that a list fails than that its pages do not join.
fn in_order(rows: &[Row]) -> Result<(), Error> {
    let mut before = None;
    for row in rows {
        let place: (&str, &str) = (get(row, 3)?, get(row, 4)?);
        if before.is_some_and(|before| before >= place) {
            return Err(corrupt("a list is out of order"));
        }
        before = Some(place);
    }
    Ok(())
}
