//! Discovery, version, health, metrics.

use http::Method;
use serde_json::{Value, json};

use crate::client::{CONFIGMAPS, Client};

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

#[tokio::test]
async fn the_old_form_lists_groups_and_resources() {
    let client = Client::new().await;
    assert_eq!(client.get("/api").await.json()["versions"], json!(["v1"]));
    let groups = client.get("/apis").await.json();
    let names: Vec<&Value> =
        groups["groups"].as_array().unwrap().iter().map(|group| &group["name"]).collect();
    assert!(names.contains(&&json!("coordination.k8s.io")) && !names.contains(&&json!("")));
    let group = client.get("/apis/coordination.k8s.io").await.json();
    assert_eq!((&group["kind"], &group["preferredVersion"]["version"]), (&json!("APIGroup"), &json!("v1")));
    let core = client.get("/api/v1").await;
    let text = String::from_utf8_lossy(&core.bytes);
    let start = r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"#;
    assert!(text.starts_with(start), "fields stand in the order in which scripts look for them: {text}");
    let core = core.json();
    let find = |name: &str| core["resources"].as_array().unwrap().iter().find(|r| r["name"] == name).cloned();
    assert_eq!(
        find("configmaps").unwrap(),
        json!({
            "name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            "shortNames": ["cm"], "storageVersionHash": "qFsyl6wFWjQ=",
        })
    );
    assert_eq!(find("namespaces/finalize").unwrap()["verbs"], json!(["update"]));
    assert_eq!(find("namespaces/status").unwrap()["verbs"], json!(["get", "patch", "update"]));
    assert!(!find("namespaces").unwrap()["verbs"].as_array().unwrap().contains(&json!("deletecollection")));
}

