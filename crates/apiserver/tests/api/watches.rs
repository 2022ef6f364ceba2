//! Watches: start, events, end.

use std::time::Duration;

use apiserver::Limits;
use process::Shutdown;
use serde_json::json;

use crate::client::{CONFIGMAPS, Client, OF_THE_SERVER, version};

#[tokio::test]
async fn a_watch_from_a_version_tells_every_later_change_once_in_order() {
    let client = Client::new().await;
    let made = client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "b"}})).await;
    client.create("/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": "s"}})).await;
    let mut watch =
        client.watch(&format!("{CONFIGMAPS}?watch=true&resourceVersion={}", version(&made))).await;
    watch.expect(&[("ADDED", "b")]).await;
    client.merge(&format!("{CONFIGMAPS}/a"), &json!({"data": {"x": "1"}})).await;
    client.delete(&format!("{CONFIGMAPS}/b")).await;
    let modified = watch.next().await.unwrap();
    assert_eq!(modified["type"], "MODIFIED");
    assert_eq!(modified["object"], client.get(&format!("{CONFIGMAPS}/a")).await.json());
    let deleted = watch.next().await.unwrap();
    assert_eq!(deleted["type"], "DELETED");
    assert_eq!(version(&deleted["object"]), client.store.clock().await.unwrap().current.0);
}

#[tokio::test]
async fn a_watch_without_a_version_begins_with_the_state() {
    let client = Client::new().await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    client.merge(&format!("{CONFIGMAPS}/a"), &json!({"data": {"x": "1"}})).await;
    for query in ["watch=true", "watch=1&resourceVersion=0"] {
        let mut watch = client.watch(&format!("{CONFIGMAPS}?{query}")).await;
        watch.expect(&[("ADDED", "a")]).await;
        client.merge(&format!("{CONFIGMAPS}/a"), &json!({"data": {"x": query}})).await;
        watch.expect(&[("MODIFIED", "a")]).await;
    }
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let client = Client::new().await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    let query =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = client.watch(&format!("{CONFIGMAPS}?{query}")).await;
    watch.expect(&[("ADDED", "a")]).await;
    let bookmark = watch.next().await.unwrap();
    let now = client.store.clock().await.unwrap().current.to_string();
    let metadata = json!({"resourceVersion": now, "annotations": {"k8s.io/initial-events-end": "true"}});
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata});
    assert_eq!(bookmark, json!({"type": "BOOKMARK", "object": object}));
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "b"}})).await;
    watch.expect(&[("ADDED", "b")]).await;
}

#[tokio::test]
async fn objects_enter_and_leave_a_selection() {
    let client = Client::new().await;
    let object = |color: &str| json!({"metadata": {"labels": {"color": color}}});
    let made =
        client.create(CONFIGMAPS, &json!({"metadata": {"name": "a", "labels": {"color": "red"}}})).await;
    let query = format!("watch=true&labelSelector=color%3Dred&resourceVersion={}", version(&made));
    let mut watch = client.watch(&format!("{CONFIGMAPS}?{query}")).await;
    let path = format!("{CONFIGMAPS}/a");
    let left = client.merge(&path, &object("blue")).await;
    client.merge(&path, &json!({"data": {"unseen": "1"}})).await;
    client.merge(&path, &object("red")).await;
    client.merge(&path, &json!({"data": {"seen": "1"}})).await;
    client.delete(&path).await;
    let gone = watch.next().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(gone["object"]["metadata"]["labels"]["color"], "red", "the last state that was selected");
    assert_eq!(version(&gone["object"]), left.version(), "with the version of the change");
    watch.expect(&[("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]).await;
}

#[tokio::test]
async fn a_single_object_is_watched_by_name_and_on_the_old_path() {
    let client = Client::new().await;
    for name in ["a", "b"] {
        client.create(CONFIGMAPS, &json!({"metadata": {"name": name}})).await;
    }
    let mut by_field =
        client.watch(&format!("{CONFIGMAPS}?watch=true&fieldSelector=metadata.name%3Db")).await;
    let mut old = client.watch("/api/v1/watch/namespaces/default/configmaps/b").await;
    let mut all = client.watch("/api/v1/watch/configmaps").await;
    by_field.expect(&[("ADDED", "b")]).await;
    old.expect(&[("ADDED", "b")]).await;
    all.expect(&[("ADDED", "a"), ("ADDED", "b"), ("ADDED", OF_THE_SERVER)]).await;
    client.merge(&format!("{CONFIGMAPS}/a"), &json!({"data": {"x": "1"}})).await;
    client.merge(&format!("{CONFIGMAPS}/b"), &json!({"data": {"x": "1"}})).await;
    by_field.expect(&[("MODIFIED", "b")]).await;
    old.expect(&[("MODIFIED", "b")]).await;
    all.expect(&[("MODIFIED", "a"), ("MODIFIED", "b")]).await;
}

#[tokio::test]
async fn a_watch_ends_after_its_time_with_a_last_bookmark() {
    let client = Client::new().await;
    let made = client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    client.create("/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": "s"}})).await;
    let query =
        format!("watch=true&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion={}", version(&made));
    let mut watch = client.watch(&format!("{CONFIGMAPS}?{query}")).await;
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert!(version(&bookmark["object"]) > version(&made), "an idle watch moves on");
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_watch_without_timeout_seconds_ends_after_the_servers_time() {
    let limits = Limits { watch_time: Duration::from_millis(1), ..Limits::default() };
    let client = Client::with(|builder| builder.limits(limits)).await;
    let mut watch = client.watch(&format!("{CONFIGMAPS}?watch=true")).await;
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_watch_from_compacted_history_is_refused() {
    let client = Client::new().await;
    let made = client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    client.delete(&format!("{CONFIGMAPS}/a")).await;
    client.store.compact(client.store.clock().await.unwrap().current).await.unwrap();
    let path = format!("{CONFIGMAPS}?watch=true&resourceVersion={}", version(&made));
    let (code, reason, _) = client.get(&path).await.failure();
    assert_eq!((code, reason.as_str()), (410, "Expired"));
}

#[tokio::test]
async fn a_stopping_server_ends_its_watches() {
    let shutdown = Shutdown::new();
    let stop = shutdown.clone();
    let client = Client::with(|builder| builder.shutdown(shutdown)).await;
    let mut watch = client.watch(&format!("{CONFIGMAPS}?watch=true")).await;
    stop.request();
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn wrong_parameters_of_a_watch_are_refused() {
    let client = Client::new().await;
    for query in ["sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "resourceVersion=abc"] {
        let code = client.get(&format!("{CONFIGMAPS}?watch=true&{query}")).await.failure().0;
        assert!(matches!(code, 400 | 422), "{query}: {code}");
    }
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999";
    assert_eq!(client.get(&format!("{CONFIGMAPS}?{query}")).await.failure().0, 504);
}
