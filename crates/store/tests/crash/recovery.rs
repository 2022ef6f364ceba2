//! Behaviour of a store during a fault, and after it.

use std::collections::BTreeMap;
use std::path::Path;

use store::{Error, Event, FileOptions, Store, Watch};
use tokio::task::JoinSet;

use crate::audit::audit;
use crate::faults::Fault;
use crate::objects::{Version, create, everything, file, open, path, update};

/// Runs through a fault, with checkpoints and without.
pub fn run(fault: Fault, folder: &Path) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(async {
        let _mount = fault.prepare(folder);
        for (name, checkpoint_pages) in [("seldom.db", 4000), ("often.db", 8)] {
            let mut options = file(folder);
            options.path = folder.join(name);
            options.checkpoint_pages = checkpoint_pages;
            Case::run(fault, folder, options).await;
        }
    });
}

struct Case<'a> {
    fault: Fault,
    folder: &'a Path,
    options: FileOptions,
    store: Store,
    /// The acknowledged objects.
    heads: BTreeMap<String, Version>,
    seed: u64,
}

impl<'a> Case<'a> {
    async fn run(fault: Fault, folder: &'a Path, options: FileOptions) {
        let store = open(&options).await.expect("the database opens");
        let mut case = Self { fault, folder, options, store, heads: BTreeMap::new(), seed: 0 };
        for _ in 0..40 {
            case.write().await.expect("there is no fault yet");
        }
        let mut watch = case.store.watch(everything(), model::Revision(1)).await.expect("it can be watched");
        let mut watched = BTreeMap::new();
        for time in 0..2 {
            case.through_the_fault().await;
            case.is_as_acknowledged().await;
            case.follow(&mut watch, &mut watched).await;
            assert_eq!(watched, case.heads, "what a watch saw that lived through fault {time}");
        }
        drop(watch);
        case.restarts().await;
    }

    /// Writes fail, reads do not, and afterwards everything works without reopening.
    async fn through_the_fault(&mut self) {
        self.fault.strike(self.folder);
        // Writes that fit into free pages may still succeed.
        let mut refused = 0;
        for _ in 0..3000 {
            match self.write().await {
                Ok(()) => refused = 0,
                Err(error) => {
                    self.is_refusal(&error);
                    refused += 1;
                }
            }
            if refused == 10 {
                break;
            }
        }
        assert_eq!(refused, 10, "the fault never struck");
        self.all_at_once(true).await;
        self.is_as_acknowledged().await;
        let current = self.store.clock().await.expect("reads go on").current;
        if let Err(error) = self.store.compact(current).await {
            self.is_refusal(&error);
        }
        self.fault.lift(self.folder);
        self.write().await.expect("the fault is over");
        self.all_at_once(false).await;
    }

    /// A create or an update, each second time.
    async fn write(&mut self) -> Result<(), Error> {
        self.seed += 1;
        let path = format!("n{}/o{}", self.seed % 3, self.seed / 2 % 30);
        let head = self.heads.get(&path).copied();
        let life = head.map_or(self.seed, |head| head.life);
        let write = match head {
            Some(head) => update(&path, head.life, head.revision, self.seed),
            None => create(&path, self.seed),
        };
        let revision = self.store.write(vec![write]).await?[0].revision.0;
        self.heads.insert(path, Version { revision, life, seed: self.seed });
        Ok(())
    }

    /// Several transactions that are committed together.
    async fn all_at_once(&mut self, faulty: bool) {
        let mut writers = JoinSet::new();
        for _ in 0..8 {
            self.seed += 1;
            let (store, seed) = (self.store.clone(), self.seed);
            let paths = ["a", "b"].map(|half| format!("many/{seed}-{half}"));
            let writes = paths.iter().map(|path| create(path, seed)).collect();
            writers.spawn(async move { (paths, seed, store.write(writes).await) });
        }
        for (paths, seed, result) in writers.join_all().await {
            match result {
                Ok(written) => self.heads.extend(paths.into_iter().zip(written).map(|(path, written)| {
                    (path, Version { revision: written.revision.0, life: seed, seed })
                })),
                Err(error) => {
                    assert!(faulty, "the fault is over: {error}");
                    self.is_refusal(&error);
                }
            }
        }
    }

    fn is_refusal(&self, error: &Error) {
        let Error::Unavailable { reason } = error else { panic!("{error} does not say: later") };
        assert!(reason.contains(self.fault.reason()), "{reason:?} does not say {:?}", self.fault.reason());
    }

    /// All acknowledged objects exist, and no others.
    async fn is_as_acknowledged(&self) {
        let found = audit(&self.store).await;
        assert_eq!(found.heads, self.heads, "what is there and what was acknowledged");
    }

    /// Reads a watch up to now.
    async fn follow(&self, watch: &mut Watch, watched: &mut BTreeMap<String, Version>) {
        let current = self.store.clock().await.expect("the clock is readable").current;
        let note = |watched: &mut BTreeMap<String, Version>, event: &Event| {
            let key = &event.change.key;
            watched.insert(path(key), Version::of(key, event.change.revision, &event.value()));
        };
        let mut last = model::Revision::ZERO;
        while last < current {
            let events = watch.next().await.expect("the watch goes on");
            events.iter().for_each(|event| note(watched, event));
            last = events.last().expect("a watch never gives nothing").change.revision;
        }
    }

    /// Also during the fault: the store opens and reads, or reports in a sentence why it cannot.
    async fn restarts(&mut self) {
        self.fault.strike(self.folder);
        self.store.close().await;
        match open(&self.options).await {
            Ok(store) => {
                self.store = store;
                self.is_as_acknowledged().await;
                self.store.close().await;
            }
            Err(Error::Open { reason }) => {
                let name = self.options.path.to_str().expect("a temporary folder has a plain name");
                assert!(reason.starts_with(name) && !reason.contains('\n'), "{reason}");
                println!("{reason}");
            }
            Err(error) => panic!("{error}"),
        }
        self.fault.lift(self.folder);
        self.store = open(&self.options).await.expect("the fault is over");
        self.is_as_acknowledged().await;
        self.write().await.expect("the fault is over");
        self.store.close().await;
    }
}
