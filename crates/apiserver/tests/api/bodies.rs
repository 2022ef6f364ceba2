//! Invalid request bodies: a clear 4xx, and nothing changes.

use apiserver::auth::{Connection, Identity};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, StreamBody};
use serde_json::json;

use crate::client::{CONFIGMAPS, Client};

#[tokio::test]
async fn hostile_bodies_are_refused_and_change_nothing() {
    let client = Client::new().await;
    let before = client.store.clock().await.unwrap().current;
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested = format!("{{\"metadata\":{{\"name\":\"a\"}},\"data\":{deep}}}");
    let bodies: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", b"".to_vec()),
        ("no JSON", b"{bad".to_vec()),
        ("cut off", b"{\"metadata\":{\"name\":\"a\"".to_vec()),
        ("an array", b"[]".to_vec()),
        ("a number", b"1".to_vec()),
        ("null", b"null".to_vec()),
        ("invalid UTF-8", b"{\"metadata\":{\"name\":\"\xff\xfe\"}}".to_vec()),
        ("trailing data", b"{\"metadata\":{\"name\":\"a\"}} x".to_vec()),
        ("a huge number", b"{\"metadata\":{\"name\":\"a\",\"generation\":1e999}}".to_vec()),
        ("deep nesting", nested.into_bytes()),
        ("wrong types", b"{\"metadata\":{\"name\":\"a\"},\"data\":{\"x\":1}}".to_vec()),
        ("metadata as text", b"{\"metadata\":\"a\"}".to_vec()),
        (
            "another kind",
            json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}}).to_string().into(),
        ),
        (
            "another version",
            json!({"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "a"}}).to_string().into(),
        ),
        ("a bad name", json!({"metadata": {"name": "Not_A_Name"}}).to_string().into()),
        ("a name with a slash", json!({"metadata": {"name": "a/b"}}).to_string().into()),
        ("a bad label", json!({"metadata": {"name": "a", "labels": {"-": "x"}}}).to_string().into()),
        ("a version", json!({"metadata": {"name": "a", "resourceVersion": "5"}}).to_string().into()),
    ];
    for (what, body) in bodies {
        let (code, reason, message) = client.send(Method::POST, CONFIGMAPS, &[], &body).await.failure();
        assert!(matches!(code, 400 | 422), "{what}: {code} {reason} {message}");
        assert!(!reason.is_empty() && !message.is_empty(), "{what}");
    }
    assert_eq!(client.store.clock().await.unwrap().current, before);
}

#[tokio::test]
async fn a_body_past_three_mebibytes_is_too_large() {
    let client = Client::new().await;
    let text = "x".repeat(3 << 20);
    let body = json!({"metadata": {"name": "a"}, "data": {"t": text}});
    let (code, reason, _) = client.post(CONFIGMAPS, &body).await.failure();
    assert_eq!((code, reason.as_str()), (413, "RequestEntityTooLarge"));
}

#[tokio::test]
async fn unknown_media_types_are_refused() {
    let client = Client::new().await;
    let body = json!({"metadata": {"name": "a"}}).to_string();
    let answer =
        client.send(Method::POST, CONFIGMAPS, &[("content-type", "text/plain")], body.as_bytes()).await;
    assert_eq!(answer.failure().1, "UnsupportedMediaType");
    let answer = client.send(Method::GET, CONFIGMAPS, &[("accept", "text/html")], b"").await;
    assert_eq!(answer.failure().1, "NotAcceptable");
}

#[tokio::test]
async fn duplicate_and_unknown_fields_are_warned_about_or_refused() {
    let client = Client::new().await;
    let body = br#"{"metadata":{"name":"NAME"},"data":{"a":"1","a":"2"},"foo":1}"#;
    let named = |name: &str| String::from_utf8_lossy(body).replace("NAME", name);
    let warned = client.send(Method::POST, CONFIGMAPS, &[], named("a").as_bytes()).await;
    assert_eq!(warned.code, 201);
    assert_eq!(warned.json()["data"]["a"], "2", "the last value counts");
    assert_eq!(
        warned.warnings(),
        [r#"299 - "duplicate field \"data.a\"""#, r#"299 - "unknown field \"foo\"""#]
    );
    let strict = format!("{CONFIGMAPS}?fieldValidation=Strict");
    let refused = client.send(Method::POST, &strict, &[], named("b").as_bytes()).await;
    assert_eq!(
        refused.failure().2,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: duplicate field \"data.a\", unknown field \"foo\""
    );
    let ignore = format!("{CONFIGMAPS}?fieldValidation=Ignore");
    let ignored = client.send(Method::POST, &ignore, &[], named("c").as_bytes()).await;
    assert_eq!((ignored.code, ignored.warnings().len()), (201, 0));
    let nonsense = format!("{CONFIGMAPS}?fieldValidation=x");
    assert_eq!(client.send(Method::POST, &nonsense, &[], named("d").as_bytes()).await.failure().1, "Invalid");
}

#[tokio::test]
async fn a_long_url_is_refused() {
    let client = Client::new().await;
    let path = format!("{CONFIGMAPS}?labelSelector={}", "a".repeat(20_000));
    assert_eq!(client.get(&path).await.failure().0, 400);
    assert_eq!(client.get("/api/v1/namespaces/%ff/configmaps").await.failure().0, 400);
}

#[tokio::test]
async fn yaml_is_read_and_written() {
    let client = Client::new().await;
    let body = "metadata:\n  name: a\ndata:\n  x: \"1\"\n";
    let headers = [("content-type", "application/yaml"), ("accept", "application/yaml")];
    let answer = client.send(Method::POST, CONFIGMAPS, &headers, body.as_bytes()).await;
    assert_eq!(answer.code, 201);
    assert_eq!(answer.headers["content-type"], "application/yaml");
    let text = String::from_utf8(answer.bytes.to_vec()).unwrap();
    assert!(text.contains("kind: ConfigMap\n") && text.contains("  x: \"1\"\n"), "{text}");
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";
    assert_eq!(client.send(Method::POST, CONFIGMAPS, &headers[..1], bomb.as_bytes()).await.failure().0, 400);
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_given_up() {
    let client = Client::new().await;
    let never = futures::stream::pending::<Result<http_body::Frame<Bytes>, std::convert::Infallible>>();
    let request = Request::post(format!("{CONFIGMAPS}?timeout=20ms")).body(StreamBody::new(never)).unwrap();
    let admin = Identity::authenticated("admin", ["system:masters".to_owned()]);
    let response = client.api.answer(&Connection::InProcess(admin), request).await;
    assert_eq!(response.status(), 504);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let status: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(status["message"], "Timeout: request did not complete within the allotted timeout");
    assert_eq!(status["reason"], "Timeout");
}
