//! Opening the store that the configuration names.

use std::sync::Arc;

use anyhow::Result;
use prometheus_client::registry::Registry;
use store::{Engine, FileOptions, Metrics, Options, Postgres, PostgresOptions, Sqlite, Store};

use crate::{config::Database, postgres::PostgresUrl};

/// Opens the database, makes or migrates it where needed, and starts the store on it.
pub(crate) async fn open(database: &Database, options: Options, metrics: &mut Registry) -> Result<Store> {
    let engine: Arc<dyn Engine> = match database {
        Database::Sqlite { path, durability } => {
            let mut options = FileOptions::new(path);
            options.durability = *durability;
            // Opening may run migrations: not on a thread that serves others.
            Arc::new(tokio::task::spawn_blocking(move || Sqlite::open(&options)).await??)
        }
        Database::Postgres(PostgresUrl { url, passfile }) => {
            let mut options = PostgresOptions::default();
            options.passfile.clone_from(passfile);
            Arc::new(Postgres::open(url, &options).await?)
        }
    };
    Ok(Store::open(engine, options, &Metrics::new(metrics)).await?)
}