#[tokio::test]
async fn the_aggregated_form_is_kept_until_its_tag_changes() {
    let client = Client::new().await;
    for path in ["/api", "/apis"] {
        let first = client.send(Method::GET, path, &[("accept", AGGREGATED)], b"").await;
        assert_eq!(
            first.headers["content-type"],
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        );
        assert_eq!(first.json()["kind"], "APIGroupDiscoveryList");
        let tag = first.headers["etag"].to_str().unwrap().to_owned();
        let headers = [("accept", AGGREGATED), ("if-none-match", tag.as_str())];
        let second = client.send(Method::GET, path, &headers, b"").await;
        assert_eq!((second.code, second.bytes.len()), (304, 0));
    }
    let core = client.send(Method::GET, "/api", &[("accept", AGGREGATED)], b"").await.json();
    let resources = core["items"][0]["versions"][0]["resources"].as_array().unwrap().clone();
    let namespaces = resources.iter().find(|r| r["resource"] == "namespaces").unwrap();
    assert_eq!((&namespaces["scope"], &namespaces["shortNames"]), (&json!("Cluster"), &json!(["ns"])));
    assert_eq!(namespaces["subresources"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_version_is_that_of_the_behaviour() {
    let version = Client::new().await.get("/version").await.json();
    assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("35")));
    assert!(version["gitVersion"].as_str().unwrap().starts_with("v1.35."));
}

#[tokio::test]
async fn health_has_named_checks() {
    let client = Client::new().await;
    assert_eq!(client.get("/healthz").await.bytes, "ok");
    assert_eq!(client.get("/livez/ping").await.bytes, "ok");
    assert_eq!(client.get("/livez/none").await.code, 404);
    let excluded = client.get("/livez?verbose&exclude=ping").await;
    assert!(String::from_utf8_lossy(&excluded.bytes).contains("[+]ping excluded: ok\n"));
}

#[tokio::test]
async fn a_stopping_or_broken_server_is_not_ready() {
    let shutdown = process::Shutdown::new();
    let stop = shutdown.clone();
    let client = Client::with(|builder| builder.shutdown(shutdown)).await;
    stop.request();
    assert_eq!(client.get("/readyz").await.code, 500);
    assert_eq!(client.get("/livez").await.code, 200);
    client.store.close().await;
    let broken = client.get("/healthz?verbose").await;
    assert_eq!(broken.code, 500);
    assert!(String::from_utf8_lossy(&broken.bytes).contains("[-]etcd failed: reason withheld\n"));
}

#[tokio::test]
async fn a_server_that_will_stop_soon_is_not_ready_and_serves() {
    let leaving = process::Shutdown::new();
    let client = Client::with(|builder| builder.leaving(leaving.clone())).await;
    assert_eq!(client.get("/readyz").await.code, 200);
    leaving.request();
    assert_eq!(client.get("/readyz").await.code, 500);
    assert_eq!(client.get("/livez").await.code, 200);
    assert_eq!(client.get(CONFIGMAPS).await.code, 200);
}

#[tokio::test]
async fn metrics_count_requests_by_verb_and_resource() {
    let client = Client::new().await;
    client.get(CONFIGMAPS).await;
    let text = String::from_utf8(client.get("/metrics").await.bytes.to_vec()).unwrap();
    let line = text.lines().find(|line| {
        line.starts_with("apiserver_request_total{")
            && line.contains("\"list\"")
            && line.contains("\"configmaps\"")
    });
    assert!(line.is_some_and(|line| line.ends_with(" 1")), "{text}");
    assert!(text.contains("apiserver_request_duration_seconds_bucket{"), "{text}");
}

#[tokio::test]
async fn unknown_paths_create_no_metric_series() {
    let client = Client::new().await;
    let stranger = client.as_caller(apiserver::auth::Identity::anonymous());
    for path in [
        "/apis/invented/v1/things",
        "/api/v1/invented",
        "/api/v1/namespaces/a/configmaps/b/invented",
        "/invented",
    ] {
        client.get(path).await;
        stranger.get(path).await;
        client.send(Method::from_bytes(b"INVENTED").unwrap(), path, &[], b"").await;
    }
    let text = String::from_utf8(client.get("/metrics").await.bytes.to_vec()).unwrap();
    assert!(text.contains("apiserver_request_total{"));
    assert!(!text.to_lowercase().contains("invented"), "{text}");
}

#[tokio::test]
async fn discovery_is_written_as_the_client_asks() {
    let client = Client::new().await;
    let protobuf = "application/vnd.kubernetes.protobuf";
    let v2 = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let typed = |api_version: &str, kind: &str| {
        let inner = [
            &[0x0a, api_version.len() as u8],
            api_version.as_bytes(),
            &[0x12, kind.len() as u8],
            kind.as_bytes(),
        ];
        let inner = inner.concat();
        [b"k8s\0\x0a".as_slice(), &[inner.len() as u8], &inner].concat()
    };
    for (path, accept, start) in [
        ("/api", protobuf.to_owned(), typed("", "APIVersions")),
        ("/apis", protobuf.to_owned(), typed("v1", "APIGroupList")),
        ("/apis/apps", protobuf.to_owned(), typed("v1", "APIGroup")),
        ("/api/v1", protobuf.to_owned(), typed("", "APIResourceList")),
        ("/apis/apps/v1", protobuf.to_owned(), typed("v1", "APIResourceList")),
        ("/api", format!("{protobuf}{v2}"), typed("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList")),
        ("/apis", format!("{protobuf}{v2}"), typed("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList")),
        ("/apis", format!("application/yaml{v2}"), b"apiVersion: apidiscovery.k8s.io/v2\n".to_vec()),
    ] {
        let answer = client.send(Method::GET, path, &[("accept", &accept)], b"").await;
        assert_eq!(
            (answer.code, answer.headers["content-type"].to_str().unwrap()),
            (200, &*accept),
            "{path}"
        );
        assert!(answer.bytes.starts_with(&start), "{path} {accept}");
    }
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    for (path, accept, code, message) in [
        ("/apis/apps/v1", table, 406, "only the following media types are accepted: application/json"),
        (
            "/apis/apps",
            v2.trim_start_matches(';'),
            406,
            "only the following media types are accepted: application/json",
        ),
        ("/apis", "text/html", 406, "only the following media types are accepted: application/json"),
        ("/api", "text/html", 406, "406: Not Acceptable"),
        ("/version", "application/yaml,text/html", 406, "406: Not Acceptable"),
        ("/version", table, 200, ""),
        ("/", "text/html", 200, ""),
    ] {
        let answer = client.send(Method::GET, path, &[("accept", accept)], b"").await;
        assert_eq!(answer.code, code, "{path} {accept}");
        if code != 200 && !accept.contains("yaml") {
            assert!(answer.failure().2.starts_with(message), "{path} {accept}: {answer:?}");
        }
    }
}
