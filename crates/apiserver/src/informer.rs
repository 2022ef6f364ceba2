//! The informer: lists a resource as of one revision, watches from there, and feeds an index.
//!
//! A relist replaces the index at once, so a reader never sees a partial state. A write waits at the informer's [`Position`]
//! until this server enforces it. A controller that reads the state by itself is woken by a [`Trigger`]. This is the only
//! list-and-watch loop of the crate, so a lost history is handled once.

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

/// Delay before a failed list or watch is retried.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest wait of a write for the informers.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The state that an informer feeds. Calls come from one task, in the order of the log.
pub(crate) trait Index: Send + Sync + 'static {
    /// The next state while a list is read.
    type Fresh: Default + Send;

    /// Whether the index needs the listed objects; if not, they are not read.
    const IS_LISTED: bool = true;

    /// Adds a listed object to the next state.
    fn gather(&self, fresh: &mut Self::Fresh, object: Stored);

    /// Replaces the state.
    fn reset(&self, fresh: Self::Fresh);

    /// Applies events to the state.
    fn apply(&self, events: &[Event]);
}

/// The progress of an informer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reached {
    /// The index has all changes up to this revision.
    pub revision: Revision,
    /// The phase of the informer.
    pub phase: Phase,
}

/// The phase of an informer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before the first list.
    #[default]
    Starting,
    /// The index is current.
    Synced,
    /// The watch failed or expired; the index is stale until the next list.
    Lost,
    /// The informer ended, possibly by a panic.
    Ended,
}

/// The position of an informer, shared by its clones.
#[derive(Clone, Default)]
pub(crate) struct Position(Arc<watch::Sender<Reached>>);

/// An informer has not seen a committed write in time.
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

    /// Signals changes of the index.
    pub fn changes(&self) -> watch::Receiver<Reached> {
        self.0.subscribe()
    }

    /// Waits until the index has a revision, up to a timeout: the database may become unreachable after a write.
    pub async fn wait_for(&self, revision: Revision) -> Result<(), Behind> {
        let mut changes = self.changes();
        match timeout(TIMEOUT, changes.wait_for(|reached| reached.revision >= revision)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Behind),
        }
    }
}

/// The positions of the informers of a server.
#[derive(Default)]
pub(crate) struct Informers {
    /// The informers of the server itself, by resource.
    lasting: HashMap<Resource, Vec<Position>>,
    /// The informers of controllers, while they exist.
    of_controllers: Mutex<Vec<Weak<watch::Sender<Reached>>>>,
}

impl Informers {
    /// Registers the informer of a resource.
    pub fn add(&mut self, resource: Resource, position: Position) {
        self.lasting.entry(resource).or_default().push(position);
    }

    /// Registers an informer that a controller starts later, for as long as it exists.
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

    /// Whether all indexes are current, and every trigger watches.
    pub fn are_synced(&self) -> bool {
        let positions = self.of_controllers.lock().unwrap_or_else(PoisonError::into_inner);
        let of_controllers = positions.iter().filter_map(Weak::upgrade).map(Position);
        let mut all = self.lasting.values().flatten().cloned().chain(of_controllers);
        all.all(|position| position.phase() == Phase::Synced)
    }

    /// Whether all informers of the server itself have listed once, and run.
    pub fn are_running(&self) -> bool {
        self.lasting.keys().all(|resource| self.is_running(resource))
    }

    /// Whether a resource has an informer of the server itself.
    pub fn has(&self, resource: &Resource) -> bool {
        self.lasting.contains_key(resource)
    }

    /// Whether the informers of one resource have listed once, and run.
    pub fn is_running(&self, resource: &Resource) -> bool {
        let mut positions = self.lasting.get(resource).into_iter().flatten();
        positions.all(|position| matches!(position.phase(), Phase::Synced | Phase::Lost))
    }
}

/// An informer of one resource.
pub(crate) struct Informer<I> {
    scope: WatchScope,
    index: I,
    position: Position,
}

impl<I: Index> Informer<I> {
    /// An informer of all objects of a resource.
    pub fn new(resource: Resource, index: I, position: Position) -> Self {
        Self { scope: WatchScope::all(resource), index, position }
    }

    /// Lists the resource, and returns the task that watches it until dropped.
    pub async fn start(
        self,
        store: &Store,
    ) -> Result<impl Future<Output = ()> + Send + use<I>, store::Error> {
        let watch = self.list(store).await?;
        Ok(self.follow(store.clone(), watch))
    }

    /// Like [`Informer::start`], but retries until the index is filled.
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
                // A failed read may have lost events, so list again.
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
    /// Marks the position as ended, after a panic too.
    fn drop(&mut self) {
        self.position.enter(Phase::Ended);
    }
}

/// Wakes a controller when objects in some scopes change: an informer per scope, without an index.
///
/// The controller reads the state by itself, so a lost history is just another wake-up. A trigger that is created before the
/// first read misses nothing.
pub(crate) struct Trigger {
    fired: Arc<Notify>,
    following: BoxFuture<'static, ()>,
}

impl Trigger {
    /// Retries until every scope is watched. The server is not ready while a trigger cannot watch.
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
        // The first read is still to come.
        let _ = fired.notified().now_or_never();
        Self { fired, following: Box::pin(join_all(following).map(drop)) }
    }

    /// Waits for a change since the last call returned, or since the trigger was created. Cancel safe.
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
