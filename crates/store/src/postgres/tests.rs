//! Query plans and migrations, on a server of their own.

use std::sync::LazyLock;

use model::selector::{Requirement, Target, Test};
use model::{Attributes, Encoded, Selector, Uid};
use pgtest::PgServer;

use super::list::candidates::{self, Candidates, Past, Values};
use super::readers::Query;
use super::session::Session;
use super::*;
use crate::listing::{COUNT_CAP, Drive, Start};
use crate::plan::{Head, plan};
use crate::types::{Precondition, Write};

static SERVER: LazyLock<PgServer> = LazyLock::new(|| PgServer::start().expect("PostgreSQL is installed"));

async fn session(url: &str) -> Session {
    let connector = Connector::new(Address::parse(url).unwrap());
    connector.connect("tests").await.unwrap()
}

async fn execute(session: &mut Session, sql: &str) {
    session.driver.run(session.client.batch_execute(sql)).await.unwrap();
}

async fn lines(session: &mut Session, sql: &str) -> Vec<String> {
    let rows = session.driver.run(session.client.query(sql, &[])).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn pods() -> Resource {
    Resource::new("", "pods")
}

fn object(number: usize) -> (ObjectKey, Attributes, Encoded) {
    let (namespace, name) = (format!("ns-{}", number % 7), format!("pod-{number}"));
    let labels =
        vec![("app".to_owned(), format!("app-{}", number % 3)), ("one".to_owned(), number.to_string())];
    let fields = vec![("status.phase".to_owned(), "Running".to_owned())];
    let body = serde_json::json!({"metadata": {"name": name}});
    let body = Encoded::new(body.as_object().unwrap());
    (ObjectKey::new(&pods(), &namespace, &name), Attributes::new(labels, fields), body)
}

fn create(number: usize) -> Write {
    let (key, attributes, body) = object(number);
    Write::Create { key, uid: Uid(format!("uid-{number}")), attributes, body }
}

fn update(number: usize) -> Write {
    let (key, _, body) = object(number);
    let attributes = Attributes::new(vec![("app".to_owned(), "other".to_owned())], vec![]);
    Write::Update { key, expect: Precondition::default(), attributes, body }
}

fn delete(number: usize) -> Write {
    let (key, attributes, body) = object(number);
    Write::Delete { key, expect: Precondition::default(), attributes, body }
}

/// Whether a plan may sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// No: everything comes in order from an index.
    Natural,
    /// Something small.
    Sorted,
}

/// A statement as sessions prepare it.
struct Prepared {
    what: String,
    order: Order,
    sql: String,
    parameters: usize,
}

fn requirement(key: &str, test: Test) -> Requirement {
    Requirement { target: Target::Label, key: key.to_owned(), test }
}

fn statements_of_lists() -> Vec<Prepared> {
    let mut all = Vec::new();
    let mut add = |what: String, order, query: &Query| {
        all.push(Prepared { what, order, sql: query.sql().to_owned(), parameters: query.len() });
    };
    let one = requirement("one", Test::In(vec!["1".to_owned()]));
    let some = requirement("app", Test::In(vec!["app-1".to_owned(), "app-2".to_owned()]));
    let any = requirement("app", Test::Exists);
    let names = ["pod-1".to_owned(), "pod-2".to_owned()];
    let drives = [
        (Drive::Scan, Order::Natural),
        (Drive::Names(&names), Order::Sorted),
        (Drive::Few(&some), Order::Sorted),
        (Drive::Few(&any), Order::Sorted),
        (Drive::Ordered(&one, "1"), Order::Natural),
    ];
    let pasts = [None, Some((Revision(5), Past::Changes)), Some((Revision(5), Past::History))];
    for confined in [false, true] {
        let start = Start { namespace: "ns-1".to_owned(), name: "pod-1".to_owned(), confined };
        let query = ListQuery {
            resource: pods(),
            namespace: confined.then(|| "ns-1".to_owned()),
            selector: Selector { requirements: vec![one.clone()] },
            at: None,
            after: None,
            limit: 500,
        };
        for ((drive, order), past) in drives.iter().flat_map(|drive| pasts.map(|past| (drive, past))) {
            let order = if past.is_some() { Order::Sorted } else { *order };
            for values in [Values::None, Values::Small, Values::Fitting] {
                let list = Candidates { query: &query, drive, start: &start, past, values };
                add(format!("{drive:?} {confined} {past:?} {values:?}"), order, &list.statement(500));
            }
        }
        add("count".to_owned(), Order::Natural, &candidates::count(&query, &start, &[&one, &any], COUNT_CAP));
    }
    add("values".to_owned(), Order::Natural, &candidates::values(vec![1, 2]));
    all
}

fn statements() -> Vec<Prepared> {
    let mut all = statements_of_lists();
    let mut add = |what: &str, sql: &str, parameters| {
        all.push(Prepared { what: what.to_owned(), order: Order::Natural, sql: sql.to_owned(), parameters });
    };
    for (what, sql, parameters) in read::statements()
        .into_iter()
        .chain(gets::statements())
        .chain(compact::statements())
        .chain(look::statements())
    {
        add(what, sql, parameters);
    }
    for keys in [1, 2] {
        add("heads", write::heads(keys), 4);
    }
    let heads = [(2, object(2)), (3, object(3))].map(|(number, (key, attributes, body))| {
        let revision = Revision(number);
        let value = Some(body.at(revision));
        (key, Head { revision, uid: Uid("u".to_owned()), attributes, value, bytes: 9 })
    });
    for batch in [vec![create(1)], vec![update(2)], vec![delete(3)], vec![create(1), update(2), delete(3)]] {
        let plan = plan(vec![batch], heads.clone().into_iter().collect(), Revision(9));
        let write = write::Write::of(&plan);
        add("write", &write.sql, write.parameters().len());
    }
    all
}

