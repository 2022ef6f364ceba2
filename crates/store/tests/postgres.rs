//! The conformance suite on PostgreSQL.

use std::sync::{Arc, LazyLock};

use pgtest::PgServer;
use store::conformance::{Factory, Fixture, Made};
use store::{Engine, Postgres, PostgresOptions};

/// One server for all tests of this file, each with a database of its own.
static SERVER: LazyLock<PgServer> = LazyLock::new(|| {
    // The suite checks the content, not durability: crash tests have servers of their own, which flush.
    PgServer::start_with(&["fsync=off", "synchronous_commit=off", "max_connections=400"])
        .expect("PostgreSQL is installed")
});

async fn open(url: &str) -> Arc<dyn Engine> {
    let engine = Postgres::open(url, &PostgresOptions::default()).await;
    Arc::new(engine.expect("the server is ours"))
}

fn database() -> Factory {
    Arc::new(|| {
        Box::pin(async {
            let url = SERVER.create_database().expect("the server runs");
            let engine = open(&url).await;
            let reopen = move || -> Made<Arc<dyn Engine>> {
                let url = url.clone();
                Box::pin(async move { open(&url).await })
            };
            Fixture { engine, reopen: Some(Arc::new(reopen)), guard: Box::new(()) }
        })
    })
}

store::conformance_suite!(database());
