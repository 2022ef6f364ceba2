//! Lists: order, pages, versions, selectors.

use model::Revision;
use serde_json::{Value, json};

use crate::client::{CONFIGMAPS, Client, OF_THE_SERVER, version};

async fn with_objects(count: usize) -> Client {
    let client = Client::new().await;
    for i in 0..count {
        let labels = json!({"parity": if i % 2 == 0 { "even" } else { "odd" }});
        client.create(CONFIGMAPS, &json!({"metadata": {"name": format!("c{i}"), "labels": labels}})).await;
    }
    client
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_list_is_in_key_order_and_its_version_starts_a_watch() {
    let client = with_objects(3).await;
    client.create("/api/v1/namespaces/kube-public/configmaps", &json!({"metadata": {"name": "a"}})).await;
    let list = client.get(CONFIGMAPS).await.json();
    assert_eq!((list["kind"].as_str(), list["apiVersion"].as_str()), (Some("ConfigMapList"), Some("v1")));
    assert_eq!(names(&list), ["c0", "c1", "c2"]);
    assert!(list["items"][0].get("kind").is_none(), "items of a built-in list have no kind");
    let all = client.get("/api/v1/configmaps").await.json();
    assert_eq!(names(&all), ["c0", "c1", "c2", "a", OF_THE_SERVER]);
    assert_eq!(version(&list), client.store.clock().await.unwrap().current.0);
    let empty = client.get("/api/v1/namespaces/default/secrets").await.json();
    assert_eq!(empty["items"], json!([]));
    assert!(version(&empty) > 0);
}

#[tokio::test]
async fn pages_show_one_state_and_count_what_is_left() {
    let client = with_objects(5).await;
    let first = client.get(&format!("{CONFIGMAPS}?limit=2")).await.json();
    assert_eq!(names(&first), ["c0", "c1"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    client.delete(&format!("{CONFIGMAPS}/c3")).await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "c1a"}})).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = client.get(&format!("{CONFIGMAPS}?limit=2&continue={token}")).await.json();
    assert_eq!(names(&second), ["c2", "c3"], "the state of the first page");
    assert_eq!(version(&second), version(&first));
    assert_eq!(second["metadata"]["remainingItemCount"], 1);
    let token = second["metadata"]["continue"].as_str().unwrap();
    let third = client.get(&format!("{CONFIGMAPS}?limit=2&continue={token}")).await.json();
    assert_eq!(names(&third), ["c4"]);
    assert!(
        third["metadata"].get("continue").is_none() && third["metadata"].get("remainingItemCount").is_none()
    );
    let selected = client.get(&format!("{CONFIGMAPS}?limit=1&labelSelector=parity")).await.json();
    assert!(selected["metadata"].get("remainingItemCount").is_none(), "nobody counts a selection");
}

#[tokio::test]
async fn an_expired_token_gives_a_fresh_one_that_goes_on_in_the_newest_state() {
    let client = with_objects(4).await;
    let first = client.get(&format!("{CONFIGMAPS}?limit=2")).await.json();
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "c9"}})).await;
    client.store.compact(client.store.clock().await.unwrap().current).await.unwrap();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let expired = client.get(&format!("{CONFIGMAPS}?limit=1&continue={token}")).await;
    let (code, reason, _) = expired.failure();
    assert_eq!((code, reason.as_str()), (410, "Expired"));
    let mut token = expired.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let mut seen = Vec::new();
    loop {
        let page = client.get(&format!("{CONFIGMAPS}?limit=1&continue={token}")).await.json();
        seen.extend(names(&page).into_iter().map(str::to_owned));
        match page["metadata"]["continue"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => break,
        }
    }
    assert_eq!(seen, ["c2", "c3", "c9"]);
}

