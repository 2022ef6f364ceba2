//! The product on a server: its callers, its errors, its stream.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::time::Duration;

use bytes::Bytes;
use example_routes::PREFIX;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use process::reload::Current;
use serde_json::{Value, json};
use server::{AuthConfig, Body, Config, Connection, Identity, Server, StaticToken, loopback};
use tower_service::Service;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// Far longer than any step takes; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with the product, and two users: `writer` may use the paths and ConfigMaps, `guest` only the paths.
async fn server() -> Server {
    let token =
        |name: &str| StaticToken { token: name.to_owned(), identity: Identity::authenticated(name, []) };
    let tokens = Current::fixed(vec![token("writer"), token("guest"), token("stranger")]);
    let auth = AuthConfig { tokens, ..AuthConfig::default() };
    let mounts = vec![example_routes::mount()];
    let config = Config { auth, mounts, controllers: None, ..Config::in_memory() };
    let server = Server::start(config).await.unwrap();
    let paths = json!({"verbs": ["get", "post"], "nonResourceURLs": [format!("{PREFIX}/*")]});
    let maps = json!({"verbs": ["create", "list", "watch"], "apiGroups": [""], "resources": ["configmaps"]});
    grant(&server, "writer", json!([paths, maps])).await;
    grant(&server, "guest", json!([paths])).await;
    server
}

async fn grant(server: &Server, user: &str, rules: Value) {
    let mut admin = server.service(loopback::administrator());
    let role = json!({"metadata": {"name": user}, "rules": rules});
    let binding = json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"kind": "User", "name": user}],
    });
    for (resource, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let request = Request::post(format!("{RBAC}/{resource}"))
            .body(Full::<Bytes>::from(object.to_string()))
            .unwrap();
        assert_eq!(admin.call(request).await.unwrap().status(), 201);
    }
}

/// Sends a request as a client of another process does.
async fn open(server: &Server, token: &str, method: Method, path: &str, body: &Value) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(format!("{PREFIX}{path}"));
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.api().answer(&Connection::Bare, request.body(Full::<Bytes>::from(body)).unwrap()).await
}

async fn send(
    server: &Server,
    token: &str,
    method: Method,
    path: &str,
    body: &Value,
) -> (u16, String, Value) {
    let (head, body) = open(server, token, method, path, body).await.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let media_type = head.headers["content-type"].to_str().unwrap().to_owned();
    (head.status.as_u16(), media_type, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn a_note_is_made_and_listed_as_the_caller() {
    let server = server().await;
    let note = json!({"name": "milk", "text": "two litres"});
    let (code, _, made) = send(&server, "writer", Method::POST, "/notes", &note).await;
    assert_eq!((code, &made), (201, &note));
    let (code, _, list) = send(&server, "writer", Method::GET, "/notes", &Value::Null).await;
    assert_eq!((code, list), (200, json!({"notes": [note]})));
}

#[tokio::test]
async fn every_refusal_is_a_problem() {
    let server = server().await;
    let note = json!({"name": "milk", "text": ""});
    for (token, method, path, code, detail) in [
        ("", Method::GET, "/notes", 401, "cannot get path"),
        ("wrong", Method::GET, "/notes", 401, "Unauthorized"),
        ("stranger", Method::POST, "/notes", 403, "User \"stranger\" cannot post path"),
        ("guest", Method::POST, "/notes", 403, "User \"guest\" cannot create resource \"configmaps\""),
        ("guest", Method::GET, "/notes", 403, "User \"guest\" cannot list resource \"configmaps\""),
        ("guest", Method::GET, "/none", 404, "no such path"),
        ("guest", Method::POST, "/events", 405, "no such method"),
    ] {
        let (got, media_type, problem) = send(&server, token, method, path, &note).await;
        assert_eq!((got, media_type.as_str()), (code, "application/problem+json"), "{token} {path}");
        assert!(problem["detail"].as_str().unwrap().contains(detail), "{problem}");
    }
    let (code, media_type, document) = send(&server, "", Method::GET, "/openapi", &Value::Null).await;
    assert_eq!((code, media_type.as_str(), &document["openapi"]), (200, "application/json", &json!("3.1.0")));
}

#[tokio::test]
async fn the_stream_shows_changes_and_ends_when_the_server_stops() {
    let server = server().await;
    let mut stream = open(&server, "writer", Method::GET, "/events", &Value::Null).await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let note = json!({"name": "milk", "text": "two litres"});
    assert_eq!(send(&server, "writer", Method::POST, "/notes", &note).await.0, 201);
    let next = tokio::time::timeout(PATIENCE, stream.body_mut().frame()).await.expect("an event comes");
    let event = next.unwrap().unwrap().into_data().unwrap();
    assert_eq!(event, format!("event: changed\ndata: {note}\n\n"));
    let ends = async { tokio::join!(stream.body_mut().frame(), server.shutdown()) };
    let (end, stopped) = tokio::time::timeout(PATIENCE, ends).await.expect("the stream ends");
    assert!(end.is_none());
    stopped.unwrap();
}
