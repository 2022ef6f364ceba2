//! Admission webhooks: requests that they get, and effects of their responses.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::{CONFIGMAPS, Client};
use crate::webhook_server::Webhook;

pub const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
pub const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// A response to an AdmissionReview.
pub fn answer(review: &Value, response: Value) -> Value {
    let mut answer = json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "response": {"uid": review["request"]["uid"], "allowed": true},
    });
    for (key, value) in response.as_object().unwrap() {
        answer["response"][key] = value.clone();
    }
    answer
}

fn patch(review: &Value, steps: Value) -> Value {
    answer(review, json!({"patchType": "JSONPatch", "patch": STANDARD.encode(steps.to_string())}))
}

/// Labels objects with the path of the call, and denies objects with a label `deny`.
pub fn usual(path: &str, review: &Value) -> Value {
    let object = &review["request"]["object"];
    match path {
        "/allow" => answer(review, json!({})),
        "/deny" => {
            let status = json!({"message": "no", "code": 418, "reason": "Teapot", "details": {"name": "x"}});
            answer(review, json!({"allowed": false, "status": status}))
        }
        "/warn" => answer(review, json!({"warnings": ["mind the gap"]})),
        _ if object["metadata"]["labels"].is_object() => {
            let path = format!("/metadata/labels/{}", &path[1..]);
            patch(review, json!([{"op": "add", "path": path, "value": "yes"}]))
        }
        _ => patch(
            review,
            json!([{"op": "add", "path": "/metadata/labels", "value": {path[1..].to_owned(): "yes"}}]),
        ),
    }
}

pub fn hook(webhook: &Webhook, name: &str, path: &str) -> Value {
    json!({
        "name": format!("{name}.example.io"), "clientConfig": webhook.config(path), "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
        }],
    })
}

pub async fn configure(client: &Client, kind: &str, name: &str, hooks: Vec<Value>) {
    client.create(kind, &json!({"metadata": {"name": name}, "webhooks": hooks})).await;
}

pub fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"a": "1"}})
}

