//! Failures of the server at paths of a mount: in the product's format, or as a `Status`.

use std::time::Duration;

use apiserver::auth::Authentication;
use apiserver::{ApiServer, Limits};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use mount::{Body, Mount};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{CONSOLE, Product, allow, get, send, server};
use crate::client::{Answer, Client, PATIENCE};

/// Checks a failure in the product's format.
#[track_caller]
fn failed(answer: &Answer, code: u16, title: &str, unauthenticated: Value) {
    let problem = answer.json();
    assert_eq!(answer.headers["content-type"], "application/problem+json", "{problem}");
    let expected = json!([code, title, unauthenticated]);
    assert_eq!(json!([answer.code, problem["title"], problem["unauthenticated"]]), expected, "{problem}");
    assert_eq!(problem["status"], code);
}

#[tokio::test]
async fn a_refused_caller_gets_the_products_own_form() {
    let product = Product::default();
    let admin = server(&product, |builder| builder).await;
    let path = format!("{CONSOLE}/x");
    let answer = get(&admin.api, "alice", &path).await;
    failed(&answer, 403, "Forbidden", Value::Null);
    assert_eq!(answer.json()["detail"], format!("forbidden: User \"alice\" cannot get path {path:?}"));
    assert_eq!(answer.json()["instance"], path);
    failed(&get(&admin.api, "wrong", &path).await, 401, "Unauthorized", json!("the credentials are invalid"));
    failed(&get(&admin.api, "", &path).await, 401, "Forbidden", json!("the request has no credentials"));
    let request =
        Request::get(&path).header("authorization", "Bearer alice").header("impersonate-user", "bob");
    let answer = send(&admin.api, request.body(Full::default()).unwrap()).await;
    failed(&answer, 403, "Forbidden", Value::Null);
    assert!(answer.json()["detail"].as_str().unwrap().contains("cannot impersonate resource"));

    let strict =
        |builder: apiserver::Builder| builder.authentication(Authentication::default().without_anonymous());
    let strict = server(&product, strict).await;
    failed(&get(&strict.api, "", &path).await, 401, "Unauthorized", json!("the request has no credentials"));
    assert_eq!(product.take_calls(), Vec::<String>::new(), "the handler saw none of them");
}

async fn post(api: &ApiServer, path: &str, body: Vec<u8>) -> Answer {
    let request = Request::post(path).header("authorization", "Bearer alice");
    send(api, request.body(Full::new(Bytes::from(body))).unwrap()).await
}

#[tokio::test]
async fn a_request_beyond_a_limit_gets_the_products_own_form() {
    let limits = Limits {
        body_bytes: 64 << 10,
        url_bytes: 200,
        reads_in_flight: 2,
        request_timeout: Duration::from_secs(2),
        ..Limits::default()
    };
    let product = Product::default();
    let admin = server(&product, |builder| builder.limits(limits)).await;
    allow(&admin, "alice", &["*"], &["*"]).await;
    let answer = post(&admin.api, CONSOLE, vec![b'x'; (64 << 10) + 1]).await;
    failed(&answer, 413, "RequestEntityTooLarge", Value::Null);
    let long = get(&admin.api, "alice", &format!("{CONSOLE}?{}", "x".repeat(200))).await;
    failed(&long, 400, "BadRequest", Value::Null);
    failed(&get(&admin.api, "alice", &format!("{CONSOLE}/a/../b")).await, 400, "BadRequest", Value::Null);
    assert_eq!(product.take_calls(), Vec::<String>::new());

    let (hanging, api) = (format!("{CONSOLE}/hang"), admin.api.clone());
    let (hang, refused) = tokio::join!(get(&api, "alice", &hanging), async {
        let called = async {
            while product.take_calls().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, called).await.expect("the handler runs");
        get(&api, "alice", CONSOLE).await
    });
    failed(&refused, 429, "TooManyRequests", Value::Null);
    assert_eq!(refused.headers["retry-after"], "1");
    failed(&hang, 504, "Timeout", Value::Null);
    assert_eq!(get(&admin.api, "alice", CONSOLE).await.code, 200, "the slot is free again");
}

#[tokio::test]
async fn a_panic_of_the_product_is_an_internal_error_in_its_own_form() {
    let admin = server(&Product::default(), |builder| builder).await;
    let answer = admin.get(&format!("{CONSOLE}/panic")).await;
    failed(&answer, 500, "InternalError", Value::Null);
    assert!(
        !String::from_utf8_lossy(&answer.bytes).contains("a defect"),
        "the text of a panic is for the log"
    );
}

#[tokio::test]
async fn without_a_form_of_its_own_failures_are_status_objects() {
    let mount = |prefix: &str| Mount::new(prefix, |_| async { Response::new(Body::empty()) });
    let (none, broken) = (mount("/none"), mount("/broken").failures(|_| panic!("a defect of the product")));
    let admin = Client::with(|builder| builder.mount(none).mount(broken)).await;
    for path in ["/none/x", "/broken/x"] {
        let client = admin.as_caller(apiserver::auth::Identity::anonymous());
        let answer = client.send(Method::GET, path, &[("accept", "application/yaml")], b"").await;
        assert_eq!(
            (answer.code, &answer.headers["content-type"]),
            (403, &"application/yaml".parse().unwrap())
        );
        let (code, reason, message) = client.get(path).await.failure();
        assert_eq!((code, reason.as_str()), (403, "Forbidden"));
        assert!(
            message.contains(&format!("User \"system:anonymous\" cannot get path \"{path}\"")),
            "{message}"
        );
    }
}
