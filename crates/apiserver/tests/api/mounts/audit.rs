//! Audit events of requests to mounts.

use std::fs;
use std::sync::Arc;

use apiserver::audit::{Audit, Log, Rotation};
use http::Request;
use http_body_util::Full;
use kinds::audit::Policy;
use serde_json::{Value, json};

use super::{CONSOLE, Product, RESOURCES, get, send, server};
use crate::client::{CONFIGMAPS, Client};

/// A server with an audit log of all users with tokens, and a reader of the events with an audit ID.
async fn logged() -> (Client, impl Fn(&str) -> Vec<Value>) {
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [
        {level: RequestResponse, users: [alice, master, 'system:anonymous']}]}";
    let file = tempfile::NamedTempFile::new().unwrap();
    let log = Arc::new(Log::open(file.path(), Rotation::default()).unwrap());
    let audit = Audit::new(Policy::read(policy.as_bytes()).unwrap(), log.clone());
    let admin = server(&Product::default(), |builder| builder.audit(audit)).await;
    let events = move |id: &str| {
        log.flush();
        let text = fs::read_to_string(file.path()).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["auditID"] == id).collect()
    };
    (admin, events)
}

fn request(token: &str, id: &str, path: &str) -> http::request::Builder {
    Request::get(path).header("authorization", format!("Bearer {token}")).header("audit-id", id)
}

#[tokio::test]
async fn an_event_has_the_uri_and_the_verb_and_no_object() {
    let (admin, events) = logged().await;
    let path = format!("{RESOURCES}/x?y=z");
    let answer = send(&admin.api, request("master", "one", &path).body(Full::default()).unwrap()).await;
    assert_eq!((answer.code, &answer.headers["audit-id"]), (200, &"one".parse().unwrap()));
    let events = events("one");
    let stages: Vec<&Value> = events.iter().map(|event| &event["stage"]).collect();
    assert_eq!(stages, ["RequestReceived", "ResponseComplete"]);
    let last = &events[1];
    assert_eq!((&last["requestURI"], &last["verb"]), (&json!(path), &json!("get")));
    assert_eq!(last["user"]["username"], "master");
    assert_eq!(last["responseStatus"], json!({"metadata": {}, "code": 200}));
    assert_eq!(last["annotations"]["authorization.k8s.io/decision"], "allow");
    for absent in ["objectRef", "requestObject", "responseObject"] {
        assert_eq!(last.get(absent), None, "{absent}");
    }
}

#[tokio::test]
async fn a_refusal_is_logged_with_its_reason_and_the_code_that_was_sent() {
    let (admin, events) = logged().await;
    let path = format!("{CONSOLE}/x");
    send(&admin.api, request("alice", "two", &path).body(Full::default()).unwrap()).await;
    let last = events("two").pop().unwrap();
    let message = format!("forbidden: User \"alice\" cannot get path {path:?}");
    let expected = json!({"metadata": {}, "status": "Failure", "message": message, "reason": "Forbidden", "details": {}, "code": 403});
    assert_eq!(last["responseStatus"], expected);
    assert_eq!(last.get("responseObject"), None, "the client got no Status");
    assert_eq!(last["annotations"]["authorization.k8s.io/decision"], "forbid");
    let anonymous = Request::get(&path).header("audit-id", "three").body(Full::default()).unwrap();
    assert_eq!(send(&admin.api, anonymous).await.code, 401);
    assert_eq!(events("three").pop().unwrap()["responseStatus"]["code"], 401, "as the product rendered it");
}

#[tokio::test]
async fn a_stream_has_an_event_at_its_start_and_one_at_its_end() {
    let (admin, events) = logged().await;
    let request =
        request("master", "four", &format!("{CONSOLE}/stream")).body(Full::<bytes::Bytes>::default());
    let response = admin.api.answer(&apiserver::auth::Connection::Bare, request.unwrap()).await;
    let stages = || -> Vec<String> {
        events("four").iter().map(|event| event["stage"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(stages(), ["RequestReceived", "ResponseStarted"]);
    drop(response);
    assert_eq!(stages(), ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
}

#[tokio::test]
async fn acting_requests_share_the_audit_id_of_the_caller() {
    let (admin, events) = logged().await;
    let request =
        request("master", "five", &format!("{RESOURCES}/act")).header("act", format!("GET {CONFIGMAPS}"));
    assert_eq!(send(&admin.api, request.body(Full::default()).unwrap()).await.code, 200);
    let events = events("five");
    let done = events.iter().filter(|event| event["stage"] == "ResponseComplete");
    let done: Vec<_> =
        done.map(|event| (&event["requestURI"], &event["verb"], &event["user"]["username"])).collect();
    let of = |uri: &str, verb: &str| (json!(uri), json!(verb), json!("master"));
    let (inner, outer) = (of(CONFIGMAPS, "list"), of(&format!("{RESOURCES}/act"), "get"));
    assert_eq!(done, [(&inner.0, &inner.1, &inner.2), (&outer.0, &outer.1, &outer.2)]);
}

#[tokio::test]
async fn a_public_path_is_logged_as_allowed() {
    let (admin, events) = logged().await;
    assert_eq!(get(&admin.api, "", &format!("{CONSOLE}/openapi")).await.code, 200);
    let request = Request::get(format!("{CONSOLE}/openapi")).header("audit-id", "six").body(Full::default());
    send(&admin.api, request.unwrap()).await;
    let last = events("six").pop().unwrap();
    assert_eq!(last["user"]["username"], "system:anonymous");
    assert_eq!(last["annotations"]["authorization.k8s.io/decision"], "allow");
}
