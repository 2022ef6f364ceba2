//! The gate: bounds the requests in flight, the open watches and the request bodies in memory, in total and by user.
//!
//! [`Gate::enter`] takes the attributes that API Priority and Fairness needs (user, priority level, verb class, width), so
//! that queues can replace the bounds without a change in its callers. The bounds:
//!
//! - The level `exempt` (`system:masters`, clients in this process) is never refused, as in Kubernetes.
//! - A tenth of the slots is reserved for the levels `leader-election` and `node-high`, so that a flood does not cost a
//!   component its lease.
//! - The other levels share the rest, and one user gets at most half of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::error::Error;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::auth::{Connection, Identity, MASTERS};
use crate::limits::Limits;

/// The longest wait of a body for memory, and of a watch for the slot of its initial state, before the request gets 429.
const TIMEOUT: Duration = Duration::from_secs(5);

/// One in this many slots is reserved.
const RESERVE: usize = 10;

/// The priority levels that the gate distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PriorityLevel {
    /// Never refused: `system:masters`, and clients in this process.
    Exempt,
    /// Leader election and the Leases of nodes: has slots of its own.
    Reserved,
    /// Components of the control plane and nodes: open as many watches as they need.
    System,
    /// All other requests.
    Shared,
}

impl PriorityLevel {
    /// The level of a suggested PriorityLevelConfiguration.
    pub fn named(name: &str) -> Self {
        match name {
            "exempt" => Self::Exempt,
            "leader-election" | "node-high" => Self::Reserved,
            "system" | "workload-high" => Self::System,
            _ => Self::Shared,
        }
    }

    /// The level of a request; `classified` comes from its FlowSchema.
    pub fn of(connection: &Connection, caller: &Identity, classified: Option<Self>) -> Self {
        if matches!(connection, Connection::InProcess(_)) || caller.is_in(MASTERS) {
            return Self::Exempt;
        }
        classified.unwrap_or(Self::Shared)
    }
}

/// The classes of requests with separate bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VerbClass {
    /// Requests that only read.
    Read,
    /// Requests that write.
    Mutate,
    /// Watches.
    Watch,
}

/// The attributes of a request that decide about its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowDistinguisher<'a> {
    /// The user, after impersonation.
    pub user: &'a str,
    /// The priority level.
    pub level: PriorityLevel,
    /// Reads, writes or watches.
    pub class: VerbClass,
    /// The number of slots.
    pub width: usize,
}

/// The bounds of a server and their usage.
#[derive(Debug)]
pub(crate) struct Gate {
    reads: Arc<SlotPool>,
    writes: Arc<SlotPool>,
    watches: Arc<SlotPool>,
    bodies: Arc<SlotPool>,
}

/// A slot of a pool, released on drop.
#[derive(Debug)]
pub(crate) struct Slot(Option<TakenShare>);

impl Slot {
    /// Whether it counts: exempt requests do not.
    pub fn is_counted(&self) -> bool {
        self.0.is_some()
    }
}

/// Memory for a body that is being read.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    flow: FlowDistinguisher<'a>,
    pool: &'a Arc<SlotPool>,
    taken: Vec<Slot>,
}

#[derive(Debug)]
struct TakenShare {
    pool: Arc<SlotPool>,
    user: Arc<str>,
    level: PriorityLevel,
    width: usize,
}

impl Drop for TakenShare {
    fn drop(&mut self) {
        self.pool.held().give(&self.user, self.level, self.width);
        self.pool.released.notify_waiters();
    }
}

#[derive(Debug)]
struct SlotPool {
    bounds: Bounds,
    shares: Mutex<Shares>,
    released: Notify,
}

/// The bounds of a pool.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    total: usize,
    /// For levels without a reserve.
    shared: usize,
    /// For one user.
    per_user: usize,
    /// Whether the bound per user applies to components of the control plane.
    bounds_components: bool,
}

impl Bounds {
    fn slots(total: usize) -> Self {
        let reserve = if total > 1 { total.div_ceil(RESERVE) } else { 0 };
        let shared = total - reserve;
        Self { total, shared, per_user: (shared / 2).max(1), bounds_components: true }
    }

    fn watches(total: usize, per_user: usize) -> Self {
        Self { per_user, bounds_components: false, ..Self::slots(total) }
    }
}

/// Slots or bytes in use, in total and by user.
#[derive(Debug, Default)]
struct Shares {
    taken: usize,
    shared: usize,
    by_user: HashMap<Arc<str>, usize>,
}

