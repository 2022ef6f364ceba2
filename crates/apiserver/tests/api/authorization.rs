//! Authorization: deny by default.

use std::sync::Arc;

use apiserver::auth::{Authorizer, AuthorizerAttributes, Decision, Identity, Mode};
use http::Method;
use serde_json::json;

use crate::client::{CONFIGMAPS, Client};

fn nobody() -> Identity {
    Identity::authenticated("mallory", ["developers".to_owned()])
}

/// Every method on every kind of path of every type.
fn requests() -> Vec<(Method, String)> {
    let mut all = Vec::new();
    let bases = [
        "/api/v1/namespaces/default/secrets",
        "/api/v1/namespaces",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
    ];
    for base in bases {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            all.push((method, base.to_owned()));
        }
        for method in [Method::GET, Method::PUT, Method::PATCH, Method::DELETE] {
            all.push((method, format!("{base}/default")));
        }
        all.push((Method::GET, format!("{base}?watch=true")));
    }
    all.push((Method::PUT, "/api/v1/namespaces/default/finalize".to_owned()));
    all.push((Method::PUT, "/api/v1/namespaces/default/status".to_owned()));
    for path in ["/metrics", "/healthz/ping", "/", "/none"] {
        all.push((Method::GET, path.to_owned()));
    }
    all
}

#[tokio::test]
async fn callers_without_permission_are_denied_and_nothing_changes() {
    let admin = Client::new().await;
    let before = admin.store.clock().await.unwrap().current;
    for caller in [nobody(), Identity::anonymous()] {
        let client = admin.as_caller(caller);
        for (method, path) in requests() {
            let answer = client.send(method.clone(), &path, &[], br#"{"metadata":{"name":"default"}}"#).await;
            assert_eq!(answer.failure().1, "Forbidden", "{method} {path}");
        }
    }
    assert_eq!(admin.store.clock().await.unwrap().current, before);
}

#[tokio::test]
async fn health_and_version_are_for_everyone() {
    let client = Client::new().await.as_caller(Identity::anonymous());
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(client.get(path).await.code, 200, "{path}");
    }
}

#[tokio::test]
async fn a_403_names_user_verb_and_resource() {
    let client = Client::new().await.as_caller(nobody());
    let (_, _, message) = client.get("/api/v1/namespaces/n/secrets/s").await.failure();
    assert_eq!(
        message,
        "secrets \"s\" is forbidden: User \"mallory\" cannot get resource \"secrets\" in API group \"\" in the namespace \"n\""
    );
    let (_, _, message) = client.get("/").await.failure();
    assert_eq!(message, "forbidden: User \"mallory\" cannot get path \"/\"");
}

#[tokio::test]
async fn a_custom_authorizer_decides() {
    struct ReadersMayRead;
    impl Authorizer for ReadersMayRead {
        fn decide(&self, caller: &Identity, attributes: AuthorizerAttributes<'_>) -> Decision {
            let reads = matches!(attributes, AuthorizerAttributes::Resource { verb: "get" | "list", .. });
            if reads && caller.is_in("readers") {
                return Decision::allow();
            }
            Decision::Deny { reason: "readers only read".to_owned() }
        }
    }
    let admin = Client::with(|builder| {
        builder.authorization(vec![Mode::Own(Arc::new(ReadersMayRead)), Mode::AlwaysAllow])
    })
    .await;
    let reader = admin.as_caller(Identity::authenticated("r", ["readers".to_owned()]));
    assert_eq!(reader.get(CONFIGMAPS).await.code, 200);
    let refused = reader.post(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    assert!(refused.failure().2.ends_with("readers only read"));
}
