//! Admission plugins, as clients see them.

use apiserver::admission::Switches;
use serde_json::{Value, json};

use super::client::Client;

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

async fn with(enable: &[&str], disable: &[&str]) -> Client {
    let switches = Switches::default().with(&names(enable), &names(disable)).unwrap();
    Client::with(|builder| builder.admission_plugins(switches)).await
}

#[tokio::test]
async fn plugins_complete_pods() {
    let client = Client::new().await;
    let made = client.create(PODS, &pod("a")).await;
    assert_eq!(made["spec"]["priority"], 0);
    assert_eq!(made["spec"]["preemptionPolicy"], "PreemptLowerPriority");
    assert_eq!(made["spec"]["tolerations"][1]["tolerationSeconds"], 300);
    // Fields that plugins set have no manager.
    let managed = made["metadata"]["managedFields"].to_string();
    assert!(!managed.contains("f:tolerations") && managed.contains("f:containers"), "{managed}");
    let without = with(&[], &["Priority", "DefaultTolerationSeconds"]).await;
    let made = without.create(PODS, &pod("a")).await;
    assert_eq!((&made["spec"]["priority"], &made["spec"]["tolerations"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_new_class_applies_to_the_next_request() {
    let client = Client::new().await;
    let class = json!({"metadata": {"name": "high"}, "value": 7, "globalDefault": true});
    client.create("/apis/scheduling.k8s.io/v1/priorityclasses", &class).await;
    let made = client.create(PODS, &pod("a")).await;
    assert_eq!((&made["spec"]["priority"], &made["spec"]["priorityClassName"]), (&json!(7), &json!("high")));
    let mut unknown = pod("b");
    unknown["spec"]["priorityClassName"] = "none".into();
    let (code, reason, message) = client.post(PODS, &unknown).await.failure();
    assert_eq!((code, reason.as_str()), (403, "Forbidden"));
    assert_eq!(message, "pods \"b\" is forbidden: no PriorityClass with name none was found");
}

#[tokio::test]
async fn a_plugin_that_refuses_comes_after_a_namespace_that_is_missing() {
    let client = Client::new().await;
    let mut unknown = pod("b");
    unknown["spec"]["priorityClassName"] = "none".into();
    let answer = client.post("/api/v1/namespaces/nowhere/pods", &unknown).await;
    assert_eq!(answer.failure().2, "namespaces \"nowhere\" not found");
}

#[tokio::test]
async fn namespace_lifecycle_can_be_disabled() {
    let client = with(&[], &["NamespaceLifecycle"]).await;
    let made = json!({"metadata": {"name": "a"}});
    client.create("/api/v1/namespaces/nowhere/configmaps", &made).await;
    assert_eq!(client.delete("/api/v1/namespaces/kube-public").await.code, 200);
    let client = Client::new().await;
    let (code, _, message) = client.delete("/api/v1/namespaces/kube-public").await.failure();
    assert_eq!(code, 403);
    assert_eq!(message, "namespaces \"kube-public\" is forbidden: this namespace may not be deleted");
}

#[tokio::test]
async fn always_deny_refuses_every_write() {
    let client = Client::new().await;
    let denying = Switches::default().with(&names(&["AlwaysDeny"]), &[]).unwrap();
    let api = apiserver::ApiServer::builder(client.store.clone()).admission_plugins(denying);
    let api = api.build().await.unwrap();
    api.ready().await;
    let admin = apiserver::auth::Identity::authenticated("admin", ["system:masters".to_owned()]);
    let client = client.of(apiserver::ApiService::new(api, admin));
    let (code, _, message) = client.post(PODS, &pod("a")).await.failure();
    assert_eq!(code, 403);
    assert_eq!(message, "pods \"a\" is forbidden: admission control is denying all modifications");
}

#[tokio::test]
async fn pods_run_as_a_service_account() {
    let client = with(&["ServiceAccount"], &[]).await;
    let refused = client.post(PODS, &pod("a")).await.failure();
    assert_eq!(
        refused.2,
        "pods \"a\" is forbidden: error looking up service account default/default: serviceaccount \"default\" not found"
    );
    let account = json!({"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "s"}]});
    client.create("/api/v1/namespaces/default/serviceaccounts", &account).await;
    let made = client.create(PODS, &pod("a")).await;
    let spec = &made["spec"];
    assert_eq!(
        (&spec["serviceAccountName"], &spec["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "s"}]));
    let volume = spec["volumes"][0]["name"].as_str().unwrap();
    assert!(volume.starts_with("kube-api-access-"), "{volume}");
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], volume);
}

#[tokio::test]
async fn limit_ranges_complete_and_refuse_pods() {
    let client = Client::new().await;
    let limits = json!([{"type": "Container", "default": {"cpu": "2"}, "max": {"cpu": "3"}}]);
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": limits}});
    client.create("/api/v1/namespaces/default/limitranges", &range).await;
    let made = client.create(PODS, &pod("a")).await;
    assert_eq!(made["spec"]["containers"][0]["resources"]["limits"], json!({"cpu": "2"}));
    let mut greedy = pod("b");
    greedy["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "4"}});
    let message = client.post(PODS, &greedy).await.failure().2;
    assert_eq!(message, "pods \"b\" is forbidden: maximum cpu usage per Container is 3, but limit is 4");
}

/// Creates a quota and waits until its status is set.
pub async fn quota(client: &Client, name: &str, hard: Value) {
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let mut made = client.create(quotas, &json!({"metadata": {"name": name}, "spec": {"hard": hard}})).await;
    let used: serde_json::Map<String, Value> =
        hard.as_object().unwrap().keys().map(|name| (name.clone(), json!("0"))).collect();
    made["status"] = json!({"hard": hard, "used": used});
    assert_eq!(client.put(&format!("{quotas}/{name}/status"), &made).await.code, 200);
}

#[tokio::test]
async fn a_quota_holds_under_concurrent_writes() {
    let client = Client::new().await;
    quota(&client, "q", json!({"configmaps": "5", "count/secrets": "1"})).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let bodies: Vec<Value> = (0..20).map(|n| json!({"metadata": {"name": format!("m{n}")}})).collect();
    let answers = futures::future::join_all(bodies.iter().map(|body| client.post(maps, body))).await;
    let made = answers.iter().filter(|answer| answer.code == 201).count();
    assert_eq!(made, 5);
    let refused = answers.iter().find(|answer| answer.code != 201).unwrap().failure();
    assert_eq!((refused.0, refused.1.as_str()), (403, "Forbidden"));
    let expected = "exceeded quota: q, requested: configmaps=1, used: configmaps=5, limited: configmaps=5";
    assert!(refused.2.ends_with(expected), "{}", refused.2);
    let quota = client.get("/api/v1/namespaces/default/resourcequotas/q").await.json();
    assert_eq!(quota["status"]["used"], json!({"configmaps": "5", "count/secrets": "0"}));
}

#[tokio::test]
async fn a_dry_run_uses_nothing_of_a_quota() {
    let client = Client::new().await;
    quota(&client, "q", json!({"configmaps": "1"})).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let dry = format!("{maps}?dryRun=All");
    for _ in 0..3 {
        assert_eq!(client.post(&dry, &json!({"metadata": {"name": "a"}})).await.code, 201);
    }
    client.create(maps, &json!({"metadata": {"name": "a"}})).await;
    assert_eq!(client.post(&dry, &json!({"metadata": {"name": "b"}})).await.code, 403);
    // A request that fails for another reason uses no quota.
    let quota = client.get("/api/v1/namespaces/default/resourcequotas/q").await.json();
    assert_eq!(quota["status"]["used"], json!({"configmaps": "1"}));
}
