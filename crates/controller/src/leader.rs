//! One of many: who holds a Lease works, the others watch it and take over when it is let go or runs out.

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use process::Shutdown;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use crate::watch::{Event, Listener, Target};
use crate::{Kind, Objects, Result, Sources, Watches};

const LEASES: Kind = Kind { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases" };
/// How long a lease is good for that is not renewed.
const DURATION: Duration = Duration::from_secs(5);
/// How often it is renewed.
const RENEWAL: Duration = Duration::from_millis(1500);
/// How long the holder works without a renewal; then the work is asked to stop.
const PATIENCE: Duration = Duration::from_millis(3500);
/// When work that does not stop by itself is dropped, counted from the last renewal: with a margin before another process may begin.
const CUT_OFF: Duration = Duration::from_millis(4500);
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

/// Does the work whenever this process holds the lease, until a stop is requested. The work is asked to stop when the lease is not
/// renewed, and is dropped where it does not: it has ended before another process begins with it, whatever hangs.
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
        match lease.hold(taken, stop.as_mut(), &work).await {
            End::OfWork => return,
            End::Stopped => return lease.release().await,
            End::Lost if shutdown.is_requested() => return,
            End::Lost => {
                tracing::warn!(
                    lease = lease.name,
                    "the lease was lost; another process may run the controllers"
                );
            }
        }
    }
}

/// Why a holder does not hold the lease any more.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The work is done.
    OfWork,
    /// A stop was requested, and the work has ended while the lease was held.
    Stopped,
    /// The lease was not renewed in time. The work has ended, or was dropped.
    Lost,
}

/// A lease that this process has got.
#[derive(Debug)]
struct Taken {
    seen: Seen,
    /// Before the request that took it was sent: for others it is good for longer.
    at: Instant,
}

impl Lease {
    fn objects(&self) -> Objects {
        Objects::new(&self.client, &LEASES.resource(), Some(self.namespace))
    }

