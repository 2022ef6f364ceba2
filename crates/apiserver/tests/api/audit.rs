//! The audit log where requests end as nobody planned it, and where there is none.

use std::fs;
use std::sync::Arc;

use apiserver::ApiService;
use apiserver::audit::{Audit, Log, Rotation};
use apiserver::auth::{Authorizer, Decision, Identity, Mode, Question};
use bytes::Bytes;
use futures::FutureExt;
use http::{Method, Request};
use http_body_util::StreamBody;
use model::audit::Policy;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower_service::Service;

use crate::client::Client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A log of everything.
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
        let policy =
            "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse, users: [jane]}]}";
        Audit::new(Policy::read(policy.as_bytes()).unwrap(), self.log.clone())
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

/// Fails badly when it is asked about Jane.
struct Broken;

impl Authorizer for Broken {
    fn decide(&self, caller: &Identity, _: Question<'_>) -> Decision {
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
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { client.get(MAPS).await.code });
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
    let stages: Vec<(String, Value)> = logged.seen();
    assert_eq!(stages.last().unwrap().0, "Panic");
    assert_eq!(stages.last().unwrap().1["code"], 500);
}

#[tokio::test]
async fn the_name_of_a_request_comes_back_also_where_nothing_is_logged() {
    let admin = Client::new().await;
    let named = admin.send(Method::GET, MAPS, &[("audit-id", "mine")], b"").await;
    assert_eq!(named.headers["audit-id"], "mine");
    assert!(!admin.get(MAPS).await.headers.contains_key("audit-id"));
    let logged = Logged::new();
    let admin = Client::with(|builder| builder.audit(logged.audit())).await;
    assert_eq!(admin.get(MAPS).await.headers["audit-id"].len(), 36);
    assert!(logged.seen().is_empty(), "the policy is about somebody else");
}
