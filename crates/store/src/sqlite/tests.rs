//! Cases of the file engine alone: locks, faults, the write-ahead log, query plans.

use std::sync::Arc;

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::conformance::kit::{all, label_is, object, selected};
use crate::{Metrics, Options, Store};

fn folder() -> (TempDir, FileOptions) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = FileOptions::new(folder.path().join("state.db"));
    options.durability = Durability::Process;
    (folder, options)
}

fn refusal(options: &FileOptions) -> String {
    match Sqlite::open(options) {
        Err(Error::Open { reason }) => reason,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it opened"),
    }
}

async fn store(engine: &Arc<Sqlite>) -> Store {
    let options = Options { compaction: None, ..Options::default() };
    Store::open(engine.clone(), options, &Metrics::unregistered()).await.unwrap()
}

/// Sets a pragma of the writer's connection.
async fn tell(engine: &Sqlite, pragma: &'static str, value: i64) {
    let told = engine.backend.write(1, move |connection| {
        connection.pragma_update_and_check(None, pragma, value, |_| Ok(())).or(Ok(()))
    });
    told.await.unwrap();
}

#[tokio::test]
async fn a_file_in_use_is_refused_until_it_is_closed() {
    let (_folder, options) = folder();
    let first = Sqlite::open(&options).unwrap();
    assert!(refusal(&options).contains("in use by another server"));
    first.close().await;
    let second = Sqlite::open(&options).unwrap();
    drop(second);
    Sqlite::open(&options).unwrap();
}

