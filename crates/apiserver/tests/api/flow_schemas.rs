//! FlowSchema headers of responses, compared with a real server.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use crate::client::Client;

const GROUP: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const SCHEMA: &str = "x-kubernetes-pf-flowschema-uid";
const LEVEL: &str = "x-kubernetes-pf-prioritylevel-uid";

/// The names of objects by uid.
async fn names(admin: &Client, plural: &str) -> BTreeMap<String, String> {
    let list = admin.get(&format!("{GROUP}/{plural}")).await.json();
    let items = list["items"].as_array().unwrap().iter();
    let text = |item: &Value, key: &str| item["metadata"][key].as_str().unwrap().to_owned();
    items.map(|item| (text(item, "uid"), text(item, "name"))).collect()
}

/// FlowSchema and priority level in the response headers for a user.
async fn taken_for(admin: &Client, user: &str, groups: &[&str], method: Method, path: &str) -> String {
    let mut headers = vec![("impersonate-user", user)];
    headers.extend(groups.iter().map(|group| ("impersonate-group", *group)));
    let headers = if user.is_empty() { Vec::new() } else { headers };
    let answer = admin.send(method, path, &headers, b"").await;
    let mut named = Vec::new();
    for (header, plural) in [(SCHEMA, "flowschemas"), (LEVEL, "prioritylevelconfigurations")] {
        let names = names(admin, plural).await;
        named.extend(answer.headers.get(header).map(|uid| names[uid.to_str().unwrap()].clone()));
    }
    named.join(" ")
}

#[tokio::test]
async fn responses_name_the_matching_flow_schema() {
    let admin = Client::new().await;
    let nodes = &["system:nodes"][..];
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x";
    let (get, put, post) = (Method::GET, Method::PUT, Method::POST);
    for (user, groups, method, path, expected) in [
        ("", &[][..], &get, "/api/v1/nodes", "exempt exempt"),
        ("system:anonymous", &[], &get, "/healthz", "probes exempt"),
        ("system:anonymous", &[], &get, "/api/v1/nodes", "global-default global-default"),
        ("jane", &[], &get, "/api/v1/nodes", "global-default global-default"),
        ("jane", &[], &get, "/healthz", "probes exempt"),
        ("jane", &[], &get, "/nope", "global-default global-default"),
        ("jane", &[], &get, "/api/v1/nodes?watch=1&timeoutSeconds=1", "global-default global-default"),
        ("jane", &[], &get, "/api/v1/namespaces/a/pods/x/log", ""),
        ("jane", &[], &post, "/api/v1/namespaces/a/pods/x/exec", ""),
        ("jane", &[], &get, "/api/v1/nodes?timeout=abc", ""),
        ("system:node:a", nodes, &get, "/api/v1/nodes/a", "system-node-high node-high"),
        ("system:node:a", nodes, &put, "/api/v1/nodes/a/status", "system-node-high node-high"),
        ("system:node:a", nodes, &get, "/api/v1/namespaces/default/pods/x", "system-nodes system"),
        ("system:kube-controller-manager", &[], &get, lease, "system-leader-election leader-election"),
        (
            "system:kube-controller-manager",
            &[],
            &get,
            "/api/v1/nodes",
            "kube-controller-manager workload-high",
        ),
        ("system:kube-scheduler", &[], &get, "/api/v1/nodes", "kube-scheduler workload-high"),
        ("system:serviceaccount:kube-system:x", &[], &get, lease, "system-leader-election leader-election"),
        (
            "system:serviceaccount:kube-system:x",
            &[],
            &get,
            "/api/v1/nodes",
            "kube-system-service-accounts workload-high",
        ),
        ("system:serviceaccount:default:x", &[], &get, "/api/v1/nodes", "service-accounts workload-low"),
    ] {
        let found = taken_for(&admin, user, groups, method.clone(), path).await;
        assert_eq!(found, expected, "{user} {method} {path}");
    }
}

#[tokio::test]
async fn a_new_flow_schema_applies_at_once_if_its_priority_level_exists() {
    let admin = Client::new().await;
    let path = "/api/v1/namespaces/a/configmaps/x";
    let schema = json!({
        "metadata": {"name": "mine"},
        "spec": {
            "matchingPrecedence": 50,
            "priorityLevelConfiguration": {"name": "mine"},
            "rules": [{
                "subjects": [{"kind": "User", "user": {"name": "jane"}}],
                "resourceRules": [{
                    "verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "namespaces": ["a"],
                }],
            }],
        },
    });
    admin.create(&format!("{GROUP}/flowschemas"), &schema).await;
    let usual = "global-default global-default";
    assert_eq!(taken_for(&admin, "jane", &[], Method::GET, path).await, usual);
    let level = json!({
        "metadata": {"name": "mine"},
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}},
    });
    admin.create(&format!("{GROUP}/prioritylevelconfigurations"), &level).await;
    for (user, path, expected) in [
        ("jane", path, "mine mine"),
        ("bob", path, usual),
        ("jane", "/api/v1/namespaces/b/configmaps/x", usual),
        ("jane", "/api/v1/namespaces/a/configmaps", usual),
    ] {
        assert_eq!(taken_for(&admin, user, &[], Method::GET, path).await, expected, "{user} {path}");
    }
}
