//! An HTTPS webhook server for tests.

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
use hyper_util::rt::{TokioExecutor, TokioIo};
use process::pki::{Identity, Pki};
use process::tls::{ClientCaVerifier, ServingCertificate, server_config};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// The response to a document at a path.
type Answers = Arc<Mutex<Box<dyn Fn(&str, &Value) -> Value + Send>>>;

/// The received paths and documents.
type Seen = Arc<Mutex<Vec<(String, Value)>>>;

/// The head of a received call.
#[derive(Clone, Debug)]
pub struct Head {
    pub version: http::Version,
    pub query: String,
    pub authorization: String,
    pub has_certificate: bool,
}

/// A webhook server that runs as long as the test.
pub struct Webhook {
    pub address: SocketAddr,
    bundle: String,
    answers: Answers,
    /// Connections opened so far, and open now.
    pub connections: Arc<AtomicUsize>,
    pub open: Arc<AtomicUsize>,
    pub seen: Seen,
    pub heads: Arc<Mutex<Vec<Head>>>,
    hanging_up: Arc<Notify>,
    tasks: JoinSet<()>,
}

/// State that the tasks of a webhook share.
#[derive(Clone)]
struct Shared {
    acceptor: TlsAcceptor,
    answers: Answers,
    open: Arc<AtomicUsize>,
    seen: Seen,
    heads: Arc<Mutex<Vec<Head>>>,
}

impl Webhook {
    /// A server that responds like this over HTTP/1.1.
    pub async fn start(answer: impl Fn(&str, &Value) -> Value + Send + 'static) -> Self {
        Self::offering(&["http/1.1"], answer).await
    }

    /// A server with these protocols.
    pub async fn offering(
        protocols: &[&str],
        answer: impl Fn(&str, &Value) -> Value + Send + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pki = Pki::ensure(folder.path(), "127.0.0.1", SystemTime::now()).unwrap();
        Self::with(&pki.server, &pki.ca, protocols, answer).await
    }

    /// A server with this certificate and CA bundle.
    pub async fn with(
        identity: &Identity,
        bundle: &str,
        protocols: &[&str],
        answer: impl Fn(&str, &Value) -> Value + Send + 'static,
    ) -> Self {
        let certificate = Arc::new(ServingCertificate::new(identity).unwrap());
        let mut config = (*server_config(certificate, &ClientCaVerifier::trusting_none())).clone();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers: Answers = Arc::new(Mutex::new(Box::new(answer)));
        let shared = Shared {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            answers: answers.clone(),
            open: Arc::default(),
            seen: Seen::default(),
            heads: Arc::default(),
        };
        let connections = Arc::new(AtomicUsize::new(0));
        let (open, seen, heads) = (shared.open.clone(), shared.seen.clone(), shared.heads.clone());
        let mut tasks = JoinSet::new();
        let (counted, hanging_up) = (connections.clone(), Arc::new(Notify::new()));
        let hang_up = hanging_up.clone();
        tasks.spawn(async move {
            let mut running = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        counted.fetch_add(1, Ordering::SeqCst);
                        running.spawn(serve(shared.clone(), accepted.unwrap().0));
                    }
                    () = hang_up.notified() => running.shutdown().await,
                }
            }
        });
        let bundle = STANDARD.encode(bundle);
        Self { address, bundle, answers, connections, open, seen, heads, hanging_up, tasks }
    }

    /// Closes all connections, and accepts new ones.
    pub async fn hang_up(&self) {
        self.hanging_up.notify_one();
        while self.open.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Closes all connections and the listener.
    pub async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }

    /// Takes the heads of the calls so far.
    pub fn take_heads(&self) -> Vec<Head> {
        std::mem::take(&mut *self.heads.lock().unwrap())
    }

    /// The `clientConfig` for a path.
    pub fn config(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.bundle})
    }

    /// Replaces the response.
    pub fn answer_with(&self, answer: impl Fn(&str, &Value) -> Value + Send + 'static) {
        *self.answers.lock().unwrap() = Box::new(answer);
    }

    /// Takes the received paths and documents so far.
    pub fn take(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

async fn serve(shared: Shared, stream: TcpStream) {
    let Ok(stream) = shared.acceptor.accept(stream).await else { return };
    let _open = Open::new(&shared.open);
    let session = stream.get_ref().1;
    let has_certificate = session.peer_certificates().is_some_and(|chain| !chain.is_empty());
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request| answer_one(request, shared.clone(), has_certificate));
    if is_http2 {
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = connection.serve_connection(TokioIo::new(stream), service).await;
    } else {
        let connection = hyper::server::conn::http1::Builder::new();
        let _ = connection.serve_connection(TokioIo::new(stream), service).await;
    }
}

/// Counts a connection while it is open.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A call to `/hang` gets no response.
async fn answer_one(
    request: Request<Incoming>,
    shared: Shared,
    has_certificate: bool,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let authorization = request.headers().get("authorization");
    shared.heads.lock().unwrap().push(Head {
        version: request.version(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        authorization: authorization.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default(),
        has_certificate,
    });
    if path == "/hang" {
        std::future::pending::<()>().await;
    }
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let answer = shared.answers.lock().unwrap()(&path, &review);
    shared.seen.lock().unwrap().push((path, review));
    Ok(Response::new(Full::new(answer.to_string().into())))
}
