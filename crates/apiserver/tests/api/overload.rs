//! Overload: slow bodies, floods of one user, clients that stop reading, too many watches.

use std::convert::Infallible;

use apiserver::auth::{Authentication, Connection, Identity, Mode, StaticToken};
use apiserver::{ApiServer, Body, Limits};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::json;
use tokio::task::JoinSet;

use crate::client::{CONFIGMAPS, Client};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const REVIEW: &str = r#"{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}"#;

const SCHEDULER: &str = "system:kube-scheduler";

/// A server with the tokens `alice`, `bob`, `carol`, `master` and the scheduler's, and its administrator in process.
async fn server(limits: Limits) -> Client {
    let token = |name: &str, groups: &[&str]| StaticToken {
        token: name.to_owned(),
        identity: Identity::authenticated(name, groups.iter().map(|group| (*group).to_owned())),
    };
    let mut tokens: Vec<_> = ["alice", "bob", "carol", SCHEDULER].map(|name| token(name, &[])).into();
    tokens.push(token("master", &["system:masters"]));
    let authentication = Authentication::new(tokens);
    Client::with(|builder| {
        builder.limits(limits).authentication(authentication).authorization(vec![Mode::AlwaysAllow])
    })
    .await
}

/// Sends a request like a remote client.
async fn send<B>(api: &ApiServer, token: &str, request: http::request::Builder, body: B) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: std::fmt::Display,
{
    let request = request.header("authorization", format!("Bearer {token}")).body(body).unwrap();
    api.answer(&Connection::Bare, request).await
}

async fn review(api: &ApiServer, token: &str) -> Response<Body> {
    send(api, token, Request::post(REVIEWS), Full::new(Bytes::from(REVIEW))).await
}

/// A body that stalls after its beginning.
fn stalled() -> impl http_body::Body<Data = Bytes, Error = Infallible> + Send {
    let first = futures::stream::iter([Ok(Frame::data(Bytes::from("{")))]);
    StreamBody::new(futures::StreamExt::chain(first, futures::stream::pending()))
}

/// The value of a metric without labels.
async fn metric(admin: &Client, name: &str) -> usize {
    let text = String::from_utf8(admin.get("/metrics").await.bytes.to_vec()).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.expect("it is counted").parse().unwrap()
}

#[tokio::test]
async fn bodies_that_stall_take_no_slot_from_others() {
    let admin = server(Limits::default()).await;
    let mut attack = JoinSet::new();
    for _ in 0..205 {
        let api = admin.api.clone();
        attack.spawn(async move { send(&api, "alice", Request::post(REVIEWS), stalled()).await });
    }
    while metric(&admin, "apiserver_current_inflight_requests").await < 205 {
        tokio::task::yield_now().await;
    }
    for token in ["bob", "alice", "master"] {
        assert_eq!(review(&admin.api, token).await.status(), 201, "{token}");
    }
    let made = admin.post(CONFIGMAPS, &json!({"metadata": {"name": "made"}})).await;
    assert_eq!(made.code, 201);
}

/// Creates ConfigMaps concurrently, and returns the responses.
async fn creates(api: &ApiServer, token: &str, count: usize) -> Vec<Response<Body>> {
    let create = |i: usize| {
        let object = json!({"metadata": {"name": format!("{token}-{i}")}});
        send(api, token, Request::post(CONFIGMAPS), Full::new(Bytes::from(object.to_string())))
    };
    futures::future::join_all((0..count).map(create)).await
}

#[tokio::test]
async fn a_flood_of_one_user_gets_429_and_leaves_slots_to_others() {
    let admin = server(Limits { writes_in_flight: 10, ..Limits::default() }).await;
    // Nothing is committed before all requests are in flight.
    let hold = admin.store.hold().await;
    let release = async { drop(hold) };
    let (api, object) = (&admin.api, json!({"metadata": {"name": "own"}}));
    let (flood, other, masters, own, ()) = tokio::join!(
        creates(api, "alice", 64),
        creates(api, "bob", 4),
        creates(api, "master", 64),
        admin.post(CONFIGMAPS, &object),
        release
    );
    let made = |answers: &[Response<Body>]| answers.iter().filter(|answer| answer.status() == 201).count();
    assert_eq!((made(&flood), made(&other), made(&masters), own.code), (4, 4, 64, 201));
    for answer in flood.into_iter().filter(|answer| answer.status() != 201) {
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"]),
            (429, &"1".parse().unwrap())
        );
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let status: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status["reason"], "TooManyRequests");
        assert_eq!(status["message"], "Too many requests, please try again later.");
    }
    let again = creates(api, "alice", 1).await;
    assert_eq!(again[0].status(), 409, "the slots are given back");
}

