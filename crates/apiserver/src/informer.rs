//! The informer: lists a resource as of one revision, watches from there, and feeds an index of it.
//!
//! A relist replaces the index at once, so a reader never sees a half-empty state. A write waits at the informer's [`Position`]
//! until this server enforces it. A controller that reads the state by itself is woken by a [`Trigger`]. Everything in this crate that
//! follows objects does it here, so a lost history is handled once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use model::{Resource, Revision};
use store::{Event, Store, Stored, Watch, WatchScope};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::pages::Pages;

/// How long to wait before a list or watch that failed is tried again.
const PAUSE: Duration = Duration::from_millis(200);
/// How long a writer waits until its write is enforced.
const PATIENCE: Duration = Duration::from_secs(10);

/// State that an informer feeds. Calls come from one task, in the order of the log.
pub(crate) trait Index: Send + Sync + 'static {
    /// The next state, while a list is read.
    type Fresh: Default + Send;

    /// Whether the index needs the objects that are there; if not, they are not read.
    const IS_LISTED: bool = true;

    /// Takes an object of the list into the next state.
    fn gather(&self, fresh: &mut Self::Fresh, object: Stored);

    /// Puts the next state in place of the present one.
    fn reset(&self, fresh: Self::Fresh);

    /// Applies changes to the present state.
    fn apply(&self, events: &[Event]);
}

/// How far an informer has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reached {
    /// The index has everything up to here.
    pub revision: Revision,
    /// Whether it gets any further.
    pub phase: Phase,
}

/// Where an informer is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before the first list.
    #[default]
    Starting,
    /// The index follows the log.
    Synced,
    /// The watch failed or expired; the index is what it was until all is listed again.
    Lost,
    /// The informer is gone, by a panic too.
    Ended,
}

/// The position of an informer. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Position(Arc<watch::Sender<Reached>>);

/// A write was committed, and an informer has not seen it in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Behind;

impl Position {
    fn reach(&self, revision: Revision) {
        self.0.send_replace(Reached { revision, phase: Phase::Synced });
    }

    fn enter(&self, phase: Phase) {
        self.0.send_modify(|reached| reached.phase = phase);
    }

    fn phase(&self) -> Phase {
        self.0.borrow().phase
    }

    /// Rings when the index has changed.
    pub fn changes(&self) -> watch::Receiver<Reached> {
        self.0.subscribe()
    }

    /// Waits until the index has a revision, but not for ever: a database that has just taken a write may be out of reach for reads.
    pub async fn wait_for(&self, revision: Revision) -> Result<(), Behind> {
        let mut changes = self.changes();
        match timeout(PATIENCE, changes.wait_for(|reached| reached.revision >= revision)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Behind),
        }
    }
}

/// The positions of the informers of a server.
#[derive(Default)]
pub(crate) struct Informers {
    /// Those that last as long as the server, by resource.
    lasting: HashMap<Resource, Vec<Position>>,
    /// Those of controllers, as long as they are there.
    of_controllers: Mutex<Vec<Weak<watch::Sender<Reached>>>>,
}

impl Informers {
    /// Registers the informer of a resource.
    pub fn add(&mut self, resource: Resource, position: Position) {
        self.lasting.entry(resource).or_default().push(position);
    }

    /// Registers an informer that a controller starts later. It is forgotten when the informer is gone.
    pub fn register(&self) -> Position {
        let position = Position::default();
        let mut positions = self.of_controllers.lock().unwrap_or_else(PoisonError::into_inner);
        positions.retain(|known| known.strong_count() > 0);
        positions.push(Arc::downgrade(&position.0));
        position
    }

    /// Waits until every index of a resource has a revision.
    pub async fn wait_for(&self, resource: &Resource, revision: Revision) -> Result<(), Behind> {
        for position in self.lasting.get(resource).into_iter().flatten() {
            position.wait_for(revision).await?;
        }
        Ok(())
    }

    /// Whether all indexes follow the log, and every controller hears of changes.
    pub fn are_synced(&self) -> bool {
        let positions = self.of_controllers.lock().unwrap_or_else(PoisonError::into_inner);
        let of_controllers = positions.iter().filter_map(Weak::upgrade).map(Position);
        let mut all = self.lasting.values().flatten().cloned().chain(of_controllers);
        all.all(|position| position.phase() == Phase::Synced)
    }

    /// Whether all of the server's own informers have filled their index once, and run.
    pub fn are_running(&self) -> bool {
        self.lasting.keys().all(|resource| self.is_running(resource))
    }

    /// Whether a resource has an informer as long as the server is there.
    pub fn has(&self, resource: &Resource) -> bool {
        self.lasting.contains_key(resource)
    }

