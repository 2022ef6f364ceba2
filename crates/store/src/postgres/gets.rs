//! Reads of single objects: concurrent ones are batched into one statement.

use model::ObjectKey;
use tokio::sync::oneshot;
use tokio_postgres::Row;

use super::failure::corrupt;
use super::read::missing;
use super::readers::Query;
use super::rows::{self, get};
use crate::types::{Error, Stored};

macro_rules! heads {
    ($wanted:literal) => {
        concat!(
            "
    SELECT w.place, h.revision, c.uid, c.version_at, c.value
    FROM ",
            $wanted,
            " AS w (resource, namespace, name, place)
    CROSS JOIN LATERAL (
        SELECT h.revision FROM heads h
        WHERE h.resource = w.resource AND h.namespace = w.namespace AND h.name = w.name OFFSET 0
    ) h
    LEFT JOIN LATERAL (
        SELECT c.uid, c.version_at, c.value FROM changes c WHERE c.revision = h.revision OFFSET 0
    ) c ON true"
        )
    };
}

/// For one object alone plain values are faster than arrays.
const HEAD: &str = heads!("(VALUES ($1::text, $2::text, $3::text, 1::bigint))");

const HEADS: &str = heads!("unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY");

/// A caller that waits for an object.
pub struct Get {
    /// The object's key.
    pub key: ObjectKey,
    /// Receives the object, if it exists.
    pub answer: oneshot::Sender<Result<Option<Stored>, Error>>,
}

/// The statement that reads the objects of one or more callers.
pub fn query(gets: &[Get]) -> Query {
    if let [Get { key, .. }] = gets {
        return of_key(Query::new(HEAD), key);
    }
    let column = |of: fn(&ObjectKey) -> &str| -> Vec<String> {
        gets.iter().map(|get| of(&get.key).to_owned()).collect()
    };
    Query::new(HEADS)
        .with(column(|key| key.resource.as_str()))
        .with(column(|key| &key.namespace))
        .with(column(|key| &key.name))
}

/// Binds the three parameters of a key.
pub fn of_key(query: Query, key: &ObjectKey) -> Query {
    query.with(key.resource.as_str().to_owned()).with(key.namespace.clone()).with(key.name.clone())
}

/// Sends each caller its object, or the error of the statement.
pub fn answer(gets: Vec<Get>, found: Result<Vec<Row>, Error>) {
    let mut waiting: Vec<Option<Get>> = gets.into_iter().map(Some).collect();
    let done = found.and_then(|rows| rows.iter().try_for_each(|row| answer_one(&mut waiting, row)));
    for Get { answer, .. } in waiting.into_iter().flatten() {
        // A caller that was dropped needs no answer.
        let _ = answer.send(done.clone().map(|()| None));
    }
}

fn answer_one(waiting: &mut [Option<Get>], row: &Row) -> Result<(), Error> {
    let place = usize::try_from(get::<i64>(row, 0)? - 1).ok();
    let waits = place.and_then(|place| waiting.get_mut(place)).and_then(Option::take);
    let Some(Get { key, answer }) = waits else { return Err(corrupt("a head that nobody asked for")) };
    let _ = answer.send(stored(row, key).map(Some));
    Ok(())
}

fn stored(row: &Row, key: ObjectKey) -> Result<Stored, Error> {
    if get::<Option<&str>>(row, 2)?.is_none() {
        return Err(missing(rows::revision(row, 1)?));
    }
    rows::stored(row, 1, key)
}

/// All statements, each with its purpose and its number of parameters.
#[cfg(test)]
pub fn statements() -> [(&'static str, &'static str, usize); 2] {
    [("an object", HEAD, 3), ("objects", HEADS, 3)]
}
