//! Watches of a server that says what it is told to.

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

use super::*;
use crate::{Kind, ObjectKey};

const SHIPS: Kind = Kind { group: "sea.example.com", version: "v1", kind: "Ship", plural: "ships" };

/// A request, and what answers it.
struct Asked {
    query: String,
    answer: mpsc::UnboundedSender<String>,
}

impl Asked {
    fn say(&self, name: &str, object: &Value) {
        let line = json!({"type": name, "object": object}).to_string() + "\n";
        self.answer.unbounded_send(line).unwrap();
    }

    fn ship(&self, event: &str, name: &str, revision: u64) {
        self.say(event, &json!({"metadata": {"name": name, "resourceVersion": revision.to_string()}}));
    }

    fn end_of_state(&self, revision: u64) {
        let annotations = json!({END_OF_STATE: "true"});
        let metadata = json!({"resourceVersion": revision.to_string(), "annotations": annotations});
        self.say("BOOKMARK", &json!({"metadata": metadata}));
    }

    fn is_for_state(&self) -> bool {
        self.query.contains("sendInitialEvents=true")
    }
}

struct Server(mpsc::UnboundedSender<Asked>);

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
        // The test may have ended.
        let _ = self.0.unbounded_send(Asked { query, answer });
        let frames = said.map(|text: String| Ok(Frame::data(Bytes::from(text))));
        ready(Ok(Response::new(UnsyncBoxBody::new(StreamBody::new(frames)))))
    }
}

/// Says what it hears.
struct Echo(mpsc::UnboundedSender<String>);

impl Listener for Echo {
    fn hear(&mut self, event: Event<'_>) -> Result<()> {
        let name = |key: &ObjectKey| key.name.clone();
        let said = match event {
            Event::Reset => "reset".to_owned(),
            Event::Synced => "synced".to_owned(),
            Event::NotServed => "not served".to_owned(),
            Event::Seen(key, _) if key.name == "bad" => panic!("a test of what becomes of the others"),
            Event::Seen(key, _) => name(key),
            Event::Gone(key, _) => format!("no {}", name(key)),
        };
        let _ = self.0.unbounded_send(said);
        Ok(())
    }
}

struct Bed {
    watches: Watches,
    requests: mpsc::UnboundedReceiver<Asked>,
}

impl Bed {
    fn new() -> Self {
        let (server, requests) = mpsc::unbounded();
        Self { watches: Watches::closed(Client::new(Server(server), "default")), requests }
    }

    fn join(&self) -> (Membership, mpsc::UnboundedReceiver<String>) {
        let (echo, heard) = mpsc::unbounded();
        (self.watches.join(Target::all(SHIPS), Box::new(Echo(echo))), heard)
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
async fn those_who_are_there_at_the_beginning_share_one_request() {
    let mut bed = Bed::new();
    let ((_one, mut first), (_two, mut second)) = (bed.join(), bed.join());
    bed.watches.open();
    let stream = bed.asked().await;
    assert!(stream.is_for_state());
    stream.ship("ADDED", "a", 3);
    stream.ship("ADDED", "bad", 1);
    stream.end_of_state(5);
    stream.ship("MODIFIED", "b", 6);
    stream.ship("DELETED", "a", 7);
    for heard in [&mut first, &mut second] {
        assert_heard(heard, &["reset", "a", "synced", "b", "no a"]).await;
    }
    drop(stream);
    assert!(bed.asked().await.query.contains("resourceVersion=7"), "goes on where it was");
}

#[tokio::test]
async fn who_comes_late_gets_the_state_and_nobody_hears_anything_twice_or_misses_it() {
    let mut bed = Bed::new();
    let (_one, mut first) = bed.join();
    bed.watches.open();
    let stream = bed.asked().await;
    stream.end_of_state(5);
    assert_heard(&mut first, &["reset", "synced"]).await;

    let (two, mut second) = bed.join();
    let state = bed.asked().await;
    assert!(state.is_for_state());
    state.ship("ADDED", "a", 8);
    state.end_of_state(9);
    assert_heard(&mut second, &["reset", "a", "synced"]).await;

    let stream = bed.asked().await;
    assert!(stream.query.contains("resourceVersion=5"), "{}", stream.query);
    stream.ship("ADDED", "a", 8);
    stream.ship("DELETED", "b", 9);
    stream.ship("ADDED", "c", 10);
    assert_heard(&mut first, &["a", "no b", "c"]).await;
    assert_heard(&mut second, &["c"]).await;

    drop(two);
    assert_eq!(second.next().await, None, "who has left is forgotten");
    stream.ship("ADDED", "d", 11);
    assert_heard(&mut first, &["d"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_place_is_a_new_beginning_for_all_and_the_last_to_go_ends_the_watch() {
    let mut bed = Bed::new();
    let ((one, mut first), (two, mut second)) = (bed.join(), bed.join());
    bed.watches.open();
    let stream = bed.asked().await;
    stream.end_of_state(5);
    stream.say("ERROR", &json!({"status": "Failure", "code": 410, "reason": "Expired", "metadata": {}}));
    let stream = bed.asked().await;
    assert!(stream.is_for_state());
    stream.end_of_state(9);
    for heard in [&mut first, &mut second] {
        assert_heard(heard, &["reset", "synced", "reset", "synced"]).await;
    }
    drop((one, two));
    assert_eq!((first.next().await, second.next().await), (None, None));
    let (_three, mut third) = bed.join();
    bed.asked().await.end_of_state(9);
    assert_heard(&mut third, &["reset", "synced"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_is_not_asked_all_the_time() {
    let mut bed = Bed::new();
    let (_one, mut heard) = bed.join();
    bed.watches.open();
    bed.asked().await.end_of_state(5);
    assert_heard(&mut heard, &["reset", "synced"]).await;
    // That there was a state is news: changes may have followed it.
    let begun = tokio::time::Instant::now();
    for _ in 0..3 {
        bed.asked().await.say("BOOKMARK", &json!({"metadata": {"resourceVersion": "5"}}));
    }
    bed.asked().await;
    assert_eq!(begun.elapsed(), 3 * FIRST_DELAY);
}

#[tokio::test]
async fn a_watch_that_panics_is_reported_by_its_target() {
    let (asking, _asked) = mpsc::unbounded();
    let watches = Watches::new(Client::new(Server(asking), "default"));
    let (heard, _) = mpsc::unbounded();
    let _membership = watches.join(Target::all(SHIPS), Box::new(Echo(heard)));
    let name = format!("the watch of {}", Target::all(SHIPS));
    assert!(watches.0.feeds().tasks.inject_fault(&name));
    assert_eq!(watches.failed().await.task, name);
}
