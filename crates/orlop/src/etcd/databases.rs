//! The databases of a folder, one for each prefix.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::{StreamExt, stream::FuturesUnordered};
use process::files;
use store::remote::Shared;
use store::{Durability, Error, FileOptions, Sqlite};
use tasks::TaskFailure;
use tokio::sync::{Mutex, Notify};

/// The limit of databases: every client can request another prefix.
const MAX_DATABASES: usize = 64;

/// The limit of a file name in common file systems.
const MAX_NAME: usize = 200;

/// Opens each database at its first request.
pub(super) struct Databases {
    folder: PathBuf,
    durability: Durability,
    open: Mutex<HashMap<String, Arc<Shared>>>,
    /// Changes when another database is opened.
    opened: Notify,
}

impl Databases {
    pub(super) fn new(folder: PathBuf, durability: Durability) -> Self {
        Self { folder, durability, open: Mutex::new(HashMap::new()), opened: Notify::new() }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The database of a prefix.
    pub(super) async fn of(&self, prefix: &str) -> Result<Arc<Shared>, Error> {
        let name = file_name(prefix);
        let refused = |reason: &str| Error::Open { reason: format!("the prefix {prefix}: {reason}") };
        if name.len() > MAX_NAME {
            return Err(refused("it is too long"));
        }
        let mut open = self.open.lock().await;
        if let Some(database) = open.get(&name) {
            return Ok(Arc::clone(database));
        }
        if open.len() >= MAX_DATABASES {
            return Err(refused("too many other prefixes are in use"));
        }
        let (folder, durability) = (self.folder.clone(), self.durability);
        let path = folder.join(&name);
        let opening = tokio::task::spawn_blocking(move || {
            files::create_private_folder(&folder).map_err(|error| Error::Open {
                reason: format!("cannot make {}: {error}", folder.display()),
            })?;
            let mut options = FileOptions::new(path);
            options.durability = durability;
            Sqlite::open(&options)
        });
        let engine = opening.await.map_err(|error| refused(&error.to_string()))??;
        let database = Arc::new(Shared::new(Arc::new(engine)));
        open.insert(name, Arc::clone(&database));
        self.opened.notify_one();
        Ok(database)
    }

    /// Resolves when a thread of one of the databases has ended early.
    pub(super) async fn failed(&self) -> TaskFailure {
        loop {
            let open: Vec<Arc<Shared>> = self.open.lock().await.values().cloned().collect();
            let mut failures: FuturesUnordered<_> = open.iter().map(|database| database.failed()).collect();
            tokio::select! {
                Some(failure) = failures.next() => return failure,
                () = self.opened.notified() => {}
            }
        }
    }

    /// Closes all open databases.
    pub(super) async fn close(&self) {
        for (_, database) in self.open.lock().await.drain() {
            database.close().await;
        }
    }
}

/// The file of a prefix: `/registry` is in `registry.db`. Equal prefixes have the same file, different ones never have.
fn file_name(prefix: &str) -> String {
    let parts: Vec<_> = prefix.split('/').filter(|part| !part.is_empty()).collect();
    let mut name = String::new();
    for byte in parts.join("/").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte.into()),
            _ => write!(name, "%{byte:02x}").expect("writing to a text always works"),
        }
    }
    format!("{name}.db")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_a_file_of_its_own() {
        for same in ["/registry", "registry", "//registry/"] {
            assert_eq!(file_name(same), "registry.db");
        }
        assert_eq!(file_name("/a/b.c"), "a%2fb%2ec.db");
        assert_eq!(file_name("/../../x"), "%2e%2e%2f%2e%2e%2fx.db");
        assert_eq!(file_name("/"), ".db");
    }

    #[tokio::test]
    async fn equal_prefixes_share_a_database_and_a_folder_is_for_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let databases = || Databases::new(folder.path().join("new"), Durability::Process);
        let first = databases();
        let (one, same, other) = (
            first.of("/registry").await.unwrap(),
            first.of("registry").await.unwrap(),
            first.of("/x").await.unwrap(),
        );
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        let refusal = databases().of("/registry").await.err().unwrap().to_string();
        assert!(refusal.contains("in use by another server"), "{refusal}");
        first.close().await;
        databases().of("/registry").await.unwrap();
        assert!(databases().of(&"x".repeat(300)).await.is_err());
    }
}
