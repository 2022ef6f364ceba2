//! Health endpoints of servers whose database, publisher or informers fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use model::{ObjectKey, Resource, Revision};
use serde_json::json;
use store::engine::{Bound, Changes, Committed, Sweep, Transaction};
use store::{ClockState, Engine, Error, ListQuery, Metrics, Options, Page, Sqlite, Store, Stored};
use tokio::sync::Notify;

use crate::client::{CONFIGMAPS, Client};

/// A database that fails when it is told to.
struct Flaky {
    database: Sqlite,
    commits_fail: AtomicBool,
    log_fails: AtomicBool,
    bell: Notify,
}

fn fault(fails: &AtomicBool) -> Result<(), Error> {
    let reason = "cannot execute INSERT in a read-only transaction".to_owned();
    if fails.load(Ordering::Relaxed) { Err(Error::Unavailable { reason }) } else { Ok(()) }
}

#[async_trait]
impl Engine for Flaky {
    async fn clock(&self) -> Result<ClockState, Error> {
        self.database.clock().await
    }

    async fn get(&self, key: &ObjectKey, at: Option<Revision>) -> Result<Option<Stored>, Error> {
        self.database.get(key, at).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, Error> {
        self.database.list(query).await
    }

    async fn commit(&self, batch: Vec<Transaction>) -> Result<Committed, Error> {
        fault(&self.commits_fail)?;
        self.database.commit(batch).await
    }

    async fn changes(&self, of: Option<&Resource>, after: Revision, bound: Bound) -> Result<Changes, Error> {
        fault(&self.log_fails)?;
        self.database.changes(of, after, bound).await
    }

    async fn bell(&self) {
        self.bell.notified().await;
    }

    async fn older_than(&self, age: Duration) -> Result<Revision, Error> {
        self.database.older_than(age).await
    }

    async fn compact(&self, through: Revision, limit: u64) -> Result<Sweep, Error> {
        self.database.compact(through, limit).await
    }

    async fn advance(&self, to: Revision) -> Result<ClockState, Error> {
        self.database.advance(to).await
    }

    async fn history_bytes(&self) -> Result<u64, Error> {
        self.database.history_bytes().await
    }

    async fn close(&self) {
        self.database.close().await;
    }
}

async fn server() -> (Client, Arc<Flaky>) {
    let engine = Arc::new(Flaky {
        database: Sqlite::in_memory().unwrap(),
        commits_fail: AtomicBool::new(false),
        log_fails: AtomicBool::new(false),
        bell: Notify::new(),
    });
    let options = Options { compaction: None, ..Options::default() };
    let store = Store::open(engine.clone(), options, &Metrics::unregistered()).await.unwrap();
    (Client::on(store, |builder| builder).await, engine)
}

async fn lines(client: &Client, path: &str) -> (u16, String) {
    let answer = client.get(path).await;
    (answer.code, String::from_utf8(answer.bytes.to_vec()).unwrap())
}

/// The one check that fails.
async fn failing(client: &Client, endpoint: &str) -> String {
    let (code, text) = lines(client, endpoint).await;
    assert_eq!(code, 500, "{text}");
    let mut failed = text.lines().filter_map(|line| line.strip_prefix("[-]"));
    let first = failed.next().unwrap().to_owned();
    assert_eq!(failed.next(), None, "{text}");
    first
}

#[tokio::test]
async fn a_server_whose_commits_fail_is_not_ready_until_one_succeeds() {
    let (client, engine) = server().await;
    assert_eq!(lines(&client, "/readyz").await, (200, "ok".to_owned()));
    engine.commits_fail.store(true, Ordering::Relaxed);
    let map = json!({"metadata": {"name": "a"}});
    assert_eq!(client.post(CONFIGMAPS, &map).await.code, 503);
    assert_eq!(failing(&client, "/readyz").await, "etcd failed: reason withheld");
    let alone = lines(&client, "/readyz/etcd").await;
    assert_eq!(alone, (500, "internal server error: the last commit failed\n".to_owned()));
    assert_eq!(lines(&client, "/readyz?exclude=etcd").await, (200, "ok".to_owned()));
    engine.commits_fail.store(false, Ordering::Relaxed);
    assert_eq!(client.post(CONFIGMAPS, &map).await.code, 201);
    assert_eq!(lines(&client, "/readyz").await.0, 200);
}

#[tokio::test]
async fn a_server_whose_publisher_lags_is_not_ready_until_it_catches_up() {
    let (client, engine) = server().await;
    engine.log_fails.store(true, Ordering::Relaxed);
    engine.bell.notify_one();
    while lines(&client, "/readyz").await.0 == 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(failing(&client, "/readyz").await, "etcd-readiness failed: reason withheld");
    assert_eq!(lines(&client, "/livez").await.0, 200, "a restart would not help");
    engine.log_fails.store(false, Ordering::Relaxed);
    while lines(&client, "/readyz").await.0 == 500 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_server_with_a_dead_informer_is_not_ready() {
    let client = Client::new().await;
    assert!(client.api.inject_fault("the informer of limitranges"));
    client.api.failed().await;
    let (code, text) = lines(&client, "/readyz").await;
    assert_eq!(code, 500);
    for check in ["ping", "informer-sync"] {
        assert!(text.contains(&format!("[-]{check} failed: reason withheld\n")), "{text}");
    }
    let (client, task) = (Client::new().await, "the RBAC informer");
    assert!(client.api.inject_fault(task));
    client.api.failed().await;
    let (_, text) = lines(&client, "/readyz").await;
    assert!(text.contains("[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\n"), "{text}");
}

#[tokio::test]
async fn checks_have_the_names_and_the_form_of_kubernetes() {
    let client = Client::new().await;
    let (code, text) = lines(&client, "/readyz?verbose&exclude=etcd&exclude=none&exclude=more").await;
    assert_eq!(code, 200);
    let expected = [
        "[+]ping ok",
        "[+]etcd excluded: ok",
        "[+]etcd-readiness ok",
        "[+]informer-sync ok",
        "[+]poststarthook/rbac/bootstrap-roles ok",
        "[+]shutdown ok",
        r#"warn: some health checks cannot be excluded: no matches for "more", "none""#,
        "readyz check passed",
    ];
    let found: Vec<&str> = text.lines().filter(|line| expected.contains(line)).collect();
    assert_eq!(found, expected, "{text}");
    let (_, alive) = lines(&client, "/livez?verbose").await;
    assert!(alive.contains("[+]etcd ok\n") && !alive.contains("]informer-sync"), "{alive}");
    assert_eq!(lines(&client, "/readyz/poststarthook/rbac/bootstrap-roles").await, (200, "ok".to_owned()));
    assert_eq!(lines(&client, "/livez/informer-sync").await.0, 404);
}

#[tokio::test]
async fn a_write_that_this_server_does_not_enforce_is_no_success() {
    let crd = json!({
        "metadata": {"name": "ships.sea.example.com"},
        "spec": {
            "group": "sea.example.com", "scope": "Namespaced",
            "names": {"plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let cases = [
        (
            "the RBAC informer",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            json!({"metadata": {"name": "a"}}),
        ),
        (
            "the RBAC informer",
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
            json!({"metadata": {"name": "a"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}),
        ),
        ("the CRD informer", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd),
        (
            "the informer of validatingwebhookconfigurations.admissionregistration.k8s.io",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            json!({"metadata": {"name": "a"}}),
        ),
        (
            "the informer of validatingadmissionpolicybindings.admissionregistration.k8s.io",
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
            json!({"metadata": {"name": "a"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}),
        ),
    ];
    for (informer, path, object) in cases {
        let client = Client::new().await;
        assert!(client.api.inject_fault(informer));
        client.api.failed().await;
        // The patience of a writer passes at once.
        tokio::time::pause();
        let (code, reason, message) = client.post(path, &object).await.failure();
        tokio::time::resume();
        assert_eq!((code, &*reason), (504, "Timeout"), "{path}: {message}");
        assert_eq!(message, "Timeout: the object was written, but this server does not enforce it yet");
        let name = object["metadata"]["name"].as_str().unwrap();
        let key = path.split('/').collect::<Vec<_>>();
        let resource = Resource::new(key[2], key[key.len() - 1]);
        let namespace = if key.contains(&"default") { "default" } else { "" };
        let stored = client.store.get(&ObjectKey::new(&resource, namespace, name), None).await.unwrap();
        assert!(stored.is_some(), "{path}");
    }
}
