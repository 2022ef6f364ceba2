//! Health endpoints of servers whose database, publisher or informers fail.

use std::sync::atomic::Ordering;

use model::{ObjectKey, Resource};
use serde_json::json;
use store::Error;

use crate::client::{CONFIGMAPS, Client};
use crate::faulty_engine::Faulty;

async fn lines(client: &Client, path: &str) -> (u16, String) {
    let answer = client.get(path).await;
    (answer.code, String::from_utf8(answer.bytes.to_vec()).unwrap())
}

/// The only failing check.
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
async fn a_server_whose_informers_cannot_list_is_not_ready_until_they_can() {
    let (client, engine) = Faulty::server(|builder| builder).await;
    engine.lists_fail.store(true, Ordering::Relaxed);
    engine.lose_history(Vec::new()).await;
    while lines(&client, "/readyz").await.0 == 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(failing(&client, "/readyz").await, "informer-sync failed: reason withheld");
    assert_eq!(lines(&client, "/livez").await.0, 200, "a restart would not help");
    engine.lists_fail.store(false, Ordering::Relaxed);
    while lines(&client, "/readyz").await.0 == 500 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_server_whose_trigger_cannot_watch_is_not_ready_until_it_can() {
    let change = |builder: apiserver::Builder| {
        builder.address("192.0.2.1:6443".parse().unwrap()).host("test".to_owned())
    };
    let (client, engine) = Faulty::server(change).await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let name = client.get(leases).await.json()["items"][0]["metadata"]["name"].clone();
    // A watch with a selector shows the last selected version of an object that leaves the selection.
    engine.old_versions_fail.store(true, Ordering::Relaxed);
    // Time is paused, so the informer retries when the test wants it.
    tokio::time::pause();
    let unlabelled = json!({"metadata": {"labels": null}});
    let path = format!("{leases}/{}", name.as_str().unwrap());
    assert_eq!(client.merge(&path, &unlabelled).await.code, 200);
    while lines(&client, "/readyz").await.0 == 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(failing(&client, "/readyz").await, "informer-sync failed: reason withheld");
    tokio::time::resume();
    while lines(&client, "/readyz").await.0 == 500 {
        tokio::task::yield_now().await;
    }
}

/// Checks of kube-apiserver for components that Orlop does not have, with the reason. Such a check could not fail.
const WITHOUT_COUNTERPART: [(&str, &str); 8] = [
    ("poststarthook/priority-and-fairness-filter", "the limits of requests in flight have no task"),
    ("poststarthook/storage-object-count-tracker-hook", "objects are not counted for the cost of a request"),
    ("poststarthook/start-service-ip-repair-controllers", "addresses are allocated by the transaction"),
    (
        "poststarthook/apiservice-status-local-available-controller",
        "the write of an APIService sets its status",
    ),
    ("poststarthook/apiservice-status-remote-available-controller", "no other server is asked"),
    ("poststarthook/apiservice-discovery-controller", "no other server is asked"),
    ("poststarthook/apiservice-openapi-controller", "documents are made by the request for them"),
    ("poststarthook/apiservice-openapiv3-controller", "documents are made by the request for them"),
];

/// The check names of a verbose response, all passing.
fn passing(text: &str) -> Vec<String> {
    let lines = text.lines().take_while(|line| !line.ends_with("check passed"));
    let name = |line: &str| line.strip_prefix("[+]")?.strip_suffix(" ok").map(str::to_owned);
    lines.map(|line| name(line).unwrap_or_else(|| panic!("{line}: {text}"))).collect()
}

#[tokio::test]
async fn checks_have_the_names_and_the_order_of_kubernetes() {
    let fixture = oracle::fixtures("health/checks").unwrap().remove(0);
    let recorded = oracle::read_answers(&std::fs::read_to_string(fixture.answers).unwrap()).unwrap();
    let client = crate::supervision::server().await;
    for endpoint in ["healthz", "livez", "readyz"] {
        let text = recorded[&format!("the checks of {endpoint}")]["text"].as_str().unwrap();
        let mut expected = passing(text);
        expected.retain(|name| WITHOUT_COUNTERPART.iter().all(|(without, _)| name != without));
        assert_eq!(expected.len() + WITHOUT_COUNTERPART.len(), passing(text).len(), "all are recorded");
        let (_, text) = lines(&client, &format!("/{endpoint}?verbose")).await;
        let found = passing(&text);
        assert_eq!(found, expected);
        for name in found {
            assert_eq!(lines(&client, &format!("/{endpoint}/{name}")).await, (200, "ok".to_owned()));
        }
    }
}

#[tokio::test]
async fn a_check_of_a_task_that_was_never_started_is_not_listed() {
    // Without an address there is no identity Lease, and there is no audit log.
    let client = Client::new().await;
    let (_, text) = lines(&client, "/readyz?verbose").await;
    for absent in ["log", "poststarthook/bootstrap-controller"] {
        assert!(!text.contains(&format!("]{absent} ")), "{text}");
        assert_eq!(lines(&client, &format!("/readyz/{absent}")).await.0, 404);
    }
}

#[tokio::test]
async fn every_check_of_a_task_fails_with_it_on_every_endpoint() {
    for (task, check) in [
        ("the FlowSchema controller", "priority-and-fairness-config-consumer"),
        ("the CRD informer", "start-apiextensions-informers"),
        ("the CRD informer", "crd-informer-synced"),
        ("the CRD controller", "start-apiextensions-controllers"),
        ("the CRD controller", "start-kube-aggregator-informers"),
        ("the CRD controller", "apiservice-registration-controller"),
        ("the CRD controller", "kube-apiserver-autoregistration"),
        ("the selectable field controller", "start-apiextensions-controllers"),
        ("the informer of namespaces", "start-apiserver-admission-initializer"),
        ("the informer of namespaces", "generic-apiserver-start-informers"),
        ("the RBAC informer", "generic-apiserver-start-informers"),
        ("the RBAC informer", "rbac/bootstrap-roles"),
        ("the identity Lease controller", "start-kube-apiserver-identity-lease-controller"),
        ("the identity Lease controller", "start-kube-apiserver-identity-lease-garbage-collector"),
        ("the identity Lease controller", "bootstrap-controller"),
        ("the legacy token tracking controller", "start-legacy-token-tracking-controller"),
        ("the authentication ConfigMap controller", "start-cluster-authentication-info-controller"),
    ] {
        let client = crate::supervision::server().await;
        assert!(client.api.inject_fault(task), "{task}");
        client.api.failed().await;
        for endpoint in ["healthz", "livez", "readyz"] {
            let (code, _) = lines(&client, &format!("/{endpoint}/poststarthook/{check}")).await;
            assert_eq!(code, 500, "{task}: {endpoint} {check}");
        }
    }
}

#[tokio::test]
async fn checks_that_are_excluded_are_told_in_the_form_of_kubernetes() {
    let client = Client::new().await;
    let (code, text) = lines(&client, "/readyz?verbose&exclude=etcd&exclude=none&exclude=more").await;
    assert_eq!(code, 200);
    let expected = [
        "[+]etcd excluded: ok",
        r#"warn: some health checks cannot be excluded: no matches for "more", "none""#,
        "readyz check passed",
    ];
    let found: Vec<&str> = text.lines().filter(|line| expected.contains(line)).collect();
    assert_eq!(found, expected, "{text}");
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
        // The wait for the informers times out at once.
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
