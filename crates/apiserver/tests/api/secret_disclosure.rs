//! Secrets are in no log, no error and no metric.

use std::io;
use std::sync::{Arc, Mutex};

use apiserver::auth::{Authentication, Connection, Identity, StaticToken};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use crate::client::Client;

const STATIC: &str = "a-static-token-of-jane";
const WRONG: &str = "a-token-that-means-nothing";
const VALUE: &str = "the-value-of-a-secret";

/// The captured log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Sends a request over a connection without a client certificate.
async fn send(client: &Client, method: Method, path: &str, token: &str, body: &Value) -> String {
    let request =
        Request::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"));
    let request = request.header("content-type", "application/json");
    let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
    let response = client.api.answer(&Connection::Bare, request).await;
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn secrets_are_in_no_log_no_error_and_no_metric() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone());
    let _logging = tracing::subscriber::set_default(subscriber.finish());
    let identity = Identity::authenticated("jane", []);
    let tokens = vec![StaticToken { token: STATIC.to_owned(), identity }];
    let admin = Client::with(|builder| builder.authentication(Authentication::new(tokens))).await;
    // Other tests may have disabled these call sites already.
    tracing::callsite::rebuild_interest_cache();
    let account = json!({"metadata": {"name": "robot"}});
    admin.create("/api/v1/namespaces/default/serviceaccounts", &account).await;
    let token = admin.create("/api/v1/namespaces/default/serviceaccounts/robot/token", &json!({})).await;
    let token = token["status"]["token"].as_str().unwrap().to_owned();
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": VALUE}});
    admin.create(secrets, &secret).await;
    let review = "/apis/authentication.k8s.io/v1/tokenreviews";
    admin.create(review, &json!({"spec": {"token": token}})).await;
    admin.create(review, &json!({"spec": {"token": WRONG}})).await;
    let broken = json!({"metadata": {"name": "t"}, "stringData": {"k": [VALUE]}});
    let mut errors = vec![format!("{:?}", admin.post(secrets, &json!({"metadata": {"name": "s"}})).await)];
    for bearer in [STATIC, WRONG, &token, &format!("{token}x")] {
        errors.push(send(&admin, Method::GET, "/api/v1/nodes", bearer, &Value::Null).await);
        errors.push(send(&admin, Method::POST, secrets, bearer, &secret).await);
        errors.push(send(&admin, Method::POST, secrets, bearer, &broken).await);
    }
    let metrics = admin.get("/metrics").await;
    let shown = [
        ("the log", String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned()),
        ("errors", errors.join("\n")),
        ("the metrics", String::from_utf8_lossy(&metrics.bytes).into_owned()),
    ];
    assert!(shown[0].1.contains("authenticated"), "the log shows what is done");
    for (place, text) in shown {
        let encoded = "dGhlLXZhbHVlLW9mLWEtc2VjcmV0";
        for hidden in [STATIC, WRONG, VALUE, encoded, token.as_str(), token.rsplit('.').next().unwrap()] {
            assert!(!text.contains(hidden), "{place}: {hidden}");
        }
    }
}
