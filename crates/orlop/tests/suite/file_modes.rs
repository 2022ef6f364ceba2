//! Files of a running server: private from the moment they exist, whatever the umask and the directory allow.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::{envtest::Assets, server::Server};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("the file is ours");
}

/// Files below a directory that others than the owner may read or write; certificates are public.
fn open_files(folder: &Path) -> Vec<PathBuf> {
    let mut open = Vec::new();
    for entry in fs::read_dir(folder).expect("the directory is ours") {
        let path = entry.expect("it can be listed").path();
        let found = fs::metadata(&path).expect("it is there");
        if found.is_dir() {
            open.extend(open_files(&path));
        } else if found.permissions().mode() & 0o077 != 0 && path.extension().is_none_or(|end| end != "crt") {
            open.push(path);
        }
    }
    open
}

#[tokio::test]
async fn files_are_private_under_a_permissive_umask_in_an_existing_directory() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    set_mode(&data, 0o755);
    let server = Server::start_behind("umask 000", "up", &data).await;
    assert!(data.join("orlop.db-wal").exists(), "the write-ahead log is one of the files");
    assert_eq!(open_files(&data), Vec::<PathBuf>::new());
    let log = server.log();
    assert_eq!(log.matches("the data directory is open to other users").count(), 1, "{log}");
}

#[tokio::test]
async fn files_with_wider_modes_are_restricted_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // Killed, so that the write-ahead log stays.
    Server::start("up", &data, &[]).await.stop("KILL").await;
    let files = ["orlop.db", "orlop.db-wal", "orlop.db.lock", "kubeconfig", "pki/ca.key", "pki/sa.key"];
    for file in files {
        set_mode(&data.join(file), 0o644);
    }
    let server = Server::start("up", &data, &[]).await;
    assert_eq!(open_files(&data), Vec::<PathBuf>::new());
    assert!(!server.log().contains("the data directory is open"), "{}", server.log());
}

#[tokio::test]
async fn the_files_of_etcd_are_private_in_an_existing_directory() {
    let assets = Assets::new();
    let data = assets.path("state");
    fs::create_dir(&data).unwrap();
    set_mode(&data, 0o755);
    let mut etcd = assets.etcd("state").await;
    assert!(data.join("registry.db-wal").exists());
    assert_eq!(open_files(&data), Vec::<PathBuf>::new());
    assert!(etcd.process.log().contains("the data directory is open to other users"));
    etcd.process.stop("KILL").await;
    set_mode(&data.join("registry.db"), 0o644);
    set_mode(&data.join("registry.db-wal"), 0o644);
    let _again = assets.etcd("state").await;
    assert_eq!(open_files(&data), Vec::<PathBuf>::new());
}
