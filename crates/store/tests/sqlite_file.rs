//! The conformance suite on a SQLite file.

use std::path::Path;
use std::sync::Arc;

use store::conformance::{Factory, Fixture, Made};
use store::{Durability, Engine, FileOptions, Sqlite};

fn open(folder: &Path) -> Arc<dyn Engine> {
    let mut options = FileOptions::new(folder.join("state.db"));
    // Tests need not survive a power loss; with this the suite takes seconds.
    options.durability = Durability::Process;
    Arc::new(Sqlite::open(&options).expect("the folder is ours"))
}

fn file() -> Factory {
    Arc::new(|| {
        Box::pin(async {
            let folder = Arc::new(tempfile::tempdir().expect("there is a place for temporary files"));
            let again = Arc::clone(&folder);
            let reopen = move || -> Made<Arc<dyn Engine>> {
                let engine = open(again.path());
                Box::pin(async { engine })
            };
            Fixture { engine: open(folder.path()), reopen: Some(Arc::new(reopen)), guard: Box::new(folder) }
        })
    })
}

store::conformance_suite!(file());
