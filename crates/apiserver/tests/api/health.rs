//! Health endpoints of servers whose database, publisher or informers fail.

use std::sync::atomic::Ordering;

use model::{ObjectKey, Resource};
use serde_json::json;
use store::Error;

use crate::client::{CONFIGMAPS, Client};
use crate::faulty::Faulty;

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
    let (client, engine) = Faulty::server(|builder| builder).await;
    assert_eq!(lines(&client, "/readyz").await, (200, "ok".to_owned()));
    let reason = "cannot execute INSERT in a read-only transaction".to_owned();
    *engine.fault.lock().unwrap() = Some(Error::Unavailable { reason });
    let map = json!({"metadata": {"name": "a"}});
    assert_eq!(client.post(CONFIGMAPS, &map).await.code, 503);
    assert_eq!(failing(&client, "/readyz").await, "etcd failed: reason withheld");
    let alone = lines(&client, "/readyz/etcd").await;
    assert_eq!(alone, (500, "internal server error: the last commit failed\n".to_owned()));
    assert_eq!(lines(&client, "/readyz?exclude=etcd").await, (200, "ok".to_owned()));
    *engine.fault.lock().unwrap() = None;
    assert_eq!(client.post(CONFIGMAPS, &map).await.code, 201);
    assert_eq!(lines(&client, "/readyz").await.0, 200);
}

#[tokio::test]
async fn a_server_whose_publisher_lags_is_not_ready_until_it_catches_up() {
    let (client, engine) = Faulty::server(|builder| builder).await;
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
