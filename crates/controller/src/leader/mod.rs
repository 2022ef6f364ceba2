//! Leader election: the process that holds a Lease works, the others watch it and take over when it is released or expires.

mod epoch;
mod leadership;
mod timing;

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use process::Shutdown;
use serde::Deserialize;
use serde_json::{Value, json};
use tasks::TaskFailure;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

pub use self::epoch::{EPOCH_ANNOTATION, Epoch, InvalidEpoch, Superseded};
pub use self::leadership::Leadership;
pub use self::timing::{InvalidTiming, Timing};
use crate::controller::EndOfSubscriptions;
use crate::{
    EventHandler, ListWatch, Objects, ResourceKind, Result, SharedInformers, Subscriptions, WatchEvent,
};

const LEASES: ResourceKind =
    ResourceKind { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases" };

/// A Lease that one of many processes holds at a time.
#[derive(Clone)]
pub struct Lease {
    /// A client that may get, list, watch, create and patch the Lease.
    pub client: Client,
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The identity of this process, which no other has.
    pub holder: String,
    /// The times.
    pub timing: Timing,
}

/// One leadership.
#[derive(Clone, Debug)]
pub struct Term {
    /// Requested when the work has to stop: the process stops, or the lease was not renewed.
    pub stop: Shutdown,
    /// The fencing epoch of this leadership.
    pub epoch: Epoch,
}

/// The part of a Lease that matters.
#[derive(Clone, Debug, Default, Deserialize)]
struct Seen {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    resource_version: String,
    creation_timestamp: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    holder_identity: String,
    lease_duration_seconds: u64,
    lease_transitions: u64,
}

/// The Lease as it was last received, and when that was: the clocks of other processes do not count.
#[derive(Clone, Debug)]
struct Sight {
    seen: Option<Seen>,
    at: Instant,
}

/// The next action of a candidate that does not hold the lease.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Take,
    Wait(Instant),
}

fn decide(sight: &Sight, now: Instant) -> Step {
    let Some(Seen { spec, .. }) = &sight.seen else { return Step::Take };
    let end = sight.at + Duration::from_secs(spec.lease_duration_seconds);
    if spec.holder_identity.is_empty() || end <= now { Step::Take } else { Step::Wait(end) }
}

/// Does the work whenever this process is the leader, until a stop is requested. The work is asked to stop when the lease is not renewed, and
/// is dropped where it does not: it has ended before another process begins with it, whatever hangs.
///
/// # Errors
/// The informer of the lease panicked: without it this process would never become the leader.
pub async fn lead<W: Future<Output = ()>>(
    lease: Lease,
    shutdown: Shutdown,
    work: impl Fn(Term) -> W,
) -> std::result::Result<(), TaskFailure> {
    lead_by(SharedInformers::new(lease.client.clone()), lease, shutdown, work).await
}

async fn lead_by<W: Future<Output = ()>>(
    informers: SharedInformers,
    lease: Lease,
    shutdown: Shutdown,
    work: impl Fn(Term) -> W,
) -> std::result::Result<(), TaskFailure> {
    let subscriptions = Subscriptions::default();
    let (sights, sight) = watch::channel(None);
    subscriptions.add("lease", &informers, lease.list_watch(), Lookout(sights));
    let _end = EndOfSubscriptions(subscriptions);
    tokio::select! {
        failure = informers.failed() => Err(failure),
        () = lease.stand(sight, shutdown, work) => Ok(()),
    }
}

/// Waits for the next observation of the lease; for ever where its informer is gone, which [`lead`] reports.
async fn next_sight(sight: &mut watch::Receiver<Option<Sight>>) {
    if sight.changed().await.is_err() {
        std::future::pending().await
    }
}

impl Seen {
    fn epoch(&self) -> Epoch {
        Epoch::new(self.metadata.creation_timestamp, self.spec.lease_transitions)
    }
}

/// The end of a leadership.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The work is complete.
    OfWork,
    /// A stop was requested, and the work has ended while the lease was held.
    Stopped,
    /// The lease was not renewed in time. The work has ended, or was dropped.
    Lost,
}

