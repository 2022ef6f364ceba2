//! The databases under test: empty, on disk or in memory, removed on drop.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use store::{FileOptions, Metrics, Options, Postgres, PostgresOptions, Sqlite, Store};
use tempfile::TempDir;

use crate::raw::{self, Raw, RawPostgres, RawSqlite};
use crate::report::{Engine, progress};

/// A file; every commit waits for the disk.
pub const SQLITE_FILE: Engine = Engine { name: "SQLite file", busy: "bench" };
/// In process memory.
pub const SQLITE_MEMORY: Engine = Engine { name: "SQLite memory", busy: "bench" };
/// A server with default settings.
pub const POSTGRES: Engine = Engine { name: "PostgreSQL", busy: "bench, PostgreSQL" };

/// A PostgreSQL server, private or given.
pub struct PostgresServer {
    /// The URL of the server's default database.
    url: String,
    /// A private server, stopped on drop.
    _private: Option<pgtest::PgServer>,
    databases: AtomicU32,
}

impl PostgresServer {
    /// Uses the given server, or starts a private one.
    pub fn start(given: Option<&str>) -> Result<Self> {
        if let Some(url) = given {
            return Ok(Self { url: url.to_owned(), _private: None, databases: AtomicU32::new(0) });
        }
        progress("starting a private PostgreSQL server");
        let server = pgtest::PgServer::start()?;
        Ok(Self { url: server.url(), _private: Some(server), databases: AtomicU32::new(0) })
    }

    /// Creates an empty database.
    pub async fn create(&self) -> Result<PostgresDatabase> {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("orlop_bench_{}_{number}", std::process::id());
        raw::postgres::execute(&self.url, &format!("CREATE DATABASE {name}")).await?;
        let url = with_database(&self.url, &name)?;
        Ok(PostgresDatabase { url, server: self.url.clone(), name })
    }
}

/// A database on a server.
pub struct PostgresDatabase {
    /// The URL of the database.
    pub url: String,
    server: String,
    name: String,
}

impl PostgresDatabase {
    /// Drops the database and disconnects its clients.
    pub async fn drop(self) -> Result<()> {
        raw::postgres::execute(&self.server, &format!("DROP DATABASE {} WITH (FORCE)", self.name)).await
    }
}

/// The same URL with another database.
fn with_database(url: &str, name: &str) -> Result<String> {
    let (scheme, rest) = url.split_once("://").context("the PostgreSQL URL must start with postgres://")?;
    let (rest, parameters) =
        rest.split_once('?').map_or((rest, String::new()), |(r, p)| (r, format!("?{p}")));
    let authority = rest.split('/').next().unwrap_or(rest);
    Ok(format!("{scheme}://{authority}/{name}{parameters}"))
}

/// A store on an empty database, and a raw table in another database of the same engine.
pub struct TestBed {
    /// The store.
    pub store: Store,
    /// The raw table.
    pub raw: Raw,
    /// The URL of the database, for PostgreSQL.
    pub url: Option<String>,
    folder: TempDir,
    databases: Vec<PostgresDatabase>,
}

impl TestBed {
    /// Creates both.
    pub async fn new(engine: Engine, server: Option<&PostgresServer>) -> Result<Self> {
        let folder = TempDir::new()?;
        let mut databases = Vec::new();
        let (store, raw) = if engine == POSTGRES {
            let server = server.context("there is no PostgreSQL server")?;
            for _ in 0..2 {
                databases.push(server.create().await?);
            }
            let raw = Raw::Postgres(Arc::new(RawPostgres::new(&databases[1].url).await?));
            (open_postgres(&databases[0].url).await?, raw)
        } else {
            open_sqlite(engine, folder.path()).await?
        };
        let url = databases.first().map(|database| database.url.clone());
        Ok(Self { store, raw, url, folder, databases })
    }

    /// Opens another store on the same database, as a second server does.
    pub async fn second_store(&self) -> Result<Store> {
        open_postgres(self.url.as_deref().context("only PostgreSQL supports a second store")?).await
    }

    /// Closes the store and removes the databases.
    pub async fn close(self) -> Result<()> {
        self.store.close().await;
        drop(self.raw);
        for database in self.databases {
            database.drop().await?;
        }
        Ok(self.folder.close()?)
    }
}

async fn open_sqlite(engine: Engine, folder: &Path) -> Result<(Store, Raw)> {
    let (database, raw) = if engine == SQLITE_MEMORY {
        (Sqlite::in_memory()?, RawSqlite::memory()?)
    } else {
        let database = Sqlite::open(&FileOptions::new(folder.join("state.db")))?;
        (database, RawSqlite::file(&folder.join("raw.db"))?)
    };
    let store = Store::open(Arc::new(database), Options::default(), &Metrics::unregistered()).await?;
    Ok((store, Raw::Sqlite(Arc::new(Mutex::new(raw)))))
}

async fn open_postgres(url: &str) -> Result<Store> {
    let database = Postgres::open(url, &PostgresOptions::default()).await?;
    Ok(Store::open(Arc::new(database), Options::default(), &Metrics::unregistered()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_database_of_an_address_changes() {
        let url = with_database("postgres://u:p@h:1/old?sslmode=require", "new").unwrap();
        assert_eq!(url, "postgres://u:p@h:1/new?sslmode=require");
        assert_eq!(with_database("postgres://h", "new").unwrap(), "postgres://h/new");
    }
}
