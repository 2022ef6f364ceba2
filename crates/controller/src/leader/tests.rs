//! Leader election with a clock that stands still, and servers that hang.

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
    let (namespace, name) = ("kube-system".to_owned(), "lease".to_owned());
    let lease = Lease { client, namespace, name, holder: "us".to_owned(), timing: Timing::default() };
    (lease, Taken { seen: Seen::default(), at: Instant::now() })
}

const ALL: &[Method] = &[Method::GET, Method::PATCH];

#[tokio::test(start_paused = true)]
async fn an_informer_of_the_lease_that_panics_ends_the_candidate_with_its_name() {
    let (lease, _) = lease(ALL);
    let informers = SharedInformers::new(lease.client.clone());
    let name = format!("the informer of {}", lease.list_watch());
    let standing = lead_by(informers.clone(), lease, Shutdown::new(), |_| std::future::pending());
    let (ended, is_injected) = tokio::join!(standing, async { informers.inject_fault(&name) });
    assert!(is_injected);
    assert_eq!(ended.unwrap_err().task, name);
}

#[tokio::test(start_paused = true)]
async fn a_holder_gives_up_before_its_lease_expires_whatever_request_hangs() {
    for hangs in [&[Method::PATCH][..], &[Method::GET], ALL] {
        let (lease, taken) = lease(hangs);
        let begun = Instant::now();
        let renewed =
            timeout(10 * Timing::default().lease_duration(), lease.keep(taken)).await.expect("it gives up");
        assert_eq!(renewed, begun, "{hangs:?}");
        assert!(begun.elapsed() < Timing::default().cut_off(), "{hangs:?}: {:?}", begun.elapsed());
        // Nor does letting it go keep anybody waiting.
        timeout(10 * Timing::default().lease_duration(), lease.release()).await.expect("it gives up");
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
        let end = timeout(10 * Timing::default().lease_duration(), held).await.expect("it gives up");
        assert_eq!(end, End::Lost);
        assert!(begun.elapsed() < Timing::default().lease_duration(), "{:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_stops_when_asked_ends_while_the_lease_is_held() {
    let (lease, taken) = lease(ALL);
    let work = |term: Term| async move { term.stop.requested().await };
    assert_eq!(lease.hold(taken, std::future::ready(()), work).await, End::Stopped);
}