    /// Whether the informers of one resource have filled their index once, and run.
    pub fn is_running(&self, resource: &Resource) -> bool {
        let mut positions = self.lasting.get(resource).into_iter().flatten();
        positions.all(|position| matches!(position.phase(), Phase::Synced | Phase::Lost))
    }
}

/// Keeps an index of a resource.
pub(crate) struct Informer<I> {
    scope: WatchScope,
    index: I,
    position: Position,
}

impl<I: Index> Informer<I> {
    /// An informer of all objects of a resource that moves this position on.
    pub fn new(resource: Resource, index: I, position: Position) -> Self {
        Self { scope: WatchScope::all(resource), index, position }
    }

    /// Fills the index, and gives the task that follows the log until it is dropped.
    pub async fn start(
        self,
        store: &Store,
    ) -> Result<impl Future<Output = ()> + Send + use<I>, store::Error> {
        let watch = self.list(store).await?;
        Ok(self.follow(store.clone(), watch))
    }

    /// As [`Informer::start`], but tries until the index is filled.
    pub async fn start_patiently(self, store: &Store) -> impl Future<Output = ()> + Send + use<I> {
        let watch = self.list_patiently(store).await;
        self.follow(store.clone(), watch)
    }

    async fn follow(self, store: Store, mut watch: Watch) {
        loop {
            match watch.next().await {
                Ok(events) => self.apply(&events),
                Err(store::Error::Expired { .. }) => {
                    self.position.enter(Phase::Lost);
                    watch = self.list_patiently(&store).await;
                }
                // Whether the next read succeeds shows only with the next event, so all is listed again.
                Err(error) => {
                    self.position.enter(Phase::Lost);
                    self.pause(&error).await;
                    watch = self.list_patiently(&store).await;
                }
            }
        }
    }

    async fn list_patiently(&self, store: &Store) -> Watch {
        loop {
            match self.list(store).await {
                Ok(watch) => return watch,
                Err(error) => self.pause(&error).await,
            }
        }
    }

    async fn list(&self, store: &Store) -> Result<Watch, store::Error> {
        let mut fresh = I::Fresh::default();
        let revision = if I::IS_LISTED {
            let mut revision = Revision::ZERO;
            let mut pages = Pages::all_at_once(store, self.scope.resource.clone());
            while let Some(page) = pages.next().await? {
                revision = page.revision;
                page.items.into_iter().for_each(|object| self.index.gather(&mut fresh, object));
            }
            revision
        } else {
            store.clock().await?.current
        };
        let watch = store.watch(self.scope.clone(), revision).await?;
        self.index.reset(fresh);
        self.position.reach(revision);
        Ok(watch)
    }

    fn apply(&self, events: &[Event]) {
        self.index.apply(events);
        if let Some(last) = events.last() {
            self.position.reach(last.change.revision);
        }
    }

    async fn pause(&self, error: &store::Error) {
        tracing::warn!(%error, resource = %self.scope.resource, "informer cannot list or watch; retrying");
        sleep(PAUSE).await;
    }
}

impl<I> Drop for Informer<I> {
    /// An informer that is gone, by a panic too, follows nothing any more.
    fn drop(&mut self) {
        self.position.enter(Phase::Ended);
    }
}

/// Wakes a controller when objects of some scopes change: an informer for each scope, without an index.
///
/// The controller reads the present state by itself, so a lost history is a wake-up like any other. A trigger that is made before the
/// state is read for the first time misses nothing.
pub(crate) struct Trigger {
    fired: Arc<Notify>,
    following: BoxFuture<'static, ()>,
}

impl Trigger {
    /// Tries until every scope is watched. The server is not ready while one of its triggers cannot watch.
    pub async fn new(
        store: &Store,
        informers: &Informers,
        scopes: impl IntoIterator<Item = WatchScope>,
    ) -> Self {
        let fired = Arc::new(Notify::new());
        let mut following = Vec::new();
        for scope in scopes {
            let informer = Informer { scope, index: Wake(fired.clone()), position: informers.register() };
            following.push(informer.start_patiently(store).await);
        }
        // The state is still to be read for the first time.
        let _ = fired.notified().now_or_never();
        Self { fired, following: Box::pin(join_all(following).map(drop)) }
    }

    /// Waits until something has changed since the last call returned, or since the trigger was made. Cancel safe.
    pub async fn fired(&mut self) {
        tokio::select! {
            () = self.fired.notified() => {}
            () = &mut self.following => std::future::pending().await,
        }
    }
}

/// The index of a [`Trigger`].
struct Wake(Arc<Notify>);

impl Index for Wake {
    type Fresh = ();
    const IS_LISTED: bool = false;

    fn gather(&self, (): &mut (), _: Stored) {}

    fn reset(&self, (): ()) {
        self.0.notify_one();
    }

    fn apply(&self, _: &[Event]) {
        self.0.notify_one();
    }
}
