//! Roles and bindings: effective as soon as they are written, with Kubernetes' default roles.

use apiserver::auth::{Identity, Mode};
use serde_json::{Value, json};

use crate::client::{CONFIGMAPS, Client};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn jane() -> Identity {
    Identity::authenticated("jane", [])
}

async fn allow(admin: &Client, rules: Value) {
    let role = json!({"metadata": {"name": "r"}, "rules": rules});
    admin.create(&format!("{RBAC}/namespaces/default/roles"), &role).await;
    let binding = json!({
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "jane"}],
    });
    admin.create(&format!("{RBAC}/namespaces/default/rolebindings"), &binding).await;
}

#[tokio::test]
async fn a_role_applies_when_its_write_returns() {
    let admin = Client::new().await;
    let jane = admin.as_caller(jane());
    assert_eq!(jane.get(CONFIGMAPS).await.code, 403);
    allow(&admin, json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]}])).await;
    assert_eq!(jane.get(CONFIGMAPS).await.code, 200);
    assert_eq!(jane.get("/api/v1/configmaps").await.code, 403, "not in other namespaces");
    let role = format!("{RBAC}/namespaces/default/roles/r");
    assert_eq!(admin.merge(&role, &json!({"rules": []})).await.code, 200);
    assert_eq!(jane.get(CONFIGMAPS).await.code, 403);
    assert_eq!(admin.delete(&role).await.code, 200);
    let (_, _, message) = jane.get(CONFIGMAPS).await.failure();
    let end = "in the namespace \"default\": RBAC: role.rbac.authorization.k8s.io \"r\" not found";
    assert!(message.ends_with(end), "{message}");
}

#[tokio::test]
async fn another_server_applies_new_roles() {
    let admin = Client::new().await;
    let other = admin.restarted().await.as_caller(jane());
    allow(&admin, json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]}])).await;
    while other.get(CONFIGMAPS).await.code != 200 {
        tokio::task::yield_now().await;
    }
    let later = admin.restarted().await.as_caller(jane());
    assert_eq!(later.get(CONFIGMAPS).await.code, 200);
}

#[tokio::test]
async fn a_list_of_one_name_needs_the_right_to_that_object_only() {
    let admin = Client::new().await;
    let only_a = json!([{"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"]}]);
    allow(&admin, only_a).await;
    let jane = admin.as_caller(jane());
    for (query, code) in
        [("", 403), ("?fieldSelector=metadata.name%3Da", 200), ("?fieldSelector=metadata.name%3Db", 403)]
    {
        assert_eq!(jane.get(&format!("{CONFIGMAPS}{query}")).await.code, code, "{query}");
    }
}

#[tokio::test]
async fn the_default_roles_allow_discovery_and_self_reviews() {
    let admin = Client::new().await;
    for (caller, allowed, refused) in [
        (
            Identity::anonymous(),
            &["/version", "/livez", "/readyz", "/healthz"][..],
            &["/api", "/openapi/v2", "/livez/ping"][..],
        ),
        (
            jane(),
            &["/api", "/apis/apps/v1", "/openapi/v2", "/version/", "/livez"],
            &["/", "/metrics", "/api/v1/nodes"],
        ),
        (
            Identity::authenticated("m", ["system:monitoring".to_owned()]),
            &["/metrics", "/livez/ping"],
            &["/"],
        ),
    ] {
        let client = admin.as_caller(caller);
        for path in allowed {
            assert_eq!(client.get(path).await.code, 200, "{path}");
        }
        for path in refused {
            assert_eq!(client.get(path).await.code, 403, "{path}");
        }
    }
}

#[tokio::test]
async fn a_restart_reconciles_the_default_roles() {
    let admin = Client::new().await;
    let role = format!("{RBAC}/clusterroles/system:basic-user");
    let binding = format!("{RBAC}/clusterrolebindings/system:basic-user");
    let before = admin.get(&role).await.json();
    let extra = json!({"verbs": ["get"], "nonResourceURLs": ["/mine"]});
    admin.merge(&role, &json!({"rules": [before["rules"][1], extra]})).await;
    let left_alone = json!({"metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}, "subjects": []});
    assert_eq!(admin.merge(&binding, &left_alone).await.code, 200);
    admin.restarted().await;
    let rules = admin.get(&role).await.json()["rules"].clone();
    assert_eq!(rules[1], extra);
    assert_eq!(rules.as_array().map(Vec::len), Some(4), "{rules}");
    assert!(admin.get(&binding).await.json().get("subjects").is_none_or(|subjects| subjects == &json!([])));
}

#[tokio::test]
async fn other_authorization_modes_ignore_roles() {
    for (mode, code) in [(Mode::AlwaysAllow, 200), (Mode::AlwaysDeny, 403)] {
        let admin = Client::with(|builder| builder.authorization(vec![mode])).await;
        assert_eq!(admin.as_caller(jane()).get(CONFIGMAPS).await.code, code);
        assert_eq!(admin.get(CONFIGMAPS).await.code, 200);
    }
}

#[tokio::test]
async fn a_default_binding_with_another_role_is_recreated_at_restart() {
    let client = Client::new().await;
    client.api.ready().await;
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:discovery";
    let mut binding = client.get(path).await.json();
    let wanted = binding["roleRef"].clone();
    assert_eq!(client.delete(path).await.code, 200);
    binding["roleRef"]["name"] = "cluster-admin".into();
    binding["metadata"] = json!({"name": "system:discovery"});
    client.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    let again = client.restarted().await;
    again.api.ready().await;
    assert_eq!(again.get(path).await.json()["roleRef"], wanted);
}
