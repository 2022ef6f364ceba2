//! Certificate signing requests, and client certificates on open connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use apiserver::auth::{Connection, Identity, Peer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use crate::client::Client;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const DEV: &str = include_str!("../../../../fixtures/certificates/dev.csr");
const MASTERS: &str = include_str!("../../../../fixtures/certificates/masters.csr");
const TELETEX: &str = include_str!("../../../../fixtures/certificates/teletex.csr");

fn signing_request(text: &str) -> Value {
    let spec = json!({
        "request": STANDARD.encode(text),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    });
    json!({"metadata": {"generateName": "csr-"}, "spec": spec})
}

#[tokio::test]
async fn a_request_for_masters_hidden_in_front_of_a_harmless_one_is_refused() {
    let client = Client::new().await;
    for (text, code, message) in [
        (format!("x{MASTERS}{DEV}"), 422, "must be exactly one PEM block of type CERTIFICATE REQUEST"),
        (format!("{DEV}{MASTERS}"), 422, "must be exactly one PEM block of type CERTIFICATE REQUEST"),
        (format!("x{MASTERS}"), 422, "PEM block type must be CERTIFICATE REQUEST"),
        (format!(" {MASTERS}"), 422, "PEM block type must be CERTIFICATE REQUEST"),
        (TELETEX.to_owned(), 422, "UTF8String, PrintableString and IA5String only"),
        (MASTERS.to_owned(), 403, "signer with system:masters group is not allowed"),
        (format!("\n{MASTERS}\n"), 403, "signer with system:masters group is not allowed"),
    ] {
        let answer = client.post(REQUESTS, &signing_request(&text)).await;
        assert_eq!(answer.code, code, "{text}: {}", answer.json());
        assert!(answer.failure().2.contains(message), "{text}: {}", answer.json());
    }
    assert_eq!(client.get(REQUESTS).await.json()["items"], json!([]));
    let made = client.create(REQUESTS, &signing_request(DEV)).await;
    assert_eq!(made["spec"]["request"], STANDARD.encode(DEV));
}

/// A client certificate that expires on demand.
#[derive(Debug, Default)]
struct Expiring(AtomicBool);

impl Peer for Expiring {
    fn verify(&self, _: SystemTime) -> Arc<Connection> {
        Arc::new(if self.0.load(Ordering::Relaxed) {
            Connection::BadCertificate("the certificate expired".to_owned())
        } else {
            Connection::Certificate(Identity::authenticated("admin", ["system:masters".to_owned()]))
        })
    }
}

#[tokio::test]
async fn a_certificate_that_expires_is_refused_on_its_open_connection() {
    let client = Client::new().await;
    let peer = Arc::new(Expiring::default());
    let connection = Connection::Peer(peer.clone());
    let code = || async {
        let request = Request::get("/api/v1/namespaces").body(Full::<Bytes>::default()).unwrap();
        client.api.answer(&connection, request).await.status().as_u16()
    };
    assert_eq!(code().await, 200);
    peer.0.store(true, Ordering::Relaxed);
    assert_eq!(code().await, 401);
}
