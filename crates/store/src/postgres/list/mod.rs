//! Lists: candidates from the heads or from the index, merged with versions superseded since, filtered by
//! attributes.
//!
//! A page that needs several statements still shows one state: the first statement settles its revision, and
//! those that follow read as of that revision.

pub mod candidates;

use model::selector::Requirement;
use model::{ObjectKey, Revision};
use tokio_postgres::Row;

use self::candidates::{Candidates, Past, Values};
use super::failure::corrupt;
use super::limits::comparable;
use super::read::{first, missing};
use super::readers::Readers;
use super::rows::{self, attributes, get, integer};
use crate::listing::{CAPS, Drive, PageBuilder, Start, as_of, choose, indexable, not_compacted, only_drive};
use crate::types::{Error, ListQuery, Page};

/// Candidates per statement.
const CHUNK: usize = 2048;

/// Candidates per statement that brings small values: each has a share of a page, and few objects are larger
/// than that.
const SMALL_CHUNK: usize = 512;

/// Candidates per statement that brings no values.
const SCAN_CHUNK: usize = 8192;

/// With at most this many changes since a revision, its superseded versions are found by those changes; else
/// by the history of each key.
const RECENT: u64 = 4096;

/// Attempts at a list that compaction overtakes between two statements.
const ATTEMPTS: usize = 3;

/// One page. `seen` is about the newest revision.
pub async fn list(readers: &Readers, query: &ListQuery, seen: Revision) -> Result<Page, Error> {
    let Some(start) = Start::of(query).and_then(storable) else { return nothing(readers, query).await };
    let drive = drive(readers, query, &start).await?;
    let lister = Lister { readers, query, start, drive, seen };
    let mut attempt = 1;
    loop {
        match lister.page().await {
            Err(Error::Expired { .. }) if query.at.is_none() && attempt < ATTEMPTS => attempt += 1,
            page => return page,
        }
    }
}

/// The page of a position with nothing behind it: it still has a revision and a total.
async fn nothing(readers: &Readers, query: &ListQuery) -> Result<Page, Error> {
    let start = Start { namespace: String::new(), name: String::new(), confined: false };
    let lister = Lister { readers, query, start: start.clone(), drive: Drive::Scan, seen: Revision::ZERO };
    let mut progress = Progress { start, at: query.at, total: None };
    let chunk = lister.read(&mut progress, 0, Values::None).await?;
    Ok(PageBuilder::new(0).finish(chunk.revision, false, progress.total))
}

/// The position as PostgreSQL can compare it; `None` if nothing can lie behind it.
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

/// The drive of a list. Requirements are counted only if there is a choice.
async fn drive<'a>(readers: &Readers, query: &'a ListQuery, start: &Start) -> Result<Drive<'a>, Error> {
    if let Some(drive) = only_drive(&query.selector) {
        return Ok(drive);
    }
    let indexed: Vec<_> = indexable(&query.selector).collect();
    let mut counted = Vec::new();
    for cap in CAPS {
        counted = count(readers, query, start, &indexed, cap).await?;
        if counted.iter().any(|(_, count)| *count < cap) {
            break;
        }
    }
    Ok(choose(&counted))
}

/// Number of entries of each requirement, at most `cap`.
async fn count<'a>(
    readers: &Readers,
    query: &ListQuery,
    start: &Start,
    requirements: &[&'a Requirement],
    cap: u64,
) -> Result<Vec<(&'a Requirement, u64)>, Error> {
    let found = readers.query(candidates::count(query, start, requirements, cap)).await?;
    let mut counted: Vec<_> = requirements.iter().map(|requirement| (*requirement, 0)).collect();
    for row in &found {
        let place = usize::try_from(get::<i32>(row, 0)?).ok();
        let place = place.and_then(|place| counted.get_mut(place));
        let (_, sum) = place.ok_or_else(|| corrupt("a count that nobody asked for"))?;
        *sum = cap.min(*sum + get::<i64>(row, 1)?.unsigned_abs());
    }
    Ok(counted)
}

