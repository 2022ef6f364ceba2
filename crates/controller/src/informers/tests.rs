//! SharedInformers of a server that says what it is told to.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt;
use futures::channel::mpsc;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use serde_json::{Value, json};
use tower_service::Service;

use super::informer::{FIRST_DELAY, INITIAL_EVENTS_END};
use super::*;
use crate::{ObjectKey, ResourceKind, Result};

const SHIPS: ResourceKind =
    ResourceKind { group: "sea.example.com", version: "v1", kind: "Ship", plural: "ships" };

/// A request, and the way to answer it.
struct Asked {
    query: String,
    answer: mpsc::UnboundedSender<String>,
}

/// The requests that the server refuses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refuses {
    Nothing,
    /// `sendInitialEvents`, as Kubernetes without the feature WatchList.
    InitialEvents,
    /// Watches that begin with the state, and continue tokens: they have expired.
    InitialEventsAndContinue,
}

impl Asked {
    fn say(&self, name: &str, object: &Value) {
        let line = json!({"type": name, "object": object}).to_string() + "\n";
        self.answer.unbounded_send(line).unwrap();
    }

    fn ship(&self, event: &str, name: &str, revision: u64) {
        self.say(event, &json!({"metadata": {"name": name, "resourceVersion": revision.to_string()}}));
    }

    fn initial_end(&self, revision: u64) {
        let annotations = json!({INITIAL_EVENTS_END: "true"});
        let metadata = json!({"resourceVersion": revision.to_string(), "annotations": annotations});
        self.say("BOOKMARK", &json!({"metadata": metadata}));
    }

    fn is_initial(&self) -> bool {
        self.query.contains("sendInitialEvents=true")
    }

    /// Answers a list, whole.
    fn list(self, names: &[&str], metadata: &Value) {
        let items: Vec<Value> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
        self.answer.unbounded_send(json!({"items": items, "metadata": metadata}).to_string()).unwrap();
    }
}

struct Server(mpsc::UnboundedSender<Asked>, Refuses);

impl Server {
    /// The code of a refusal.
    fn refusal(&self, query: &str) -> Option<u16> {
        let refuses = |what: &str| query.contains(what);
        match self.1 {
            Refuses::Nothing => None,
            _ if refuses("sendInitialEvents") => Some(422),
            Refuses::InitialEventsAndContinue if refuses("continue=") => Some(410),
            _ => None,
        }
    }
}

impl Service<Request<Body>> for Server {
    type Response = Response<UnsyncBoxBody<Bytes, Infallible>>;
    type Error = Infallible;
    type Future = Ready<std::result::Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (answer, said) = mpsc::unbounded();
        let query = request.uri().query().unwrap_or_default().to_owned();
        if let Some(code) = self.refusal(&query) {
            let status = json!({"kind": "Status", "status": "Failure", "code": code}).to_string();
            let frame = futures::stream::iter([Ok(Frame::data(Bytes::from(status)))]);
            let body = UnsyncBoxBody::new(StreamBody::new(frame));
            return ready(Ok(Response::builder().status(code).body(body).unwrap()));
        }
        // The test may have ended.
        let _ = self.0.unbounded_send(Asked { query, answer });
        let frames = said.map(|text: String| Ok(Frame::data(Bytes::from(text))));
        ready(Ok(Response::new(UnsyncBoxBody::new(StreamBody::new(frames)))))
    }
}

/// Passes on what it receives.
struct Echo(mpsc::UnboundedSender<String>);

impl EventHandler for Echo {
    fn handle(&mut self, event: WatchEvent<'_>) -> Result<()> {
        let name = |key: &ObjectKey| key.name.clone();
        let said = match event {
            WatchEvent::Init => "init".to_owned(),
            WatchEvent::InitDone => "done".to_owned(),
            WatchEvent::NotServed => "not served".to_owned(),
            WatchEvent::Apply(key, _) if key.name == "bad" => panic!("a test of what becomes of the others"),
            WatchEvent::Apply(key, _) => name(key),
            WatchEvent::Delete(key, _) => format!("no {}", name(key)),
        };
        let _ = self.0.unbounded_send(said);
        Ok(())
    }
}

struct Bed {
    informers: SharedInformers,
    requests: mpsc::UnboundedReceiver<Asked>,
}

impl Bed {
    fn new() -> Self {
        Self::refusing(Refuses::Nothing)
    }

    fn refusing(refuses: Refuses) -> Self {
        let (server, requests) = mpsc::unbounded();
        let client = Client::new(Server(server, refuses), "default");
        Self { informers: SharedInformers::paused(client), requests }
    }

    fn register(&self) -> (Registration, mpsc::UnboundedReceiver<String>) {
        let (echo, heard) = mpsc::unbounded();
        (self.informers.register(ListWatch::all(SHIPS), Box::new(Echo(echo))), heard)
    }

    async fn asked(&mut self) -> Asked {
        self.requests.next().await.unwrap()
    }
}

async fn assert_heard(by: &mut mpsc::UnboundedReceiver<String>, expected: &[&str]) {
    for expected in expected {
        assert_eq!(by.next().await.as_deref(), Some(*expected));
    }
}

#[tokio::test]
async fn handlers_that_are_registered_before_the_start_share_one_request() {
    let mut bed = Bed::new();
    let ((_one, mut first), (_two, mut second)) = (bed.register(), bed.register());
    bed.informers.start();
    let stream = bed.asked().await;
    assert!(stream.is_initial());
    stream.ship("ADDED", "a", 3);
    stream.ship("ADDED", "bad", 1);
    stream.initial_end(5);
    stream.ship("MODIFIED", "b", 6);
    stream.ship("DELETED", "a", 7);
    for heard in [&mut first, &mut second] {
        assert_heard(heard, &["init", "a", "done", "b", "no a"]).await;
    }
    drop(stream);
    assert!(bed.asked().await.query.contains("resourceVersion=7"), "goes on where it was");
}

