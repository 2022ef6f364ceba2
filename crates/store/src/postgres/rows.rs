//! Columns of a row as values.

use bytes::Bytes;
use model::{Attributes, ObjectKey, Resource, Revision, Uid};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::failure::{Failure, corrupt};
use crate::types::{Action, Change, ClockState, Error, Stored};

/// A revision as PostgreSQL keeps it. No stored revision is beyond its range, so a greater one is clamped.
pub fn integer(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

/// A column of any type.
pub fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Error> {
    row.try_get(column).map_err(|error| Failure::from(error).into())
}

/// A column that holds a revision.
pub fn revision(row: &Row, column: usize) -> Result<Revision, Error> {
    let number: i64 = get(row, column)?;
    u64::try_from(number).map(Revision).map_err(|_| corrupt("a revision is negative"))
}

/// A column that may hold a revision.
pub fn optional_revision(row: &Row, column: usize) -> Result<Option<Revision>, Error> {
    match get::<Option<i64>>(row, column)? {
        None => Ok(None),
        Some(_) => revision(row, column).map(Some),
    }
}

/// A column that holds attributes; absent ones are empty.
pub fn attributes(row: &Row, column: usize) -> Result<Attributes, Error> {
    let Some(bytes) = get::<Option<&[u8]>>(row, column)? else { return Ok(Attributes::default()) };
    Attributes::from_bytes(bytes).ok_or_else(|| corrupt("the attributes of a change are unreadable"))
}

/// A column that holds a value.
pub fn value(row: &Row, column: usize) -> Result<Bytes, Error> {
    get(row, column).map(Bytes::copy_from_slice)
}

/// A column that holds an offset into a value.
pub fn offset(row: &Row, column: usize) -> Result<usize, Error> {
    let number: i32 = get(row, column)?;
    usize::try_from(number).map_err(|_| corrupt("the place of a revision is negative"))
}

/// Columns of revision and mark.
pub fn clock(row: &Row, column: usize) -> Result<ClockState, Error> {
    Ok(ClockState { current: revision(row, column)?, compacted: revision(row, column + 1)? })
}

/// Columns of revision, uid, version_at, value.
pub fn stored(row: &Row, column: usize, key: ObjectKey) -> Result<Stored, Error> {
    Ok(Stored {
        key,
        revision: revision(row, column)?,
        uid: Uid(get(row, column + 1)?),
        version_at: offset(row, column + 2)?,
        value: value(row, column + 3)?,
    })
}

/// Columns of revision, resource, namespace, name, uid, action, previous, attributes, attributes of the previous version,
/// version_at, value.
pub fn change(row: &Row, column: usize) -> Result<Change, Error> {
    let code: i16 = get(row, column + 5)?;
    let previous = revision(row, column + 6)?;
    if previous > Revision::ZERO && get::<Option<&[u8]>>(row, column + 8)?.is_none() {
        return Err(corrupt(format!("version {previous} is missing from the log")));
    }
    Ok(Change {
        revision: revision(row, column)?,
        key: ObjectKey {
            resource: Resource::from_text(get(row, column + 1)?),
            namespace: get(row, column + 2)?,
            name: get(row, column + 3)?,
        },
        uid: Uid(get(row, column + 4)?),
        action: Action::from_code(code).ok_or_else(|| corrupt(format!("there is no action {code}")))?,
        previous,
        attributes: attributes(row, column + 7)?,
        previous_attributes: attributes(row, column + 8)?,
        version_at: offset(row, column + 9)?,
        value: value(row, column + 10)?,
    })
}