#[tokio::test]
async fn leader_election_gets_in_when_all_shared_slots_are_taken() {
    let admin = server(Limits { writes_in_flight: 10, ..Limits::default() }).await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let lease = json!({"metadata": {"name": "kube-scheduler"}, "spec": {"holderIdentity": "a"}});
    let lease = admin.create(leases, &lease).await;
    // The FlowSchemas exist once a response names one.
    while !admin.get(leases).await.headers.contains_key("x-kubernetes-pf-flowschema-uid") {
        tokio::task::yield_now().await;
    }
    // An unread response keeps its slot.
    let mut held = Vec::new();
    for token in ["alice", "bob", "carol"] {
        for _ in 0..4 {
            held.extend(Some(review(&admin.api, token).await).filter(|answer| answer.status() == 201));
        }
    }
    assert_eq!(held.len(), 9, "a tenth is reserved");
    assert_eq!(review(&admin.api, SCHEDULER).await.status(), 429, "it is no leader election");
    let renewal = Request::put(format!("{leases}/kube-scheduler"));
    let renewed = send(&admin.api, SCHEDULER, renewal, Full::new(Bytes::from(lease.to_string()))).await;
    assert_eq!(renewed.status(), 200);
}

#[tokio::test]
async fn a_watch_holds_the_slot_of_a_read_until_its_initial_state_is_sent() {
    let admin = server(Limits { reads_in_flight: 1, ..Limits::default() }).await;
    admin.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    let empty = || Full::new(Bytes::new());
    let watch = Request::get(format!("{CONFIGMAPS}?watch=1"));
    let mut begun = send(&admin.api, "alice", watch, empty()).await.into_body();
    let list = || send(&admin.api, "bob", Request::get(CONFIGMAPS), empty());
    assert_eq!(list().await.status(), 429);
    let event = begun.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(event.starts_with(br#"{"type":"ADDED""#), "{event:?}");
    assert_eq!(list().await.status(), 200, "the watch waits for changes and holds no objects");
}

async fn watch(api: &ApiServer, token: &str) -> Response<Body> {
    let request = Request::get(format!("{CONFIGMAPS}?watch=1&resourceVersion=1"));
    send(api, token, request, Full::new(Bytes::new())).await
}

#[tokio::test]
async fn watches_are_limited_by_user_and_given_back_when_they_end() {
    let admin = server(Limits { watches_per_user: 2, ..Limits::default() }).await;
    let (first, second) = (watch(&admin.api, "alice").await, watch(&admin.api, "alice").await);
    assert_eq!((first.status(), second.status()), (StatusCode::OK, StatusCode::OK));
    let third = watch(&admin.api, "alice").await;
    assert_eq!((third.status().as_u16(), &third.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    for token in ["bob", "master", "master", "master"] {
        assert_eq!(watch(&admin.api, token).await.status(), 200, "{token}");
    }
    drop(first);
    assert_eq!(watch(&admin.api, "alice").await.status(), 200);
}

#[tokio::test]
async fn no_piece_of_a_list_or_watch_is_much_larger_than_64_kib() {
    const EVENT: usize = 41 << 10;
    let admin = server(Limits::default()).await;
    let before = admin.get(CONFIGMAPS).await.version();
    for i in 0..30 {
        let object = json!({"metadata": {"name": format!("c{i}")}, "data": {"x": "x".repeat(40 << 10)}});
        admin.create(CONFIGMAPS, &object).await;
    }
    for (query, count) in
        [("watch=1", 30), (&*format!("watch=1&resourceVersion={before}"), 30), ("limit=1000", 30)]
    {
        let request = Request::get(format!("{CONFIGMAPS}?{query}"));
        let mut body = send(&admin.api, "alice", request, Full::new(Bytes::new())).await.into_body();
        let mut received = 0;
        while received < count * (40 << 10) {
            let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(frame.len() <= (64 << 10) + EVENT, "{query}: {}", frame.len());
            received += frame.len();
        }
    }
}
