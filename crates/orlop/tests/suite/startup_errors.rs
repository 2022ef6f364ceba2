//! Errors at the start: one sentence on standard error, and a failing exit code.

use std::{
    fs::{self, File, Permissions},
    net::TcpListener,
    os::unix::fs::{FileExt, PermissionsExt},
    path::Path,
};

use crate::server::{self, Server};

/// The start fails with one line of standard error that contains all of these parts.
async fn check(arguments: &[&str], parts: &[&str]) {
    let output = server::run(arguments).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.starts_with("orlop: "), "{errors}");
    assert!(!errors.contains("s3cret"), "{errors}");
    for part in parts {
        assert!(errors.contains(part), "`{part}` in {errors}");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}

#[tokio::test]
async fn a_busy_port() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    check(&["up", "--data", text(&data), "--listen", &address], &[&address, "in use", "--listen"]).await;
    assert!(!data.exists(), "nothing was left behind");
}

#[tokio::test]
async fn an_unwritable_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let data = file.join("data");
    check(&["up", "--listen", "127.0.0.1:0", "--data", text(&data)], &[text(&data), "--data"]).await;
}

#[tokio::test]
async fn a_second_process_on_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = Server::start("up", &data, &[]).await;
    let kubeconfig = fs::read(&first.kubeconfig).unwrap();
    check(
        &["up", "--listen", "127.0.0.1:0", "--data", text(&data)],
        &["orlop.db is in use", "another server"],
    )
    .await;
    assert_eq!(fs::read(&first.kubeconfig).unwrap(), kubeconfig, "the first one's file is as it was");
}

#[tokio::test]
async fn a_database_of_a_newer_version() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    Server::start("up", &data, &["--controllers="]).await.stop("TERM").await;
    // A SQLite file keeps the version of its schema at byte 60.
    let file = File::options().write(true).open(data.join("orlop.db")).unwrap();
    file.write_all_at(&9999_u32.to_be_bytes(), 60).unwrap();
    check(&["up", "--listen", "127.0.0.1:0", "--data", text(&data)], &["orlop.db", "9999"]).await;
}

#[tokio::test]
async fn a_wrong_postgresql_address() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for (url, part) in [
        (format!("postgres://me:s3cret@{closed}/orlop"), closed.as_str()),
        ("postgres://me:s3cret@nowhere.invalid/orlop?sslmode=require".to_owned(), "nowhere.invalid"),
        ("mysql://me:s3cret@db/orlop".to_owned(), "postgres://"),
    ] {
        // In a file, because a password argument and a connection without TLS cause warnings.
        let file = folder.path().join("address");
        fs::write(&file, url).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let arguments =
            ["serve", "--listen", "127.0.0.1:0", "--data", text(&data), "--postgres-file", text(&file)];
        check(&arguments, &[part]).await;
    }
}

#[tokio::test]
async fn a_token_file_with_a_bad_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.csv");
    fs::write(&file, "s3cret,jane\n").unwrap();
    check(&["serve", "--token-auth-file", text(&file)], &[text(&file), "line 1", "TOKEN,USER,UID"]).await;
}

#[tokio::test]
async fn a_client_ca_file_without_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("ca.crt"), folder.path().join("data"));
    fs::write(&file, "rubbish").unwrap();
    check(
        &["serve", "--data", text(&data), "--client-ca-file", text(&file)],
        &[text(&file), "no certificate"],
    )
    .await;
}

#[tokio::test]
async fn a_wrong_command_line_is_explained() {
    let output = server::run(&["up", "--listen", "6443"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("HOST:PORT"));
}