#[tokio::test]
async fn versions_mean_what_kubernetes_documents() {
    let client = with_objects(1).await;
    let before = client.store.clock().await.unwrap().current;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "later"}})).await;
    let exact = format!("{CONFIGMAPS}?resourceVersion={before}&resourceVersionMatch=Exact");
    let exact = client.get(&exact).await.json();
    assert_eq!((names(&exact), version(&exact)), (vec!["c0"], before.0));
    let limited = client.get(&format!("{CONFIGMAPS}?resourceVersion={before}&limit=9")).await.json();
    assert_eq!(names(&limited), ["c0"]);
    for query in ["resourceVersion=0", &format!("resourceVersion={before}"), "resourceVersion=0&limit=9"] {
        assert_eq!(
            names(&client.get(&format!("{CONFIGMAPS}?{query}")).await.json()),
            ["c0", "later"],
            "{query}"
        );
    }
    for query in ["resourceVersion=99999", "resourceVersion=99999&resourceVersionMatch=Exact"] {
        let future = client.get(&format!("{CONFIGMAPS}?{query}")).await;
        let (code, reason, message) = future.failure();
        assert_eq!((code, reason.as_str()), (504, "Timeout"), "{query}");
        assert!(message.contains("Too large resource version: 99999"), "{message}");
        assert_eq!(future.json()["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
        assert_eq!(future.headers["retry-after"], "1");
    }
    assert_eq!(client.get(&format!("{CONFIGMAPS}/c0?resourceVersion=99999")).await.code, 504);
    assert_eq!(client.get(&format!("{CONFIGMAPS}/c0?resourceVersion=1")).await.code, 200);
    client.store.compact(Revision(before.0 + 1)).await.unwrap();
    let gone = client.get(&format!("{CONFIGMAPS}?resourceVersion={before}&resourceVersionMatch=Exact")).await;
    assert_eq!(gone.failure().1, "Expired");
}

#[tokio::test]
async fn nonsense_parameters_are_refused() {
    let client = Client::new().await;
    for query in [
        "resourceVersion=abc",
        "limit=abc",
        "continue=abc",
        "resourceVersionMatch=Exact",
        "sendInitialEvents=true",
        "fieldSelector=foo=bar",
        "labelSelector=a===b",
    ] {
        let code = client.get(&format!("{CONFIGMAPS}?{query}")).await.failure().0;
        assert!(matches!(code, 400 | 422), "{query}: {code}");
    }
}

#[tokio::test]
async fn selectors_select() {
    let client = with_objects(4).await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "bare"}})).await;
    for (query, expected) in [
        ("labelSelector=parity%3Deven", vec!["c0", "c2"]),
        ("labelSelector=parity%3D%3Dodd", vec!["c1", "c3"]),
        ("labelSelector=parity!%3Deven", vec!["bare", "c1", "c3"]),
        ("labelSelector=parity%20in%20(even,odd)", vec!["c0", "c1", "c2", "c3"]),
        ("labelSelector=parity%20notin%20(even)", vec!["bare", "c1", "c3"]),
        ("labelSelector=parity", vec!["c0", "c1", "c2", "c3"]),
        ("labelSelector=!parity", vec!["bare"]),
        ("fieldSelector=metadata.name%3Dc2", vec!["c2"]),
        ("fieldSelector=metadata.name!%3Dc2", vec!["bare", "c0", "c1", "c3"]),
        ("fieldSelector=metadata.name%3Dc2&labelSelector=parity%3Dodd", vec![]),
        ("fieldSelector=metadata.namespace%3Dother", vec![]),
    ] {
        let list = client.get(&format!("{CONFIGMAPS}?{query}")).await.json();
        assert_eq!(names(&list), expected, "{query}");
    }
    let everywhere = client.get("/api/v1/configmaps?fieldSelector=metadata.name%3Dc2").await.json();
    assert_eq!(names(&everywhere), ["c2"]);
    client
        .create("/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": "s"}, "type": "x/y"}))
        .await;
    client.create("/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": "o"}})).await;
    let typed = client.get("/api/v1/secrets?fieldSelector=type%3DOpaque").await.json();
    assert_eq!(names(&typed), ["o"]);
    let active =
        client.get("/api/v1/namespaces?fieldSelector=status.phase%3DActive,metadata.name%3Ddefault").await;
    assert_eq!(names(&active.json()), ["default"]);
}

#[tokio::test]
async fn a_long_list_comes_whole() {
    let client = with_objects(1).await;
    let text = "x".repeat(10_000);
    for i in 0..1200 {
        client
            .create(CONFIGMAPS, &json!({"metadata": {"name": format!("l{i:04}")}, "data": {"t": text}}))
            .await;
    }
    let list = client.get(CONFIGMAPS).await.json();
    assert_eq!(names(&list).len(), 1201);
    let first = client.get(&format!("{CONFIGMAPS}?limit=1100")).await.json();
    assert_eq!((names(&first).len(), &first["metadata"]["remainingItemCount"]), (1100, &json!(101)));
}
