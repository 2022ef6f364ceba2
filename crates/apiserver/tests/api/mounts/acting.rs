//! The acting client of a mount.

use http::{Method, Request, Response};
use http_body_util::Full;
use mount::{Body, Call};
use serde_json::json;

use super::{CONSOLE, Product, RESOURCES, allow, call as call_client, get, grant, send, server};
use crate::admission::quota;
use crate::client::CONFIGMAPS;

/// Sends the request in the header `act` (method and path) as the caller, and responds with its code and body.
pub(super) async fn act(call: Call) -> Response<Body> {
    let act = call.request.headers()["act"].to_str().unwrap().to_owned();
    let (method, path) = act.split_once(' ').unwrap();
    let body = Full::from(call.request.body().clone());
    let request = Request::builder().method(method).uri(path).body(body).unwrap();
    let mut client = call.caller.unwrap().client;
    let answer = call_client(&mut client, request).await.unwrap();
    Response::builder().status(answer.code).body(Body::from(answer.bytes)).unwrap()
}

fn acting(token: &str, act: &str, body: &'static str) -> http::Request<Full<bytes::Bytes>> {
    let request = Request::builder().method(Method::POST).uri(format!("{RESOURCES}/act")).header("act", act);
    request.header("authorization", format!("Bearer {token}")).body(Full::from(body)).unwrap()
}

const MAP: &str = r#"{"metadata":{"name":"made"}}"#;

#[tokio::test]
async fn rbac_decides_about_the_caller_and_not_about_the_product() {
    let admin = server(&Product::default(), |builder| builder).await;
    for user in ["alice", "bob"] {
        allow(&admin, user, &["post"], &["/api/v1/resources/*"]).await;
    }
    let rules = json!([{"verbs": ["create"], "apiGroups": [""], "resources": ["configmaps"]}]);
    grant(&admin, "alice", "maps", &rules).await;
    let create = format!("POST {CONFIGMAPS}");
    let refused = send(&admin.api, acting("bob", &create, MAP)).await;
    let (code, reason, message) = refused.failure();
    assert_eq!((code, reason.as_str()), (403, "Forbidden"));
    assert!(message.contains("User \"bob\" cannot create resource \"configmaps\""), "{message}");
    assert_eq!(send(&admin.api, acting("alice", &create, MAP)).await.code, 201);
    let read = format!("GET {CONFIGMAPS}/made");
    assert_eq!(send(&admin.api, acting("alice", &read, "")).await.code, 403, "alice may create, not get");
    let mut request = acting("master", &read, "");
    request.headers_mut().insert("impersonate-user", "bob".parse().unwrap());
    let refused = send(&admin.api, request).await;
    assert!(
        refused.failure().2.contains("User \"bob\" cannot get resource"),
        "it acts as the impersonated user"
    );
}

#[tokio::test]
async fn admission_decides_about_what_the_caller_does() {
    let admin = server(&Product::default(), |builder| builder).await;
    quota(&admin, "q", json!({"configmaps": "0"})).await;
    let refused = send(&admin.api, acting("master", &format!("POST {CONFIGMAPS}"), MAP)).await;
    assert!(refused.failure().2.contains("exceeded quota: q"), "{:?}", refused.failure());
}

#[tokio::test]
async fn the_anonymous_user_acts_with_the_rights_of_the_anonymous_user() {
    let admin = server(&Product::default(), |builder| builder).await;
    allow(&admin, "system:anonymous", &["post"], &["/api/v1/resources/act"]).await;
    let mut request = acting("", "GET /api/v1/namespaces/default/secrets", "");
    request.headers_mut().remove("authorization");
    let refused = send(&admin.api, request).await;
    assert!(refused.failure().2.contains("User \"system:anonymous\" cannot list resource"));
}

#[tokio::test]
async fn the_acting_client_ends_with_the_request_of_its_caller() {
    let product = Product::default();
    let admin = server(&product, |builder| builder).await;
    assert_eq!(get(&admin.api, "master", &format!("{CONSOLE}/keep")).await.code, 200);
    let mut kept = product.kept.lock().unwrap().take().unwrap();
    let request = Request::get(CONFIGMAPS).body(Full::default()).unwrap();
    assert!(call_client(&mut kept, request).await.is_err());
}
