//! A read-only session for the doctor's checks.

use std::path::Path;

use model::Resource;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::address::Address;
use super::schema;
use super::session::{Connector, Session};
use super::terms;
use crate::plan::Entry;
use crate::types::Error;

/// Reads one state of a database, without a time limit.
pub struct Checker(Session);

impl Checker {
    /// Connects to a database of this program.
    pub async fn connect(url: &str, passfile: Option<&Path>) -> Result<Self, Error> {
        let connector = Connector::new(Address::parse(url)?.with_passfile(passfile));
        let address = connector.address();
        let mut session = connector.connect("checks").await.map_err(|failure| failure.on_open(address))?;
        schema::check(&mut session, address).await?;
        // Checks read whole tables: the settings for look-ups are reverted.
        let begin = "SET statement_timeout = 0; SET enable_hashjoin = on; SET enable_seqscan = on; SET enable_sort = on;
                     SET enable_hashagg = on; SET enable_mergejoin = on;
                     BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let Session { client, driver, .. } = &mut session;
        driver
            .run(client.batch_execute(begin))
            .await
            .map_err(|error| Error::from(super::failure::Failure::from(error)))?;
        Ok(Self(session))
    }

    /// Runs one query to its end.
    pub async fn query(&mut self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let Session { client, driver, .. } = &mut self.0;
        let rows = driver.run(client.query(sql, params)).await;
        rows.map_err(|error| Error::from(super::failure::Failure::from(error)))
    }

    /// The numbers of an entry in the index.
    pub fn numbers(resource: &Resource, entry: &Entry) -> (i64, i64) {
        (terms::of_entry(resource, entry), terms::value(&entry.value))
    }
}
