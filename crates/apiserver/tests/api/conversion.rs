//! Versions of custom resources that a webhook converts: a server of the test's own, over HTTPS.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use process::pki::Pki;
use process::tls::{ClientCaVerifier, ServingCertificate, server_config};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::client::Client;
use crate::custom::DEFINITIONS;

/// What a webhook answers to a request.
type Answers = Arc<Mutex<Box<dyn Fn(&Value) -> Value + Send>>>;

/// A webhook that runs as long as the test.
struct Webhook {
    address: SocketAddr,
    bundle: String,
    answers: Answers,
    connections: Arc<AtomicUsize>,
    sizes: Arc<Mutex<Vec<usize>>>,
    _tasks: JoinSet<()>,
}

impl Webhook {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pki = Pki::ensure(folder.path(), "127.0.0.1", SystemTime::now()).unwrap();
        let certificate = Arc::new(ServingCertificate::new(&pki.server).unwrap());
        let mut config =
            (*server_config(certificate, &ClientCaVerifier::from_pem(pki.ca.as_bytes()).unwrap())).clone();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers: Answers = Arc::new(Mutex::new(Box::new(converted)));
        let (connections, sizes) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let mut tasks = JoinSet::new();
        let (served, counted, measured) = (answers.clone(), connections.clone(), sizes.clone());
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                let (acceptor, answers, sizes) = (acceptor.clone(), served.clone(), measured.clone());
                open.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request| answer(request, answers.clone(), sizes.clone()));
                    let connection = hyper::server::conn::http1::Builder::new();
                    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        let bundle = STANDARD.encode(&pki.ca);
        Self { address, bundle, answers, connections, sizes, _tasks: tasks }
    }

    fn config(&self) -> Value {
        json!({"url": format!("https://{}/convert", self.address), "caBundle": self.bundle})
    }

    fn answer_with(&self, answer: impl Fn(&Value) -> Value + Send + 'static) {
        *self.answers.lock().unwrap() = Box::new(answer);
    }
}

async fn answer(
    request: Request<Incoming>,
    answers: Answers,
    sizes: Arc<Mutex<Vec<usize>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    assert_eq!(request.uri().path(), "/convert");
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    sizes.lock().unwrap().push(review["request"]["objects"].as_array().unwrap().len());
    let answer = answers.lock().unwrap()(&review);
    Ok(Response::new(Full::new(answer.to_string().into())))
}

/// `v1` has one text where `v2` has a host and a port.
fn converted(review: &Value) -> Value {
    let to = review["request"]["desiredAPIVersion"].as_str().unwrap();
    let objects = review["request"]["objects"].as_array().unwrap().iter().map(|object| {
        let mut object = object.clone();
        let spec = object["spec"].clone();
        object["spec"] = if to.ends_with("v2") {
            let (host, port) = spec["address"].as_str().unwrap().split_once(':').unwrap();
            json!({"host": host, "port": port})
        } else {
            json!({"address": format!("{}:{}", spec["host"].as_str().unwrap(), spec["port"].as_str().unwrap())})
        };
        object["apiVersion"] = to.into();
        object
    });
    let response = json!({
        "uid": review["request"]["uid"], "result": {"status": "Success"},
        "convertedObjects": objects.collect::<Vec<_>>(),
    });
    json!({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response})
}

fn definition(config: Value) -> Value {
    let version = |name: &str, storage: bool, fields: Value| {
        let spec = json!({"type": "object", "properties": fields});
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        })
    };
    let text = || json!({"type": "string"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ends.example.io"},
        "spec": {
            "group": "example.io", "scope": "Namespaced",
            "names": {"plural": "ends", "singular": "end", "kind": "End", "listKind": "EndList"},
            "versions": [
                version("v1", true, json!({"address": text()})),
                version("v2", false, json!({"host": text(), "port": text()})),
            ],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": config, "conversionReviewVersions": ["v1"]}},
        },
    })
}

fn end(version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("example.io/{version}"), "kind": "End", "metadata": {"name": name}, "spec": spec})
}

const V1: &str = "/apis/example.io/v1/namespaces/default/ends";
const V2: &str = "/apis/example.io/v2/namespaces/default/ends";

