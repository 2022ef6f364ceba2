//! Opens the store on the configured database.

use std::{sync::Arc, time::Duration};

use prometheus_client::registry::Registry;
use store::{
    Engine, FileOptions, Metrics, Options, Postgres, PostgresOptions, Remote, Sqlite, Store,
    remote::Connector,
};
use tokio::time::Instant;

use crate::{
    Error,
    config::{PostgresUrl, Storage},
};

/// The time between two attempts to connect to a store in another process, which may start after this one.
const RETRY: Duration = Duration::from_millis(10);

/// Opens the database, creates or migrates it if needed, and starts the store on it.
pub(crate) async fn open(
    storage: &Storage,
    options: Options,
    metrics: &mut Registry,
) -> Result<Store, Error> {
    let engine: Arc<dyn Engine> = match storage {
        Storage::Memory => Arc::new(Sqlite::in_memory()?),
        Storage::Sqlite { path, durability } => {
            let mut options = FileOptions::new(path);
            options.durability = *durability;
            // Opening may run migrations, which block the thread.
            let opened = tokio::task::spawn_blocking(move || Sqlite::open(&options));
            Arc::new(opened.await.map_err(Error::blocking)??)
        }
        Storage::Postgres(PostgresUrl { url, passfile }) => {
            let mut options = PostgresOptions::default();
            options.passfile.clone_from(passfile);
            Arc::new(Postgres::open(url, &options).await?)
        }
        Storage::Remote { connector, address, timeout } => {
            let opened = connect(connector, *timeout).await;
            let unreachable = |reason| Error::StoreUnreachable { address: address.clone(), reason };
            Arc::new(opened.map_err(unreachable)?)
        }
    };
    Ok(Store::open(engine, options, &Metrics::new(metrics)).await?)
}

/// Connects, and retries until the timeout if the other process is not there yet.
async fn connect(connector: &Connector, timeout: Duration) -> Result<Remote, store::Error> {
    let deadline = Instant::now() + timeout;
    loop {
        match Remote::open(Arc::clone(connector)).await {
            Err(_) if Instant::now() < deadline => tokio::time::sleep(RETRY).await,
            result => return result,
        }
    }
}
