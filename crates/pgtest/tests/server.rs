//! A private server starts, keeps committed data over every way of stopping, and leaves nothing behind.

use std::{fs, net::TcpStream, path::PathBuf, time::Duration};

use pgtest::{PgServer, Stop};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio_postgres::{Client, Connection, NoTls, Socket, tls::NoTlsStream};

/// Runs the statements on one connection and closes it.
async fn query(url: &str, statements: &str) -> Vec<String> {
    let (client, connection): (Client, Connection<Socket, NoTlsStream>) =
        tokio_postgres::connect(url, NoTls).await.expect("the server takes connections");
    let answer = async {
        let messages = client.simple_query(statements).await.expect("the statements are right");
        let rows = messages.iter().filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        rows.collect()
    };
    tokio::select! {
        rows = answer => rows,
        ended = connection => panic!("the connection ended early: {ended:?}"),
    }
}

#[tokio::test]
async fn committed_rows_survive_every_way_to_stop() {
    let mut server = PgServer::start().unwrap();
    let url = server.create_database().unwrap();
    query(&url, "create table notes (text text)").await;
    for how in [Stop::Fast, Stop::Immediate, Stop::Kill] {
        query(&url, &format!("insert into notes values ('{how:?}')")).await;
        server.restart(how).unwrap();
    }
    assert_eq!(query(&url, "select text from notes").await, ["Fast", "Immediate", "Kill"]);
    assert!(query(&server.url(), "select 1 from pg_tables where tablename = 'notes'").await.is_empty());
}

#[tokio::test]
async fn the_server_is_durable_and_sorts_as_people_do() {
    let server = PgServer::start_with(&["max_connections=7"]).unwrap();
    let shown = |name| {
        let url = server.url();
        async move { query(&url, &format!("show {name}")).await.remove(0) }
    };
    assert_eq!(shown("fsync").await, "on");
    assert_eq!(shown("synchronous_commit").await, "on");
    assert_eq!(shown("max_connections").await, "7");
    let sorted = query(&server.url(), "select c from (values ('a'), ('B'), ('c')) as t (c) order by c").await;
    assert_eq!(sorted, ["a", "B", "c"], "byte order must be asked for by the query, not come by luck");
}

#[tokio::test]
async fn a_dropped_server_leaves_no_process_and_no_folder() {
    let server = PgServer::start().unwrap();
    let folder = PathBuf::from(query(&server.url(), "show data_directory").await.remove(0));
    let port = server.port();
    assert!(folder.exists());
    drop(server);
    assert!(!fs::exists(folder.parent().unwrap()).unwrap());
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let error = PgServer::start_with(&["max_connections=none"]).unwrap_err().to_string();
    assert!(error.contains("max_connections"), "{error}");
}

/// Marks the process that the next test starts and kills.
const VICTIM: &str = "PGTEST_VICTIM";

#[tokio::test]
async fn a_killed_test_process_leaves_no_folder_either() {
    if std::env::var_os(VICTIM).is_some() {
        let server = PgServer::start().unwrap();
        println!("folder={}", query(&server.url(), "show data_directory").await.remove(0));
        std::future::pending::<()>().await;
    }
    let mut victim = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "a_killed_test_process_leaves_no_folder_either"])
        .env(VICTIM, "yes")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let folder = loop {
        let line = lines.next_line().await.unwrap().expect("the victim names its folder before it ends");
        if let Some((_, folder)) = line.split_once("folder=") {
            break PathBuf::from(folder);
        }
    };
    victim.kill().await.unwrap();
    let gone = async {
        while fs::exists(folder.parent().unwrap()).unwrap() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.expect("the folder goes with the process");
}

#[tokio::test]
async fn a_replica_follows_until_it_is_promoted_and_a_copy_goes_its_own_way() {
    let mut server = PgServer::start().unwrap();
    query(&server.url(), "create table notes (text text); insert into notes values ('first')").await;
    let replica = server.replica().unwrap();
    query(&server.url(), "insert into notes values ('second')").await;
    while query(&replica.url(), "select text from notes").await.len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(query(&replica.url(), "select pg_is_in_recovery()").await, ["t"]);
    let copy = server.fork().unwrap();
    query(&server.url(), "insert into notes values ('third')").await;
    server.become_copy(copy).unwrap();
    assert_eq!(query(&server.url(), "select text from notes").await, ["first", "second"]);
    server.stop(Stop::Kill).unwrap();
    replica.promote().unwrap();
    query(&replica.url(), "insert into notes values ('promoted')").await;
    let names = "select text || pg_walfile_name(pg_current_wal_lsn()) from notes where text = 'promoted'";
    assert!(query(&replica.url(), names).await[0].starts_with("promoted00000002"));
}