#[tokio::test]
async fn a_folder_that_is_not_there_and_a_file_that_is_no_database_are_refused_with_their_name() {
    let (folder, mut options) = folder();
    std::fs::write(&options.path, "this is no database, but it is long enough to look at").unwrap();
    let reason = refusal(&options);
    assert!(reason.contains("state.db is no readable database"), "{reason}");
    options.path = folder.path().join("missing").join("state.db");
    let reason = refusal(&options);
    assert!(reason.contains("its folder has to exist and to be writable"), "{reason}");
    options.path = folder.path().join("folder");
    std::fs::create_dir(&options.path).unwrap();
    let reason = refusal(&options);
    assert!(reason.contains("cannot be used"), "{reason}");
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused() {
    let (_folder, options) = folder();
    Sqlite::open(&options).unwrap().close().await;
    Connection::open(&options.path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(refusal(&options).contains("schema version 99"));
}

#[tokio::test]
async fn a_full_disk_is_unavailable_until_there_is_room_again() {
    let (_folder, options) = folder();
    let engine = Arc::new(Sqlite::open(&options).unwrap());
    let store = store(&engine).await;
    store.write(vec![object("ns/a").create()]).await.unwrap();
    // SQLite raises the limit to the present size of the file, if that is larger.
    tell(&engine, "max_page_count", 1).await;
    let large = object("ns/b").data("x".repeat(1 << 20)).create();
    let refused = store.write(vec![large.clone()]).await.unwrap_err();
    assert_eq!(refused, Error::Unavailable { reason: "the disk is full".into() });
    assert_eq!(store.list(&all()).await.unwrap().items.len(), 1, "reading goes on");
    tell(&engine, "max_page_count", 1 << 30).await;
    let written = store.write(vec![large]).await.unwrap();
    assert_eq!(written[0].revision, Revision(3), "the failed write left nothing");
}

#[tokio::test]
async fn a_read_only_database_is_unavailable_for_writes() {
    let (_folder, options) = folder();
    let engine = Arc::new(Sqlite::open(&options).unwrap());
    let store = store(&engine).await;
    tell(&engine, "query_only", 1).await;
    let refused = store.write(vec![object("ns/a").create()]).await.unwrap_err();
    assert_eq!(refused, Error::Unavailable { reason: "the database file is read-only".into() });
    tell(&engine, "query_only", 0).await;
    store.write(vec![object("ns/a").create()]).await.unwrap();
}

#[tokio::test]
async fn the_write_ahead_log_stays_short() {
    let (folder, mut options) = folder();
    options.checkpoint_pages = 20;
    let engine = Arc::new(Sqlite::open(&options).unwrap());
    let store = store(&engine).await;
    for n in 0..300 {
        store.write(vec![object(&format!("ns/o{n}")).data("x".repeat(8000)).create()]).await.unwrap();
    }
    let wal = std::fs::metadata(folder.path().join("state.db-wal")).unwrap().len();
    // 300 objects of two pages each are more than 600 pages; a restart comes at 160, and a commit may pass that by a few.
    assert!(wal < 200 * 4200, "{wal} bytes");
    store.close().await;
    assert!(!folder.path().join("state.db-wal").exists(), "closing folds it back");
}

#[tokio::test]
async fn lists_run_beside_each_other_and_wait_for_a_free_reader() {
    let (_folder, mut options) = folder();
    options.readers = 2;
    let engine = Arc::new(Sqlite::open(&options).unwrap());
    let store = store(&engine).await;
    store.write(vec![object("ns/a").label("k", "v").create()]).await.unwrap();
    let mut lists = tokio::task::JoinSet::new();
    for n in 0..40 {
        let store = store.clone();
        let query = selected(vec![label_is("k", if n % 2 == 0 { "v" } else { "w" })]);
        lists.spawn(async move { store.list(&query).await.unwrap().items.len() });
        if n % 10 == 0 {
            // A read that is dropped returns its reader too.
            let query = all();
            let list = store_list(&engine, query);
            drop(list);
        }
    }
    assert_eq!(lists.join_all().await.into_iter().sum::<usize>(), 20);
}

fn store_list(engine: &Arc<Sqlite>, query: ListQuery) -> impl Future<Output = usize> + use<> {
    let engine = Arc::clone(engine);
    async move { engine.list(&query).await.map_or(0, |page| page.items.len()) }
}

#[tokio::test]
async fn statements_are_planned_once_whatever_is_bound() {
    let engine = Sqlite::in_memory().unwrap();
    let replanned = |connection: &mut Connection| {
        for sql in list::STATEMENTS.iter().chain(read::STATEMENTS) {
            let mut statement = connection.prepare(sql).unwrap();
            for bound in ["a", "b", "c"] {
                statement.clear_bindings();
                let values = std::iter::repeat_n(bound, statement.parameter_count());
                let mut rows = statement.query(rusqlite::params_from_iter(values)).unwrap();
                let _ = rows.next();
            }
            assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0, "{sql}");
        }
        Ok(())
    };
    engine.backend.write(1, replanned).await.unwrap();
}

/// The plans of the statements that must never read more than they return.
#[tokio::test]
async fn no_list_and_no_watch_scans_or_sorts_a_table() {
    let engine = Sqlite::in_memory().unwrap();
    let plans = |connection: &mut Connection| {
        let mut plans = Vec::new();
        for sql in list::STATEMENTS.iter().chain(read::STATEMENTS) {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let count = statement.parameter_count();
            let nulls = rusqlite::params_from_iter(std::iter::repeat_n(rusqlite::types::Null, count));
            let mut rows = statement.query(nulls).unwrap();
            while let Some(row) = rows.next().unwrap() {
                plans.push((*sql, row.get::<_, String>(3).unwrap()));
            }
        }
        Ok(plans)
    };
    let plans = engine.backend.write(1, plans).await.unwrap();
    assert!(plans.len() > list::STATEMENTS.len());
    for (sql, step) in plans {
        assert!(!step.contains("TEMP B-TREE"), "{step} in {sql}");
        assert!(step.starts_with("SEARCH") || step == "SCAN clock", "{step} in {sql}");
    }
}

#[tokio::test]
async fn compaction_leaves_nothing_but_heads() {
    let engine = Arc::new(Sqlite::in_memory().unwrap());
    let store = store(&engine).await;
    for n in 0..40 {
        let o = object(&format!("ns/o{n}")).label("k", "v");
        store.write(vec![o.create(), o.clone().data("x").put(), o.clone().data("y").put()]).await.unwrap();
        if n % 2 == 0 {
            store.write(vec![o.remove()]).await.unwrap();
        }
    }
    let rows = || {
        engine.backend.look(|connection| {
            let count = |table: &str| {
                let sql = format!("SELECT count(*) FROM {table}");
                connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
            };
            Ok(["changes", "heads", "history", "entries", "counts"].map(count))
        })
    };
    assert_eq!(rows(), Ok([140, 20, 100, 20, 1]));
    let now = store.clock().await.unwrap().current;
    // In steps that cut through the lives of objects.
    for through in (1..=now.0).step_by(7).chain([now.0]) {
        store.compact(Revision(through)).await.unwrap();
    }
    assert_eq!(rows(), Ok([20, 20, 0, 20, 1]));
    for n in (0..40).filter(|n| n % 2 == 1) {
        store.write(vec![object(&format!("ns/o{n}")).remove()]).await.unwrap();
    }
    store.compact(store.clock().await.unwrap().current).await.unwrap();
    assert_eq!(rows(), Ok([0; 5]), "an empty namespace leaves no count either");
}

#[tokio::test]
async fn one_match_among_many_is_looked_up() {
    let engine = Arc::new(Sqlite::in_memory().unwrap());
    let store = store(&engine).await;
    let rare = |n: usize| if n == 1234 { "one" } else { "many" };
    let create = |n: usize| object(&format!("ns/o{n}")).label("k", rare(n)).create();
    store.write((0..5000).map(create).collect()).await.unwrap();
    let work = |query: ListQuery| {
        engine.backend.look(move |connection| {
            let page = list::list(connection, &query)?;
            Ok(page.items.len())
        })
    };
    assert_eq!(work(selected(vec![label_is("k", "one")])), Ok(1));
    let drive = engine.backend.look(|connection| {
        let query = selected(vec![label_is("k", "many"), label_is("k", "one")]);
        let start = crate::listing::Start::of(&query).unwrap();
        let drive = list::drive(connection, &query, &start)?;
        Ok(matches!(drive, crate::listing::Drive::Ordered(requirement, "one") if *requirement == label_is("k", "one")))
    });
    assert_eq!(drive, Ok(true));
}

#[tokio::test]
async fn a_thread_that_panics_is_reported_by_its_name() {
    for name in [file::WRITER, file::CHECKPOINTER] {
        let (_folder, mut options) = folder();
        options.checkpoint_pages = 20;
        let engine = Arc::new(Sqlite::open(&options).unwrap());
        let Backend::File(database) = &engine.backend else { panic!("it is a file") };
        while !database.inject_fault(name) {
            // It has not started yet.
            tokio::task::yield_now().await;
        }
        let store = store(&engine).await;
        assert!(futures::poll!(std::pin::pin!(store.failed())).is_pending());
        let writes = async {
            for n in 0.. {
                let written =
                    store.write(vec![object(&format!("ns/o{n}")).data("x".repeat(8000)).create()]).await;
                assert!(written.is_ok() || name == file::WRITER, "{written:?}");
            }
        };
        let failure = tokio::select! {
            failure = store.failed() => failure.to_string(),
            () = writes => unreachable!("there are enough numbers"),
        };
        assert_eq!(failure, format!("{name} panicked: an injected fault; this is a defect of the program"));
    }
}

#[tokio::test]
async fn a_file_that_is_closed_has_not_failed() {
    let (_folder, options) = folder();
    let engine = Sqlite::open(&options).unwrap();
    engine.close().await;
    assert!(futures::poll!(std::pin::pin!(engine.failed())).is_pending());
}
