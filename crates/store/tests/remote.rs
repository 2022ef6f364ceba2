//! The conformance suite on an engine behind a connection.

use std::future::pending;
use std::sync::{Arc, Mutex};

use store::conformance::{Factory, Fixture, Made};
use store::remote::{Connector, Shared, Stream, serve};
use store::{Engine, Remote, Sqlite};
use tokio::task::JoinSet;

/// Small, so that frames come in pieces.
const PIPE: usize = 4096;

/// Each connection is a pipe to a task that answers from one database in memory.
fn connector(shared: Arc<Shared>) -> Connector {
    let serving = Mutex::new(JoinSet::new());
    Arc::new(move || {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        serving.lock().expect("nobody panics").spawn(serve(theirs, Arc::clone(&shared), pending()));
        Box::pin(async { Ok(Box::new(ours) as Box<dyn Stream>) })
    })
}

async fn connect(shared: Arc<Shared>) -> Arc<dyn Engine> {
    Arc::new(Remote::open(connector(shared)).await.expect("a pipe can be made"))
}

fn behind_a_connection() -> Factory {
    Arc::new(|| {
        Box::pin(async {
            let shared = Arc::new(Shared::new(Arc::new(Sqlite::in_memory().expect("memory is there"))));
            let again = Arc::clone(&shared);
            let reopen = move || -> Made<Arc<dyn Engine>> { Box::pin(connect(Arc::clone(&again))) };
            Fixture { engine: connect(shared).await, reopen: Some(Arc::new(reopen)), guard: Box::new(()) }
        })
    })
}

store::conformance_suite!(behind_a_connection());
