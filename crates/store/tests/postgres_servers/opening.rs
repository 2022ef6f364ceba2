//! Opening a database: refusals and their messages.

use std::net::TcpListener;

use pgtest::PgServer;
use store::{Postgres, PostgresOptions};
use tokio::task::JoinSet;

use crate::kit::*;

/// The address with other credentials, another database or other options.
fn changed(url: &str, credentials: &str, database: &str) -> String {
    let host = url.rsplit_once('@').unwrap().1.split_once('/').unwrap().0;
    format!("postgres://{credentials}@{host}/{database}")
}

#[test]
fn a_wrong_address_is_refused_with_one_sentence_and_a_remedy() {
    run(async {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let reason = refused(&format!("postgres://me:hunter2@127.0.0.1:{free}/db")).await;
        assert!(reason.contains(&format!("PostgreSQL at 127.0.0.1:{free}/db cannot be reached")), "{reason}");
        assert!(reason.contains("check that it runs") && !reason.contains("hunter2"), "{reason}");
        let reason = refused("postgres://me:hunter2@no-such-host.invalid/db").await;
        assert!(reason.contains("cannot be reached") && !reason.contains("hunter2"), "{reason}");
        // A listener that never answers.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let reason = refused(&format!("postgres://me:hunter2@127.0.0.1:{port}/db?connect_timeout=1")).await;
        assert!(reason.contains("did not answer within 1 s") && !reason.contains("hunter2"), "{reason}");
    });
}

#[test]
fn wrong_credentials_and_databases_are_named_without_the_password() {
    run(async {
        let server = PgServer::start().unwrap();
        let admin = Admin::connect(&server.url()).await;
        admin.execute("CREATE ROLE careful LOGIN PASSWORD 'hunter2'").await;
        admin
            .execute(
                "DO $$ BEGIN EXECUTE format(
                    'COPY (SELECT unnest(ARRAY[''host all careful all scram-sha-256'', ''host all all all trust'']))
                     TO %L', current_setting('hba_file')); END $$",
            )
            .await;
        admin.execute("SELECT pg_reload_conf()").await;
        let url = server.url();
        // The reload takes a moment.
        until(async || refused(&changed(&url, "careful", "postgres")).await.contains("asks for a password"))
            .await;
        let reason = refused(&changed(&url, "careful:hunter3", "postgres")).await;
        assert!(
            reason.contains("does not let us in") && reason.contains("check user and password"),
            "{reason}"
        );
        assert!(!reason.contains("hunter"), "{reason}");
        let reason = refused(&changed(&url, "nobody-here:hunter2", "postgres")).await;
        assert!(reason.contains("does not let us in") && !reason.contains("hunter"), "{reason}");
        let reason = refused(&changed(&url, "careful:hunter2", "missing")).await;
        assert!(reason.contains("does not exist: create it") && !reason.contains("hunter"), "{reason}");
        let reason = refused(&changed(&url, "careful:hunter2", "postgres")).await;
        assert!(reason.contains("make the user its owner") && !reason.contains("hunter"), "{reason}");
        admin.execute("CREATE DATABASE theirs OWNER careful").await;
        let options = PostgresOptions::default();
        Postgres::open(&changed(&url, "careful:hunter2", "theirs"), &options).await.unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "*:*:theirs:careful:hunter2\n").unwrap();
        let mut options = PostgresOptions::default();
        options.passfile = Some(file.path().to_owned());
        Postgres::open(&changed(&url, "careful", "theirs"), &options).await.unwrap();
    });
}

#[test]
fn a_database_of_a_newer_version_or_of_another_program_is_refused() {
    run(async {
        let url = SERVER.create_database().unwrap();
        store(&url, |_| {}).await.close().await;
        let admin = Admin::connect(&url).await;
        let known = admin.number("SELECT max(version)::bigint FROM orlop.migrations").await;
        admin
            .execute("INSERT INTO orlop.migrations (version) SELECT max(version) + 1 FROM orlop.migrations")
            .await;
        let reason = refused(&url).await;
        assert!(reason.contains(&format!("has schema version {}", known + 1)), "{reason}");
        assert!(reason.contains("use the newer program"), "{reason}");

        let url = SERVER.create_database().unwrap();
        Admin::connect(&url).await.execute("CREATE SCHEMA orlop CREATE TABLE theirs (a text)").await;
        let reason = refused(&url).await;
        assert!(reason.contains("is not of this program: use another database"), "{reason}");

        Admin::connect(&SERVER.url())
            .await
            .execute(
                "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0",
            )
            .await;
        let reason = refused(&changed(&url, "postgres", "latin")).await;
        assert!(reason.contains("has the encoding LATIN1: create one with ENCODING 'UTF8'"), "{reason}");
    });
}

#[test]
fn servers_that_start_at_once_set_a_database_up_once() {
    run(async {
        let url = SERVER.create_database().unwrap();
        let mut opening = JoinSet::new();
        for server in 0..6 {
            let url = url.clone();
            opening.spawn(async move {
                let store = store(&url, |_| {}).await;
                store.write(vec![create(&format!("of-{server}"), "1")]).await.unwrap();
            });
        }
        while let Some(opened) = opening.join_next().await {
            opened.unwrap();
        }
        let store = store(&url, |_| {}).await;
        assert_eq!(store.list(&all()).await.unwrap().items.len(), 6);
        assert_eq!(revision(&store).await.0, 7);
    });
}

#[test]
fn closing_gives_the_sessions_back() {
    run(async {
        let url = SERVER.create_database().unwrap();
        let store = store(&url, |_| {}).await;
        store.write(vec![create("a", "1")]).await.unwrap();
        let admin = Admin::connect(&url).await;
        let sessions = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND application_name LIKE 'orlop %'";
        assert!(admin.number(sessions).await > 0);
        store.close().await;
        until(async || admin.number(sessions).await == 0).await;
        // A store that is dropped releases them as well.
        drop(crate::kit::store(&url, |_| {}).await);
        until(async || admin.number(sessions).await == 0).await;
    });
}