#[tokio::test]
async fn a_webhook_converts_what_is_read_and_written_in_another_version() {
    let webhook = Webhook::start().await;
    let client = Client::new().await;
    client.create(DEFINITIONS, &definition(webhook.config())).await;
    let first = client.create(V2, &end("v2", "a", json!({"host": "h", "port": "1"}))).await;
    assert_eq!(
        (&first["apiVersion"], &first["spec"]),
        (&json!("example.io/v2"), &json!({"host": "h", "port": "1"}))
    );
    assert_eq!(client.get(&format!("{V1}/a")).await.json()["spec"], json!({"address": "h:1"}));
    for name in ["b", "c"] {
        client.create(V1, &end("v1", name, json!({"address": "x:2"}))).await;
    }
    webhook.sizes.lock().unwrap().clear();
    let list = client.get(V2).await.json();
    let hosts: Vec<_> = list["items"].as_array().unwrap().iter().map(|i| i["spec"]["host"].clone()).collect();
    assert_eq!(hosts, ["h", "x", "x"]);
    assert_eq!(*webhook.sizes.lock().unwrap(), [3]);
    let mut watch = client.watch(&format!("{V2}?watch=true&resourceVersion=0")).await;
    assert_eq!(watch.next().await.unwrap()["object"]["spec"]["host"], "h");
    watch.expect(&[("ADDED", "b"), ("ADDED", "c")]).await;
    let patched = client.merge(&format!("{V2}/a"), &json!({"spec": {"port": "9"}})).await.json();
    assert_eq!(patched["spec"], json!({"host": "h", "port": "9"}));
    assert_eq!(patched["metadata"]["generation"], 2);
    assert_eq!(watch.next().await.unwrap()["object"]["spec"]["port"], "9");
    assert_eq!(client.get(&format!("{V1}/a")).await.json()["spec"], json!({"address": "h:9"}));
    assert_eq!(webhook.connections.load(Ordering::Relaxed), 1);
    // Another storage version: what was stored before is converted from the version that it says.
    let path = format!("{DEFINITIONS}/ends.example.io");
    let change = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
    ]);
    assert_eq!(client.json_patch(&path, &change).await.code, 200);
    client.create(V2, &end("v2", "d", json!({"host": "d", "port": "4"}))).await;
    for (name, address) in [("a", "h:9"), ("d", "d:4")] {
        assert_eq!(client.get(&format!("{V1}/{name}")).await.json()["spec"], json!({"address": address}));
        let host = address.split(':').next().unwrap();
        assert_eq!(client.get(&format!("{V2}/{name}")).await.json()["spec"]["host"], host);
    }
}

#[tokio::test]
async fn a_webhook_that_fails_is_named_in_the_answer() {
    let webhook = Webhook::start().await;
    let client = Client::new().await;
    client.create(DEFINITIONS, &definition(webhook.config())).await;
    client.create(V1, &end("v1", "a", json!({"address": "h:1"}))).await;
    let message = || async { client.get(&format!("{V2}/a")).await.failure() };
    webhook.answer_with(|review| {
        let mut answer = converted(review);
        answer["response"]["result"] = json!({"status": "Failure", "message": "not today"});
        answer
    });
    let (code, _, text) = message().await;
    assert_eq!(
        (code, text.as_str()),
        (500, "conversion webhook for example.io/v1, Kind=End failed: not today")
    );
    webhook.answer_with(|review| {
        let mut answer = converted(review);
        answer["response"]["convertedObjects"][0]["metadata"]["name"] = "b".into();
        answer
    });
    assert_eq!(
        message().await.2,
        "conversion webhook for example.io/v1, Kind=End returned invalid object at index 0: must have the same name: a != b"
    );
    webhook.answer_with(|_| json!("nonsense"));
    assert_eq!(message().await.0, 500);
    let path = format!("{DEFINITIONS}/ends.example.io");
    // Nobody listens at port 1.
    let change = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"url": "https://127.0.0.1:1/convert"}}}}});
    assert_eq!(client.merge(&path, &change).await.code, 200);
    let text = message().await.2;
    assert!(text.starts_with("conversion webhook for example.io/v1, Kind=End failed: Post \"https://127.0.0.1:1/convert?timeout=30s\": dial tcp"), "{text}");
    // The version that is stored needs no webhook.
    assert_eq!(client.get(&format!("{V1}/a")).await.code, 200);
}