/// The plan of a statement, as a session has it.
async fn explain(session: &mut Session, statement: &Prepared) -> Vec<String> {
    execute(session, &format!("PREPARE explained AS {}", statement.sql)).await;
    let nulls = vec!["NULL"; statement.parameters].join(", ");
    let arguments = if nulls.is_empty() { nulls } else { format!("({nulls})") };
    let plan = lines(session, &format!("EXPLAIN EXECUTE explained{arguments}")).await;
    execute(session, "DEALLOCATE explained").await;
    plan
}

/// Tables of one row, or of few.
const SMALL: [&str; 4] = [" on clock", " on compaction", " on counts", " on incarnation"];

/// The fault of a plan, if any.
fn fault(plan: &[String], order: Order) -> Option<String> {
    for (place, line) in plan.iter().enumerate() {
        let is_small = SMALL.iter().any(|table| line.contains(table));
        if line.contains("Seq Scan") && !is_small {
            return Some(format!("reads all of a table: {line}"));
        }
        if ["Hash", "Merge Join", "Bitmap"].iter().any(|node| line.contains(node)) {
            return Some(format!("is no walk of an index: {line}"));
        }
        if order == Order::Natural && line.contains("Sort") {
            return Some(format!("sorts: {line}"));
        }
        let mut below = plan[place + 1..].iter().take_while(|line| !line.contains("->"));
        let is_index = line.contains("Index") && line.contains("Scan using");
        if is_index && !is_small && !below.any(|line| line.contains("Index Cond")) {
            return Some(format!("reads all of an index: {line}"));
        }
    }
    None
}

#[tokio::test]
async fn every_statement_walks_an_index_whatever_the_statistics_say() {
    let url = SERVER.create_database().unwrap();
    let engine = Postgres::open(&url, &PostgresOptions::default()).await.unwrap();
    let check = async |when: &str| {
        let mut session = session(&url).await;
        for statement in statements() {
            let plan = explain(&mut session, &statement).await;
            if let Some(fault) = fault(&plan, statement.order) {
                panic!("{} {fault} ({when}):\n{}\n{}", statement.what, statement.sql, plan.join("\n"));
            }
        }
    };
    check("of an empty database").await;
    for batch in 0..100 {
        engine.commit(vec![(0..1000).map(|number| create(batch * 1000 + number)).collect()]).await.unwrap();
    }
    check("of a database that has grown").await;
    execute(&mut session(&url).await, "ANALYZE").await;
    check("of a database with statistics").await;
    execute(&mut session(&url).await, "TRUNCATE heads, entries, history, changes; ANALYZE").await;
    check("of a database that was once full").await;
}

/// The tables as they are.
async fn tables(session: &mut Session) -> Vec<String> {
    lines(
        session,
        "SELECT concat_ws(' ', table_name, column_name, data_type, collation_name, is_nullable, column_default) AS line
         FROM information_schema.columns WHERE table_schema = 'orlop'
         UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'orlop'
         UNION ALL SELECT concat_ws(' ', relname, reloptions::text) FROM pg_class
             WHERE relnamespace = to_regnamespace('orlop')
         UNION ALL SELECT 'version ' || version FROM orlop.migrations ORDER BY line",
    )
    .await
}

#[tokio::test]
async fn a_database_of_every_older_version_ends_with_the_schema_of_a_fresh_one() {
    let fresh = SERVER.create_database().unwrap();
    let address = Address::parse(&fresh).unwrap();
    let mut fresh = session(&fresh).await;
    schema::migrate(&mut fresh, &address).await.unwrap();
    let expected = tables(&mut fresh).await;
    assert!(expected.iter().any(|line| line.starts_with("heads ")), "{expected:?}");
    for version in 0..=schema::STEPS.len() {
        let old = SERVER.create_database().unwrap();
        let address = Address::parse(&old).unwrap();
        let mut old = session(&old).await;
        schema::bring_forward(&mut old, &schema::STEPS[..version]).await.unwrap();
        for attempt in ["once", "twice"] {
            schema::migrate(&mut old, &address).await.unwrap();
            assert_eq!(tables(&mut old).await, expected, "from version {version}, {attempt}");
        }
    }
}

#[tokio::test]
async fn a_step_that_fails_leaves_nothing_behind() {
    let url = SERVER.create_database().unwrap();
    let mut broken = session(&url).await;
    let steps = [schema::STEPS[0], "CREATE TABLE orlop.second (a text); SELECT no_such_function()"];
    assert!(schema::bring_forward(&mut broken, &steps).await.is_err());
    drop(broken);
    let mut session = session(&url).await;
    let schemas = lines(&mut session, "SELECT coalesce(to_regnamespace('orlop')::text, 'none')").await;
    assert_eq!(schemas, ["none"]);
}

#[tokio::test]
async fn a_task_that_panics_is_reported_by_its_name() {
    let url = SERVER.create_database().unwrap();
    let options = PostgresOptions { readers: 1, ..PostgresOptions::default() };
    let names = Postgres::open(&url, &options).await.unwrap().tasks.names();
    assert_eq!(names, ["a PostgreSQL reader", "the PostgreSQL listener"]);
    for name in names {
        let engine = Postgres::open(&url, &options).await.unwrap();
        assert!(engine.tasks.inject_fault(&name));
        assert_eq!(engine.failed().await.task, name);
    }
}