#[tokio::test]
async fn a_late_handler_gets_the_present_objects_and_no_handler_gets_an_event_twice_or_misses_one() {
    let mut bed = Bed::new();
    let (_one, mut first) = bed.register();
    bed.informers.start();
    let stream = bed.asked().await;
    stream.initial_end(5);
    assert_heard(&mut first, &["init", "done"]).await;

    let (two, mut second) = bed.register();
    let state = bed.asked().await;
    assert!(state.is_initial());
    state.ship("ADDED", "a", 8);
    state.initial_end(9);
    assert_heard(&mut second, &["init", "a", "done"]).await;

    let stream = bed.asked().await;
    assert!(stream.query.contains("resourceVersion=5"), "{}", stream.query);
    stream.ship("ADDED", "a", 8);
    stream.ship("DELETED", "b", 9);
    stream.ship("ADDED", "c", 10);
    assert_heard(&mut first, &["a", "no b", "c"]).await;
    assert_heard(&mut second, &["c"]).await;

    drop(two);
    assert_eq!(second.next().await, None, "a dropped handler is gone");
    stream.ship("ADDED", "d", 11);
    assert_heard(&mut first, &["d"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_is_a_new_list_for_all_and_the_last_registration_ends_the_informer() {
    let mut bed = Bed::new();
    let ((one, mut first), (two, mut second)) = (bed.register(), bed.register());
    bed.informers.start();
    let stream = bed.asked().await;
    stream.initial_end(5);
    stream.say("ERROR", &json!({"status": "Failure", "code": 410, "reason": "Expired", "metadata": {}}));
    let stream = bed.asked().await;
    assert!(stream.is_initial());
    stream.initial_end(9);
    for heard in [&mut first, &mut second] {
        assert_heard(heard, &["init", "done", "init", "done"]).await;
    }
    drop((one, two));
    assert_eq!((first.next().await, second.next().await), (None, None));
    let (_three, mut third) = bed.register();
    bed.asked().await.initial_end(9);
    assert_heard(&mut third, &["init", "done"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_is_not_asked_all_the_time() {
    let mut bed = Bed::new();
    let (_one, mut heard) = bed.register();
    bed.informers.start();
    bed.asked().await.initial_end(5);
    assert_heard(&mut heard, &["init", "done"]).await;
    // That there was a state is news: changes may have followed it.
    let begun = tokio::time::Instant::now();
    for _ in 0..3 {
        bed.asked().await.say("BOOKMARK", &json!({"metadata": {"resourceVersion": "5"}}));
    }
    bed.asked().await;
    assert_eq!(begun.elapsed(), 3 * FIRST_DELAY);
}

#[tokio::test]
async fn an_informer_that_panics_is_reported_by_its_name() {
    let bed = Bed::new();
    bed.informers.start();
    let (_registration, _heard) = bed.register();
    let name = format!("the informer of {}", ListWatch::all(SHIPS));
    assert!(bed.informers.inject_fault(&name));
    assert_eq!(bed.informers.failed().await.task, name);
}

#[tokio::test]
async fn a_server_that_refuses_initial_events_is_listed_page_by_page_and_watched_from_there() {
    let mut bed = Bed::refusing(Refuses::InitialEvents);
    let (_one, mut first) = bed.register();
    bed.informers.start();
    let page = bed.asked().await;
    assert_eq!(page.query, "limit=500");
    page.list(&["a", "b"], &json!({"resourceVersion": "5", "continue": "more"}));
    let page = bed.asked().await;
    assert_eq!(page.query, "limit=500&continue=more");
    page.list(&["c"], &json!({"resourceVersion": "5"}));
    assert_heard(&mut first, &["init", "a", "b", "c", "done"]).await;
    let stream = bed.asked().await;
    assert!(
        stream.query.ends_with("watch=true&allowWatchBookmarks=true&resourceVersion=5"),
        "{}",
        stream.query
    );
    stream.ship("DELETED", "a", 6);
    assert_heard(&mut first, &["no a"]).await;

    let (_two, mut second) = bed.register();
    let page = bed.asked().await;
    assert_eq!(
        page.query, "limit=500",
        "the refusal is remembered, and the late handler gets a list of its own"
    );
    page.list(&["b", "c"], &json!({"resourceVersion": "7"}));
    assert_heard(&mut second, &["init", "b", "c", "done"]).await;
    let stream = bed.asked().await;
    assert!(stream.query.ends_with("resourceVersion=6"), "{}", stream.query);
    stream.ship("MODIFIED", "b", 7);
    stream.ship("ADDED", "d", 8);
    assert_heard(&mut first, &["b", "d"]).await;
    assert_heard(&mut second, &["d"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_continue_token_expired_begins_anew_in_one_piece() {
    let mut bed = Bed::refusing(Refuses::InitialEventsAndContinue);
    let (_one, mut heard) = bed.register();
    bed.informers.start();
    bed.asked().await.list(&["a"], &json!({"resourceVersion": "5", "continue": "old"}));
    let whole = bed.asked().await;
    assert_eq!(whole.query, "");
    whole.list(&["a", "b"], &json!({"resourceVersion": "9"}));
    assert_heard(&mut heard, &["init", "a", "init", "a", "b", "done"]).await;
    let stream = bed.asked().await;
    assert!(stream.query.ends_with("resourceVersion=9"), "{}", stream.query);
    stream.say("ERROR", &json!({"status": "Failure", "code": 410, "reason": "Expired", "metadata": {}}));
    drop(stream);
    assert_eq!(bed.asked().await.query, "limit=500", "an expired version is a new list");
}