impl Shares {
    /// Takes a share if the bounds allow it.
    fn take(&mut self, bounds: Bounds, flow: FlowDistinguisher<'_>) -> Option<Arc<str>> {
        let FlowDistinguisher { user, level, width, .. } = flow;
        let is_shared = level != PriorityLevel::Reserved;
        let is_bounded = bounds.bounds_components || level == PriorityLevel::Shared;
        let known = self.by_user.get_key_value(user);
        let used = known.map_or(0, |(_, used)| *used).saturating_add(width);
        let fits = self.taken.saturating_add(width) <= bounds.total
            && (!is_shared || self.shared.saturating_add(width) <= bounds.shared)
            && (!is_bounded || used <= bounds.per_user);
        if !fits {
            return None;
        }
        let user = known.map_or_else(|| Arc::from(user), |(user, _)| Arc::clone(user));
        self.taken += width;
        self.shared += if is_shared { width } else { 0 };
        self.by_user.insert(Arc::clone(&user), used);
        Some(user)
    }

    fn give(&mut self, user: &str, level: PriorityLevel, width: usize) {
        self.taken -= width;
        self.shared -= if level == PriorityLevel::Reserved { 0 } else { width };
        if let Some(used) = self.by_user.get_mut(user) {
            *used -= width;
            if *used == 0 {
                self.by_user.remove(user);
            }
        }
    }
}

impl SlotPool {
    fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, shares: Mutex::default(), released: Notify::new() })
    }

    fn held(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(self: &Arc<Self>, flow: FlowDistinguisher<'_>) -> Option<Slot> {
        if flow.level == PriorityLevel::Exempt {
            return Some(Slot(None));
        }
        let user = self.held().take(self.bounds, flow)?;
        let pool = Arc::clone(self);
        Some(Slot(Some(TakenShare { pool, user, level: flow.level, width: flow.width })))
    }

    /// Takes a share as soon as one is free; 429 after a timeout.
    async fn wait(self: &Arc<Self>, flow: FlowDistinguisher<'_>) -> Result<Slot, Error> {
        let patience = Instant::now() + TIMEOUT;
        loop {
            // Registered before the check, so that no release is missed.
            let mut released = std::pin::pin!(self.released.notified());
            released.as_mut().enable();
            if let Some(slot) = self.take(flow) {
                return Ok(slot);
            }
            timeout_at(patience, released).await.map_err(|_| too_many_requests())?;
        }
    }
}

impl Gate {
    pub fn new(limits: &Limits) -> Self {
        Self {
            reads: SlotPool::new(Bounds::slots(limits.reads_in_flight)),
            writes: SlotPool::new(Bounds::slots(limits.writes_in_flight)),
            watches: SlotPool::new(Bounds::watches(limits.watches, limits.watches_per_user)),
            // The share of one user has room for a body of any allowed size.
            bodies: SlotPool::new(Bounds::slots(
                limits.bodies_bytes.max(limits.body_bytes.saturating_mul(3)),
            )),
        }
    }

    /// Takes a slot; 429 if there is none.
    pub fn enter(&self, flow: FlowDistinguisher<'_>) -> Result<Slot, Error> {
        let pool = match flow.class {
            VerbClass::Read => &self.reads,
            VerbClass::Mutate => &self.writes,
            VerbClass::Watch => &self.watches,
        };
        pool.take(flow).ok_or_else(too_many_requests)
    }

    /// Takes a read slot for the initial state of a watch, which needs as much memory as a list. Waits a little, because
    /// informers start in bursts.
    pub async fn enter_initial_state(&self, user: &str, level: PriorityLevel) -> Result<Slot, Error> {
        self.reads.wait(FlowDistinguisher { user, level, class: VerbClass::Read, width: 1 }).await
    }

    /// Memory for a request body; empty at first.
    pub fn room<'a>(&'a self, flow: FlowDistinguisher<'a>) -> Room<'a> {
        Room { flow, pool: &self.bodies, taken: Vec::new() }
    }
}

impl Room<'_> {
    /// The taken memory, held as long as the body exists.
    pub fn into_taken(self) -> Vec<Slot> {
        self.taken
    }

    /// Takes memory for further bytes. Waits a little: bodies come and go quickly.
    pub async fn grow(&mut self, bytes: usize) -> Result<(), Error> {
        let flow = FlowDistinguisher { width: bytes, ..self.flow };
        self.taken.push(self.pool.wait(flow).await?);
        Ok(())
    }
}

/// Kubernetes' message of a 429.
pub(crate) fn too_many_requests() -> Error {
    Error::TooManyRequests {
        message: "Too many requests, please try again later.".to_owned(),
        retry_after_seconds: 1,
    }
}

#[cfg(test)]
mod tests;
