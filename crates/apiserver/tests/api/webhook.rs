//! A webhook of the test's own, over HTTPS.

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

/// What a webhook answers to a document that is sent to a path.
type Answers = Arc<Mutex<Box<dyn Fn(&str, &Value) -> Value + Send>>>;

/// What was sent, and where.
type Seen = Arc<Mutex<Vec<(String, Value)>>>;

/// A webhook that runs as long as the test.
pub struct Webhook {
    pub address: SocketAddr,
    bundle: String,
    answers: Answers,
    pub connections: Arc<AtomicUsize>,
    pub seen: Seen,
    _tasks: JoinSet<()>,
}

impl Webhook {
    /// One that answers like this.
    pub async fn start(answer: impl Fn(&str, &Value) -> Value + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pki = Pki::ensure(folder.path(), "127.0.0.1", SystemTime::now()).unwrap();
        let certificate = Arc::new(ServingCertificate::new(&pki.server).unwrap());
        let mut config = (*server_config(certificate, &ClientCaVerifier::nobody())).clone();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers: Answers = Arc::new(Mutex::new(Box::new(answer)));
        let (connections, seen) = (Arc::new(AtomicUsize::new(0)), Seen::default());
        let mut tasks = JoinSet::new();
        let (served, counted, noted) = (answers.clone(), connections.clone(), seen.clone());
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                let (acceptor, answers, seen) = (acceptor.clone(), served.clone(), noted.clone());
                open.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service =
                        service_fn(move |request| answer_one(request, answers.clone(), seen.clone()));
                    let connection = hyper::server::conn::http1::Builder::new();
                    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        let bundle = STANDARD.encode(&pki.ca);
        Self { address, bundle, answers, connections, seen, _tasks: tasks }
    }

    /// How clients find it, at a path.
    pub fn config(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.bundle})
    }

    /// Answers in another way from now on.
    pub fn answer_with(&self, answer: impl Fn(&str, &Value) -> Value + Send + 'static) {
        *self.answers.lock().unwrap() = Box::new(answer);
    }

    /// What was sent since this was asked last: path and document.
    pub fn take(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

async fn answer_one(
    request: Request<Incoming>,
    answers: Answers,
    seen: Seen,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let answer = answers.lock().unwrap()(&path, &review);
    seen.lock().unwrap().push((path, review));
    Ok(Response::new(Full::new(answer.to_string().into())))
}