/// A Lease that this process has acquired.
#[derive(Debug)]
struct Taken {
    seen: Seen,
    /// The time before the request: for other processes the lease expires later.
    at: Instant,
}

impl Lease {
    fn list_watch(&self) -> ListWatch {
        ListWatch::all(LEASES).namespace(&self.namespace).fields(format!("metadata.name={}", self.name))
    }

    /// Becomes the leader whenever the lease is free, and does the work while it is held, until a stop is requested.
    async fn stand<W: Future<Output = ()>>(
        &self,
        mut sight: watch::Receiver<Option<Sight>>,
        shutdown: Shutdown,
        work: impl Fn(Term) -> W,
    ) {
        let mut stop = std::pin::pin!(shutdown.requested());
        let Self { namespace, name, holder, .. } = self;
        loop {
            let taken = tokio::select! {
                () = &mut stop => return,
                taken = self.take(&mut sight) => taken,
            };
            let epoch = taken.seen.epoch();
            tracing::info!(namespace, lease = name, holder, %epoch, "became the leader");
            match self.hold(taken, stop.as_mut(), &work).await {
                End::OfWork => return,
                End::Stopped => return self.release().await,
                End::Lost if shutdown.is_requested() => return,
                End::Lost => {
                    tracing::warn!(
                        namespace,
                        lease = name,
                        "lost the lease; another process may become the leader"
                    );
                }
            }
        }
    }

    fn objects(&self) -> Objects {
        Objects::new(&self.client, &LEASES.resource(), Some(&self.namespace))
    }

    /// Does the work while it renews the lease.
    async fn hold<W: Future<Output = ()>>(
        &self,
        taken: Taken,
        stop: impl Future<Output = ()>,
        work: impl Fn(Term) -> W,
    ) -> End {
        let term = Term { stop: Shutdown::new(), epoch: taken.seen.epoch() };
        let mut working = std::pin::pin!(work(term.clone()));
        let mut keeping = std::pin::pin!(self.keep(taken));
        let lost = tokio::select! {
            () = &mut working => return End::OfWork,
            renewed = &mut keeping => Some(renewed),
            () = stop => None,
        };
        term.stop.request();
        // Until the work has ended the lease is kept.
        let renewed = match lost {
            Some(renewed) => renewed,
            None => tokio::select! {
                () = &mut working => return End::Stopped,
                renewed = &mut keeping => renewed,
            },
        };
        if timeout_at(renewed + self.timing.cut_off(), working).await.is_err() {
            let lease = &self.name;
            tracing::error!(
                lease,
                "the work of the leader did not stop before the lease expires; dropping it"
            );
        }
        End::Lost
    }

    /// Waits until this process holds the lease.
    async fn take(&self, sight: &mut watch::Receiver<Option<Sight>>) -> Taken {
        loop {
            let known = sight.borrow_and_update().clone();
            let step = known.as_ref().map(|known| (decide(known, Instant::now()), known));
            match step {
                Some((Step::Take, known)) => {
                    let at = Instant::now();
                    // An answer that comes later is of a lease that has run out by then.
                    match timeout(self.timing.renew_deadline(), self.write(Change::Take, known.seen.as_ref()))
                        .await
                    {
                        Ok(Ok(seen)) => return Taken { seen, at },
                        Ok(Err(error)) => {
                            tracing::debug!(%error, "cannot acquire the lease");
                            // The process that was faster is seen in a moment.
                            let _ = timeout(self.timing.failure_delay(), next_sight(sight)).await;
                        }
                        Err(_) => tracing::debug!("cannot acquire the lease in time"),
                    }
                }
                Some((Step::Wait(end), _)) => tokio::select! {
                    () = next_sight(sight) => {}
                    () = sleep_until(end) => {}
                },
                None => next_sight(sight).await,
            }
        }
    }

