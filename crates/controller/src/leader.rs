//! One of many: who holds a Lease works, the others watch it and take over when it is let go or runs out.

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use process::Shutdown;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::watch::{Event, Listener, Target};
use crate::{Kind, Objects, Result, Sources, Watches};

const LEASES: Kind = Kind { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases" };
/// How long a lease is good for that is not renewed.
const DURATION: Duration = Duration::from_secs(5);
/// How often it is renewed.
const RENEWAL: Duration = Duration::from_millis(1500);
/// How long its holder works without a renewal: it has stopped before another may begin.
const PATIENCE: Duration = Duration::from_millis(3500);
/// How long to wait after a request that failed.
const RETRY: Duration = Duration::from_millis(300);

/// A right that one of many processes has at a time.
#[derive(Clone)]
pub struct Lease {
    /// A client that may read and write it.
    pub client: Client,
    /// Where it is.
    pub namespace: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Who this process is, unlike all others.
    pub holder: String,
}

/// What is read of a Lease.
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
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    holder_identity: String,
    lease_duration_seconds: u64,
    lease_transitions: u64,
}

/// The lease as it was last seen, and when that was: the clocks of others do not count.
#[derive(Clone, Debug)]
struct Sight {
    seen: Option<Seen>,
    at: Instant,
}

/// What who does not hold the lease does.
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

/// Does the work whenever this process holds the lease, until a stop is requested. The work is asked to stop, and has ended,
/// before another process begins with it.
pub async fn lead<W: Future<Output = ()>>(lease: Lease, shutdown: Shutdown, work: impl Fn(Shutdown) -> W) {
    let sources = Sources::default();
    let (sights, mut sight) = watch::channel(None);
    let target = Target::all(LEASES).within(lease.namespace).fields(format!("metadata.name={}", lease.name));
    sources.start("lease", &Watches::new(lease.client.clone()), target, Lookout(sights));
    let _end = crate::controller::EndOfSources(sources);
    let mut stop = std::pin::pin!(shutdown.requested());
    loop {
        let taken = tokio::select! {
            () = &mut stop => return,
            taken = lease.take(&mut sight) => taken,
        };
        tracing::info!(lease = lease.name, holder = lease.holder, "this process runs the controllers");
        let turn = Shutdown::new();
        let mut working = std::pin::pin!(work(turn.clone()));
        let end = async {
            tokio::select! {
                () = &mut stop => true,
                () = lease.keep(&taken) => false,
            }
        };
        let is_stopped = tokio::select! {
            is_stopped = end => is_stopped,
            () = &mut working => return,
        };
        turn.request();
        working.await;
        if is_stopped {
            return lease.release().await;
        }
        tracing::warn!(lease = lease.name, "the lease was lost; another process may run the controllers");
    }
}

impl Lease {
    fn objects(&self) -> Objects {
        Objects::new(&self.client, &LEASES.resource(), Some(self.namespace))
    }

    /// Waits until this process holds the lease.
    async fn take(&self, sight: &mut watch::Receiver<Option<Sight>>) -> Seen {
        loop {
            let known = sight.borrow_and_update().clone();
            let step = known.as_ref().map(|known| (decide(known, Instant::now()), known));
            match step {
                Some((Step::Take, known)) => match self.write(known.seen.as_ref(), &self.holder).await {
                    Ok(taken) => return taken,
                    Err(error) => {
                        tracing::debug!(%error, "the lease was not taken");
                        // The one who was faster is seen in a moment.
                        let _ = tokio::time::timeout(RETRY, sight.changed()).await;
                    }
                },
                Some((Step::Wait(end), _)) => tokio::select! {
                    _ = sight.changed() => {}
                    () = sleep_until(end) => {}
                },
                None => drop(sight.changed().await),
            }
        }
    }

    /// Renews the lease until that fails for too long.
    async fn keep(&self, taken: &Seen) {
        let mut last = taken.clone();
        let mut renewed = Instant::now();
        let mut delay = RENEWAL;
        loop {
            sleep(delay).await;
            let begun = Instant::now();
            let left = (renewed + PATIENCE).saturating_duration_since(begun);
            match tokio::time::timeout(left, self.write(Some(&last), &self.holder)).await {
                Ok(Ok(seen)) => (last, renewed, delay) = (seen, begun, RENEWAL),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "the lease was not renewed");
                    // Somebody has touched it: what is left is ours only if it still says so.
                    match self.objects().get::<Seen>(self.name).await {
                        Ok(Some(seen)) if seen.spec.holder_identity == self.holder => last = seen,
                        Ok(_) => return,
                        Err(_) => {}
                    }
                    delay = RETRY;
                }
                Err(_) => return,
            }
            if renewed.elapsed() >= PATIENCE {
                return;
            }
        }
    }

    /// Lets others have it, if it is still ours.
    async fn release(&self) {
        let released = async {
            let Some(seen) = self.objects().get::<Seen>(self.name).await? else { return Ok(()) };
            if seen.spec.holder_identity == self.holder {
                self.write(Some(&seen), "").await?;
            }
            Result::Ok(())
        };
        if let Err(error) = released.await {
            tracing::debug!(%error, "the lease was not released; it runs out");
        }
    }

    /// Writes a new holder into the lease as it was seen.
    async fn write(&self, seen: Option<&Seen>, holder: &str) -> Result<Seen> {
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let is_same = seen.is_some_and(|seen| seen.spec.holder_identity == holder);
        let transitions =
            seen.map_or(0, |seen| seen.spec.lease_transitions + u64::from(!is_same && !holder.is_empty()));
        let mut spec = json!({
            "holderIdentity": holder,
            "leaseDurationSeconds": if holder.is_empty() { 1 } else { DURATION.as_secs() },
            "renewTime": now,
            "leaseTransitions": transitions,
        });
        if !is_same {
            spec["acquireTime"] = now.into();
        }
        let objects = self.objects();
        let metadata = |version: Option<&str>| json!({"name": self.name, "resourceVersion": version});
        match seen {
            None => objects.create(&json!({"metadata": metadata(None), "spec": spec})).await,
            Some(seen) => {
                let version = Some(&*seen.metadata.resource_version);
                let patch: Value = json!({"metadata": metadata(version), "spec": spec});
                objects.merge(self.name, &patch).await
            }
        }
    }
}

/// Keeps the lease in sight.
struct Lookout(watch::Sender<Option<Sight>>);

impl Listener for Lookout {
    fn hear(&mut self, event: Event<'_>) -> Result<()> {
        let sight = |seen| Some(Sight { seen, at: Instant::now() });
        match event {
            Event::Reset | Event::NotServed => {}
            Event::Seen(_, line) => drop(self.0.send_replace(sight(Some(line.parse()?)))),
            Event::Gone(..) => drop(self.0.send_replace(sight(None))),
            Event::Synced => {
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
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_taken_when_there_is_none_or_it_is_let_go_or_has_run_out_by_our_own_clock() {
        let at = Instant::now();
        let held = |holder: &str| {
            let spec =
                Spec { holder_identity: holder.to_owned(), lease_duration_seconds: 5, lease_transitions: 0 };
            Sight { seen: Some(Seen { spec, ..Seen::default() }), at }
        };
        let end = at + Duration::from_secs(5);
        assert_eq!(decide(&Sight { seen: None, at }, at), Step::Take);
        assert_eq!(decide(&held(""), at), Step::Take);
        assert_eq!(decide(&held("other"), at), Step::Wait(end));
        assert_eq!(decide(&held("other"), at + Duration::from_secs(4)), Step::Wait(end));
        assert_eq!(decide(&held("other"), end), Step::Take);
    }
}
