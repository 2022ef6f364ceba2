//! The conformance suite on SQLite in memory.

use std::sync::Arc;

use store::conformance::{Factory, Fixture};
use store::{Engine, Sqlite};

fn memory() -> Factory {
    Arc::new(|| {
        Box::pin(async {
            let engine: Arc<dyn Engine> = Arc::new(Sqlite::in_memory().expect("memory is there"));
            Fixture::from(engine)
        })
    })
}

store::conformance_suite!(memory());