/// State that the statements of a page share.
struct Lister<'a> {
    readers: &'a Readers,
    query: &'a ListQuery,
    start: Start,
    drive: Drive<'a>,
    seen: Revision,
}

/// Progress of a page between two statements.
struct Progress {
    start: Start,
    at: Option<Revision>,
    total: Option<u64>,
}

/// Result of one statement.
struct Chunk {
    rows: Vec<Row>,
    /// The revision of the page.
    revision: Revision,
    /// Whether there are no candidates behind these.
    last: bool,
}

impl Lister<'_> {
    async fn page(&self) -> Result<Page, Error> {
        let progress = Progress { start: self.start.clone(), at: self.query.at, total: None };
        // A scan of every object skips the values of those that do not match.
        if self.drive == Drive::Scan && !self.query.selector.is_empty() {
            self.scanned(progress).await
        } else {
            self.direct(progress).await
        }
    }

    /// Reads candidates with their values: most of them will match.
    async fn direct(&self, mut progress: Progress) -> Result<Page, Error> {
        let mut page = PageBuilder::new(self.query.limit);
        let mut taken = 0;
        let mut values = Values::Small;
        loop {
            let most = if values == Values::Small { SMALL_CHUNK } else { CHUNK };
            let wanted = (self.query.limit - taken).saturating_add(1).min(most);
            let chunk = self.read(&mut progress, wanted, values).await?;
            let mut done = 0;
            for row in &chunk.rows {
                if let Some(key) = self.selected(row)? {
                    let is_cut = get::<Option<&[u8]>>(row, 9)?.is_none();
                    if page.is_full() || is_cut && taken > 0 && values == Values::Fitting {
                        return Ok(page.finish(chunk.revision, true, progress.total));
                    }
                    if is_cut {
                        values = Values::Fitting;
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

    /// Reads candidates without their values, then the values of those that match.
    async fn scanned(&self, mut progress: Progress) -> Result<Page, Error> {
        let most = self.query.limit.min(CHUNK);
        let mut found = Vec::new();
        let mut wanted = most.saturating_add(1);
        loop {
            let chunk = self.read(&mut progress, wanted, Values::None).await?;
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

    /// Runs one statement. The first of them settles the revision.
    async fn read(&self, progress: &mut Progress, wanted: usize, values: Values) -> Result<Chunk, Error> {
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
        let last = found.len() < wanted;
        in_order(&mut found)?;
        Ok(Chunk { last, rows: found, revision })
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
        let mut page = PageBuilder::new(self.query.limit);
        if versions.is_empty() {
            return Ok(page.finish(revision, more, total));
        }
        let revisions = versions.iter().map(|(_, revision)| integer(*revision)).collect();
        let found = self.readers.query(candidates::values(revisions)).await?;
        for (row, (key, version)) in found.iter().zip(versions) {
            if get::<Option<&str>>(row, 2)?.is_none() {
                // It existed a moment ago: only compaction can have removed it.
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

/// Only the plan of the statement guarantees the order: a list fails rather than return pages that do not
/// join.
fn in_order(rows: &mut Vec<Row>) -> Result<(), Error> {
    let mut is_twice = vec![false; rows.len()];
    for (place, pair) in rows.windows(2).enumerate() {
        let before: (&str, &str) = (get(&pair[0], 3)?, get(&pair[0], 4)?);
        let behind: (&str, &str) = (get(&pair[1], 3)?, get(&pair[1], 4)?);
        if before > behind {
            return Err(corrupt("a list is out of order"));
        }
        is_twice[place + 1] = before == behind;
    }
    // Two labels of an object may share their numbers in the index.
    let mut is_twice = is_twice.into_iter();
    rows.retain(|_| !is_twice.next().unwrap_or_default());
    Ok(())
}
