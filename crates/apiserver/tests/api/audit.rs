//! The audit log of requests that end abnormally, and requests without an audit log.

use std::fs;
use std::sync::Arc;

use apiserver::ApiService;
use apiserver::audit::{self, Audit, Log, Rotation};
use apiserver::auth::{Authorizer, AuthorizerAttributes, Decision, Identity, Mode};
use bytes::Bytes;
use futures::FutureExt;
use http::{Method, Request};
use http_body_util::StreamBody;
use kinds::audit::Policy;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower_service::Service;

use crate::client::Client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server with a log of all requests.
struct Logged {
    file: tempfile::NamedTempFile,
    log: Arc<Log>,
}

impl Logged {
    fn new() -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        let log = Arc::new(Log::open(file.path(), Rotation::default()).unwrap());
        Self { file, log }
    }

    fn audit(&self) -> Audit {
        audit(self.log.clone())
    }

    /// The stages so far, each with the status.
    fn seen(&self) -> Vec<(String, Value)> {
        self.log.flush();
        let text = fs::read_to_string(self.file.path()).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events
            .map(|event| (event["stage"].as_str().unwrap().to_owned(), event["responseStatus"].clone()))
            .collect()
    }
}

/// Logs all requests of Jane.
fn audit(log: Arc<Log>) -> Audit {
    let policy =
        "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse, users: [jane]}]}";
    Audit::new(Policy::read(policy.as_bytes()).unwrap(), log)
}

#[tokio::test]
async fn the_last_event_is_in_the_file_before_the_response_ends() {
    let logged = Logged::new();
    let admin = Client::with(|builder| builder.audit(logged.audit())).await;
    let path = logged.file.path().to_owned();
    let mut callers = JoinSet::new();
    for caller in 0..8 {
        let client = admin.as_caller(jane(&["system:masters"]));
        let path = path.clone();
        callers.spawn(async move {
            for round in 0..25 {
                let map = json!({"metadata": {"name": format!("m-{caller}-{round}")}});
                let map = map.to_string();
                let one = format!("{MAPS}/m-{caller}-{round}");
                // Complete responses, streamed ones, and failures.
                let requests = [
                    (Method::POST, MAPS, map.as_bytes(), 201),
                    (Method::GET, one.as_str(), b"", 200),
                    (Method::GET, MAPS, b"", 200),
                    (Method::DELETE, one.as_str(), b"", 200),
                    (Method::GET, one.as_str(), b"", 404),
                    (Method::GET, "/version", b"", 200),
                ];
                for (at, (method, target, body, code)) in requests.into_iter().enumerate() {
                    let id = format!("id-{caller}-{round}-{at}");
                    let answer = client.send(method, target, &[("audit-id", &id)], body).await;
                    assert_eq!(answer.code, code, "{target}");
                    let events = fs::read_to_string(&path).unwrap();
                    let last = events.lines().rfind(|line| line.contains(&format!("\"{id}\"")));
                    let last = last.unwrap_or_else(|| panic!("{id} is not in the file"));
                    assert!(last.contains("\"stage\":\"ResponseComplete\""), "{last}");
                }
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test]
async fn a_log_that_cannot_be_written_fails_requests_in_the_strict_mode_alone() {
    for (mode, code) in
        [(audit::Mode::Batch, 200), (audit::Mode::Blocking, 200), (audit::Mode::BlockingStrict, 500)]
    {
        let full = Log::open("/dev/full".as_ref(), Rotation::default()).unwrap().with_mode(mode);
        let admin = Client::with(|builder| builder.audit(audit(Arc::new(full)))).await;
        let answer = admin.as_caller(jane(&["system:masters"])).get(MAPS).await;
        assert_eq!(answer.code, code, "{mode:?}");
    }
}

fn jane(groups: &[&str]) -> Identity {
    Identity::authenticated("jane", groups.iter().map(|group| (*group).to_owned()))
}

#[tokio::test]
async fn a_client_that_goes_away_is_logged_as_such() {
    let logged = Logged::new();
    let admin = Client::with(|builder| builder.audit(logged.audit())).await;
    let mut service = ApiService::new(admin.api.clone(), jane(&["system:masters"]));
    let endless =
        StreamBody::new(futures::stream::pending::<Result<http_body::Frame<Bytes>, std::io::Error>>());
    let request = Request::builder().method(Method::POST).uri(MAPS).body(endless).unwrap();
    assert!(service.call(request).now_or_never().is_none(), "it waits for the body");
    let early =
        json!({"metadata": {}, "status": "Success", "message": "Connection closed early", "code": 200});
    let expected = [("RequestReceived".to_owned(), Value::Null), ("ResponseComplete".to_owned(), early)];
    assert_eq!(logged.seen(), expected);
}

/// An authorizer that panics for Jane.
struct Broken;

impl Authorizer for Broken {
    fn decide(&self, caller: &Identity, _: AuthorizerAttributes<'_>) -> Decision {
        assert!(caller.name != "jane", "this is a test");
        Decision::NoOpinion { reason: String::new() }
    }
}

#[tokio::test]
async fn a_panic_is_logged_as_such() {
    let logged = Logged::new();
    let admin = Client::with(|builder| {
        builder.audit(logged.audit()).authorization(vec![Mode::Own(Arc::new(Broken)), Mode::Rbac])
    })
    .await;
    let client = admin.as_caller(jane(&[]));
    let message =
        "Internal error occurred: This request caused apiserver to panic. Look in the logs for details.";
    for round in 0..25 {
        assert_eq!(client.get(MAPS).await.failure(), (500, "InternalError".to_owned(), message.to_owned()));
        // The file has the event without a flush: the mode is blocking.
        let events = fs::read_to_string(logged.file.path()).unwrap();
        assert_eq!(events.matches("\"stage\":\"Panic\"").count(), round + 1, "{events}");
    }
    let stages: Vec<(String, Value)> = logged.seen();
    assert_eq!(stages.len(), 50, "each request is received, and panics once");
    assert_eq!(stages.last().unwrap().0, "Panic");
    assert_eq!(stages.last().unwrap().1["code"], 500);
}

#[tokio::test]
async fn the_audit_id_is_returned_without_an_audit_log() {
    let admin = Client::new().await;
    let named = admin.send(Method::GET, MAPS, &[("audit-id", "mine")], b"").await;
    assert_eq!(named.headers["audit-id"], "mine");
    assert!(!admin.get(MAPS).await.headers.contains_key("audit-id"));
    let logged = Logged::new();
    let admin = Client::with(|builder| builder.audit(logged.audit())).await;
    assert_eq!(admin.get(MAPS).await.headers["audit-id"].len(), 36);
    assert!(logged.seen().is_empty(), "the policy is about somebody else");
}