#[tokio::test]
async fn a_webhook_gets_the_whole_admission_review() {
    let (client, webhook) = (Client::new().await, Webhook::start(usual).await);
    configure(&client, VALIDATING, "v", vec![hook(&webhook, "v", "/allow")]).await;
    let made = client.create(&format!("{CONFIGMAPS}?fieldManager=me"), &map("a")).await;
    let (_, review) = webhook.take().pop().unwrap();
    let request = &review["request"];
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    assert_eq!((&request["kind"], &request["requestKind"]), (&kind, &kind));
    assert_eq!((&request["resource"], &request["requestResource"]), (&resource, &resource));
    assert_eq!((&request["name"], &request["namespace"]), (&json!("a"), &json!("default")));
    assert_eq!((&request["operation"], &request["dryRun"]), (&json!("CREATE"), &json!(false)));
    assert_eq!(request["userInfo"]["username"], "admin");
    assert_eq!(request["oldObject"], Value::Null);
    let options = json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"});
    assert_eq!(request["options"], options);
    assert_eq!(request["object"]["kind"], "ConfigMap");
    assert_eq!(request["object"]["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(request["object"]["metadata"]["managedFields"], made["metadata"]["managedFields"]);
    let path = format!("{CONFIGMAPS}/a");
    assert_eq!(client.merge(&path, &json!({"data": {"a": "2"}})).await.code, 200);
    let (_, review) = webhook.take().pop().unwrap();
    let request = &review["request"];
    assert_eq!(
        (&request["operation"], &request["options"]["kind"]),
        (&json!("UPDATE"), &json!("UpdateOptions"))
    );
    assert_eq!(
        (&request["oldObject"]["data"]["a"], &request["object"]["data"]["a"]),
        (&json!("1"), &json!("2"))
    );
    assert_eq!(request["object"]["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    assert_eq!(client.delete(&path).await.code, 200);
    let (_, review) = webhook.take().pop().unwrap();
    assert_eq!(
        (&review["request"]["object"], &review["request"]["oldObject"]["data"]["a"]),
        (&Value::Null, &json!("2"))
    );
}

#[tokio::test]
async fn webhooks_change_objects_one_after_the_other() {
    let (client, webhook) = (Client::new().await, Webhook::start(usual).await);
    let mut again = hook(&webhook, "first", "/first");
    again["reinvocationPolicy"] = "IfNeeded".into();
    configure(&client, MUTATING, "b", vec![hook(&webhook, "third", "/third")]).await;
    configure(&client, MUTATING, "a", vec![again, hook(&webhook, "second", "/second")]).await;
    let made = client.create(CONFIGMAPS, &map("a")).await;
    assert_eq!(made["metadata"]["labels"], json!({"first": "yes", "second": "yes", "third": "yes"}));
    let paths: Vec<String> = webhook.take().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["/first", "/second", "/third", "/first"]);
    // Fields that webhooks set have no manager.
    assert!(!made["metadata"]["managedFields"].to_string().contains("f:labels"));
}

#[tokio::test]
async fn a_denial_has_the_message_of_the_webhook() {
    let (client, webhook) = (Client::new().await, Webhook::start(usual).await);
    configure(&client, VALIDATING, "v", vec![hook(&webhook, "v", "/deny"), hook(&webhook, "w", "/warn")])
        .await;
    let refused = client.post(CONFIGMAPS, &map("a")).await;
    assert_eq!(refused.warnings(), ["299 - \"mind the gap\""]);
    let (code, reason, message) = refused.failure();
    assert_eq!((code, reason.as_str()), (418, "Teapot"));
    assert_eq!(message, "admission webhook \"v.example.io\" denied the request: no");
    assert_eq!(refused.json()["details"], json!({"name": "x"}));
    assert_eq!(client.get(&format!("{CONFIGMAPS}/a")).await.code, 404);
    // Creation and deletion of a configuration take effect at once.
    assert_eq!(client.delete(&format!("{VALIDATING}/v")).await.code, 200);
    client.create(CONFIGMAPS, &map("a")).await;
}

#[tokio::test]
async fn webhooks_are_called_only_for_matching_requests() {
    let (client, webhook) = (Client::new().await, Webhook::start(usual).await);
    let mut labelled = hook(&webhook, "o", "/deny");
    labelled["objectSelector"] = json!({"matchLabels": {"deny": "yes"}});
    let mut elsewhere = hook(&webhook, "n", "/deny");
    elsewhere["namespaceSelector"] = json!({"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}});
    let mut never = hook(&webhook, "c", "/deny");
    never["matchConditions"] = json!([{"name": "c", "expression": "object.metadata.name == 'deny'"}]);
    configure(&client, VALIDATING, "v", vec![labelled, elsewhere, never]).await;
    client.create(CONFIGMAPS, &map("a")).await;
    assert_eq!(webhook.take().len(), 0);
    let mut bad = map("b");
    bad["metadata"]["labels"] = json!({"deny": "yes"});
    assert_eq!(client.post(CONFIGMAPS, &bad).await.code, 418);
    assert_eq!(client.post("/api/v1/namespaces/kube-system/configmaps", &map("a")).await.code, 418);
    assert_eq!(client.post(CONFIGMAPS, &map("deny")).await.code, 418);
    assert_eq!(webhook.take().len(), 3);
    let missing = client.post("/api/v1/namespaces/nowhere/configmaps", &map("a")).await.failure();
    assert_eq!(missing.2, "namespaces \"nowhere\" not found");
    assert_eq!(webhook.take().len(), 0);
}

#[tokio::test]
async fn an_unreachable_webhook_follows_its_failure_policy() {
    let (client, webhook) = (Client::new().await, Webhook::start(usual).await);
    let mut gone = hook(&webhook, "v", "/allow");
    gone["clientConfig"] = json!({"url": "https://127.0.0.1:1/x"});
    configure(&client, VALIDATING, "v", vec![gone.clone()]).await;
    let (code, reason, message) = client.post(CONFIGMAPS, &map("a")).await.failure();
    assert_eq!((code, reason.as_str()), (500, "InternalError"));
    assert_eq!(
        message,
        "Internal error occurred: failed calling webhook \"v.example.io\": failed to call webhook: \
         Post \"https://127.0.0.1:1/x?timeout=10s\": dial tcp 127.0.0.1:1: connect: connection refused"
    );
    gone["failurePolicy"] = "Ignore".into();
    let path = format!("{VALIDATING}/v");
    assert_eq!(client.merge(&path, &json!({"webhooks": [gone]})).await.code, 200);
    client.create(CONFIGMAPS, &map("a")).await;
    let mut service = hook(&webhook, "v", "/allow");
    service["clientConfig"] = json!({"service": {"namespace": "default", "name": "none", "path": "/x"}});
    assert_eq!(client.merge(&path, &json!({"webhooks": [service]})).await.code, 200);
    let message = client.post(CONFIGMAPS, &map("b")).await.failure().2;
    assert_eq!(
        message,
        "Internal error occurred: failed calling webhook \"v.example.io\": failed to call webhook: \
         Post \"https://none.default.svc:443/x?timeout=10s\": service \"none\" not found"
    );
}

#[tokio::test]
async fn a_webhook_service_is_resolved_by_its_endpoints() {
    let (client, webhook) = (Client::new().await, Webhook::start(usual).await);
    let services = "/api/v1/namespaces/default/services";
    let port = webhook.address.port();
    let spec = json!({"ports": [{"name": "https", "port": port}]});
    client.create(services, &json!({"metadata": {"name": "hook"}, "spec": spec})).await;
    let spec = json!({"type": "ExternalName", "externalName": "localhost"});
    client.create(services, &json!({"metadata": {"name": "outside"}, "spec": spec})).await;
    let message = |name: &'static str, port: u16| {
        let (client, webhook) = (&client, &webhook);
        async move {
            let mut hook = hook(webhook, "v", "/deny");
            let config = hook["clientConfig"].as_object_mut().unwrap();
            config.remove("url");
            config.insert("service".to_owned(), json!({"namespace": "default", "name": name, "port": port}));
            let name = format!("{name}{port}");
            configure(client, VALIDATING, &name, vec![hook]).await;
            let message = client.post(CONFIGMAPS, &map("a")).await.failure().2;
            client.delete(&format!("{VALIDATING}/{name}")).await;
            message
        }
    };
    let of = message("hook", port).await;
    assert!(of.ends_with("no endpoints available for service \"hook\""), "{of}");
    let of = message("hook", 9).await;
    assert!(of.ends_with("no service port 9 found for service \"hook\""), "{of}");
    // The certificate is for another name, which shows that the server was reached.
    let of = message("outside", port).await;
    assert!(of.contains(&format!("Post \"https://outside.default.svc:{port}/?timeout=10s\": tls")), "{of}");
}

#[tokio::test]
async fn a_dry_run_skips_webhooks_with_side_effects() {
    let (client, webhook) = (Client::new().await, Webhook::start(usual).await);
    let mut doing = hook(&webhook, "v", "/allow");
    doing["sideEffects"] = "NoneOnDryRun".into();
    configure(&client, VALIDATING, "v", vec![doing]).await;
    let dry = format!("{CONFIGMAPS}?dryRun=All");
    client.create(&dry, &map("a")).await;
    assert_eq!(webhook.take()[0].1["request"]["dryRun"], true);
}

#[tokio::test]
async fn an_invalid_admission_review_is_refused() {
    let (client, webhook) = (Client::new().await, Webhook::start(usual).await);
    configure(&client, MUTATING, "m", vec![hook(&webhook, "m", "/m")]).await;
    let failing = |end: &str| {
        format!(
            "Internal error occurred: failed calling webhook \"m.example.io\": received invalid webhook response: {end}"
        )
    };
    webhook.answer_with(|_, _| json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}));
    assert_eq!(client.post(CONFIGMAPS, &map("a")).await.failure().2, failing("webhook response was absent"));
    webhook.answer_with(|_, review| answer(review, json!({"patch": "W10="})));
    assert_eq!(
        client.post(CONFIGMAPS, &map("a")).await.failure().2,
        failing("webhook returned response.patch but not response.patchType")
    );
    webhook.answer_with(|_, review| patch(review, json!([{"op": "remove", "path": "/nothing"}])));
    assert_eq!(client.post(CONFIGMAPS, &map("a")).await.code, 500);
    webhook.answer_with(|_, review| patch(review, json!([{"op": "replace", "path": "/data", "value": 7}])));
    assert_eq!(client.post(CONFIGMAPS, &map("a")).await.code, 500);
}