    /// Renews the lease until that fails for longer than the renew deadline, or another process has it. Returns the time of the last renewal:
    /// nothing here waits longer than the deadline behind it.
    async fn keep(&self, Taken { seen: mut last, at: mut renewed }: Taken) -> Instant {
        let mut delay = self.timing.retry_period();
        loop {
            let end = renewed + self.timing.renew_deadline();
            let renewal = async {
                sleep(delay).await;
                let begun = Instant::now();
                match self.write(Change::Renew, Some(&last)).await {
                    Ok(seen) => Kept::Renewed(seen, begun),
                    Err(error) => {
                        tracing::debug!(%error, "cannot renew the lease");
                        // It was written meanwhile: it is ours only if it still says so.
                        match self.objects().get::<Seen>(&self.name).await {
                            Ok(Some(seen)) if seen.spec.holder_identity == self.holder => Kept::Touched(seen),
                            Ok(_) => Kept::Lost,
                            Err(_) => Kept::Touched(last.clone()),
                        }
                    }
                }
            };
            match timeout_at(end, renewal).await {
                Ok(Kept::Renewed(seen, begun)) => {
                    (last, renewed, delay) = (seen, begun, self.timing.retry_period())
                }
                Ok(Kept::Touched(seen)) => (last, delay) = (seen, self.timing.failure_delay()),
                Ok(Kept::Lost) | Err(_) => return renewed,
            }
        }
    }

    /// Releases the lease, if it is still ours.
    async fn release(&self) {
        let released = async {
            let Some(seen) = self.objects().get::<Seen>(&self.name).await? else { return Ok(()) };
            if seen.spec.holder_identity == self.holder {
                self.write(Change::Release, Some(&seen)).await?;
            }
            Result::Ok(())
        };
        match timeout(self.timing.lease_duration(), released).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "cannot release the lease; it expires"),
            Err(_) => tracing::debug!("cannot release the lease in time; it expires"),
        }
    }

    /// Writes the lease as it was seen, or creates it.
    async fn write(&self, change: Change, seen: Option<&Seen>) -> Result<Seen> {
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let (holder, seconds) = match change {
            Change::Release => ("", 1),
            Change::Take | Change::Renew => (&*self.holder, self.timing.lease_duration().as_secs()),
        };
        let mut spec = json!({"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": now});
        if change == Change::Take {
            // Every leadership counts as a transition, also one of the same holder: the epoch is never used twice.
            spec["leaseTransitions"] = seen.map_or(0, |seen| seen.spec.lease_transitions + 1).into();
            spec["acquireTime"] = now.into();
        }
        let objects = self.objects();
        let metadata = |version: Option<&str>| json!({"name": self.name, "resourceVersion": version});
        match seen {
            None => objects.create(&json!({"metadata": metadata(None), "spec": spec})).await,
            Some(seen) => {
                let version = Some(&*seen.metadata.resource_version);
                let patch: Value = json!({"metadata": metadata(version), "spec": spec});
                objects.merge_patch(&self.name, &patch).await
            }
        }
    }
}

/// A change of the Lease.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Take,
    Renew,
    Release,
}

/// The outcome of a renewal.
enum Kept {
    /// It is renewed, from the time at which the request was sent.
    Renewed(Seen, Instant),
    /// It was not renewed, and is still ours as far as is known.
    Touched(Seen),
    /// Another process has it.
    Lost,
}

/// Keeps the last state of the Lease.
struct Lookout(watch::Sender<Option<Sight>>);

impl EventHandler for Lookout {
    fn handle(&mut self, event: WatchEvent<'_>) -> Result<()> {
        let sight = |seen| Some(Sight { seen, at: Instant::now() });
        match event {
            WatchEvent::Init | WatchEvent::NotServed => {}
            WatchEvent::Apply(_, line) => drop(self.0.send_replace(sight(Some(line.parse()?)))),
            WatchEvent::Delete(..) => drop(self.0.send_replace(sight(None))),
            WatchEvent::InitDone => {
                // There is none yet.
                self.0.send_if_modified(|known| {
                    let is_new = known.is_none();
                    if is_new {
                        *known = sight(None);
                    }
                    is_new
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