    /// Does the work while the lease is renewed.
    async fn hold<W: Future<Output = ()>>(
        &self,
        taken: Taken,
        stop: impl Future<Output = ()>,
        work: impl Fn(Shutdown) -> W,
    ) -> End {
        let turn = Shutdown::new();
        let mut working = std::pin::pin!(work(turn.clone()));
        let mut keeping = std::pin::pin!(self.keep(taken));
        let lost = tokio::select! {
            () = &mut working => return End::OfWork,
            renewed = &mut keeping => Some(renewed),
            () = stop => None,
        };
        turn.request();
        // Until the work has ended the lease is kept.
        let renewed = match lost {
            Some(renewed) => renewed,
            None => tokio::select! {
                () = &mut working => return End::Stopped,
                renewed = &mut keeping => renewed,
            },
        };
        if timeout_at(renewed + CUT_OFF, working).await.is_err() {
            tracing::error!(
                lease = self.name,
                "cannot stop the controllers before the lease expires; dropping them"
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
                    match timeout(PATIENCE, self.write(known.seen.as_ref(), &self.holder)).await {
                        Ok(Ok(seen)) => return Taken { seen, at },
                        Ok(Err(error)) => {
                            tracing::debug!(%error, "the lease was not taken");
                            // The one who was faster is seen in a moment.
                            let _ = timeout(RETRY, sight.changed()).await;
                        }
                        Err(_) => tracing::debug!("taking the lease took too long"),
                    }
                }
                Some((Step::Wait(end), _)) => tokio::select! {
                    _ = sight.changed() => {}
                    () = sleep_until(end) => {}
                },
                None => drop(sight.changed().await),
            }
        }
    }

    /// Renews the lease until that fails for too long, or somebody else has it. Gives the time of the last renewal: nothing here
    /// waits longer than the patience that is left from then.
    async fn keep(&self, Taken { seen: mut last, at: mut renewed }: Taken) -> Instant {
        let mut delay = RENEWAL;
        loop {
            let end = renewed + PATIENCE;
            let renewal = async {
                sleep(delay).await;
                let begun = Instant::now();
                match self.write(Some(&last), &self.holder).await {
                    Ok(seen) => Kept::Renewed(seen, begun),
                    Err(error) => {
                        tracing::debug!(%error, "the lease was not renewed");
                        // Somebody has touched it: what is left is ours only if it still says so.
                        match self.objects().get::<Seen>(self.name).await {
                            Ok(Some(seen)) if seen.spec.holder_identity == self.holder => Kept::Touched(seen),
                            Ok(_) => Kept::Lost,
                            Err(_) => Kept::Touched(last.clone()),
                        }
                    }
                }
            };
            match timeout_at(end, renewal).await {
                Ok(Kept::Renewed(seen, begun)) => (last, renewed, delay) = (seen, begun, RENEWAL),
                Ok(Kept::Touched(seen)) => (last, delay) = (seen, RETRY),
                Ok(Kept::Lost) | Err(_) => return renewed,
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
        match timeout(DURATION, released).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the lease was not released; it runs out"),
            Err(_) => tracing::debug!("releasing the lease took too long; it runs out"),
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

/// The outcome of a renewal.
enum Kept {
    /// It is good again, from the time on at which the request was sent.
    Renewed(Seen, Instant),
    /// It was not renewed, and is still ours as far as is known.
    Touched(Seen),
    /// Somebody else has it.
    Lost,
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
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use futures::future::BoxFuture;
    use http::Method;
    use http_body_util::Full;
    use tower_service::Service;

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

    /// An API server that hangs: it never answers the methods that are named, and answers the others with 409.
    #[derive(Clone)]
    struct Hanging(&'static [Method]);

    impl Service<http::Request<kube::client::Body>> for Hanging {
        type Response = http::Response<Full<Bytes>>;
        type Error = std::convert::Infallible;
        type Future = BoxFuture<'static, std::result::Result<Self::Response, Self::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: http::Request<kube::client::Body>) -> Self::Future {
            if self.0.contains(request.method()) {
                return Box::pin(std::future::pending());
            }
            let status = json!({"kind": "Status", "status": "Failure", "reason": "Conflict", "code": 409});
            let response = http::Response::builder().status(409).body(status.to_string().into());
            Box::pin(async { Ok(response.unwrap()) })
        }
    }

    fn lease(hangs: &'static [Method]) -> (Lease, Taken) {
        let client = Client::new(Hanging(hangs), "default");
        let lease = Lease { client, namespace: "kube-system", name: "lease", holder: "us".to_owned() };
        (lease, Taken { seen: Seen::default(), at: Instant::now() })
    }

    const ALL: &[Method] = &[Method::GET, Method::PATCH];

    #[tokio::test(start_paused = true)]
    async fn a_holder_gives_up_before_its_lease_expires_whatever_request_hangs() {
        for hangs in [&[Method::PATCH][..], &[Method::GET], ALL] {
            let (lease, taken) = lease(hangs);
            let begun = Instant::now();
            let renewed = timeout(10 * DURATION, lease.keep(taken)).await.expect("it gives up");
            assert_eq!(renewed, begun, "{hangs:?}");
            assert!(begun.elapsed() < CUT_OFF, "{hangs:?}: {:?}", begun.elapsed());
            // Nor does letting it go keep anybody waiting.
            timeout(10 * DURATION, lease.release()).await.expect("it gives up");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_does_not_stop_is_dropped_before_the_lease_expires() {
        for is_stopped in [false, true] {
            let (lease, taken) = lease(ALL);
            let begun = Instant::now();
            let stop = async move {
                if !is_stopped {
                    std::future::pending::<()>().await;
                }
            };
            let held = lease.hold(taken, stop, |_| std::future::pending());
            let end = timeout(10 * DURATION, held).await.expect("it gives up");
            assert_eq!(end, End::Lost);
            assert!(begun.elapsed() < DURATION, "{:?}", begun.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_stops_when_asked_ends_while_the_lease_is_held() {
        let (lease, taken) = lease(ALL);
        let work = |turn: Shutdown| async move { turn.requested().await };
        assert_eq!(lease.hold(taken, std::future::ready(()), work).await, End::Stopped);
    }
}
