//! A webhook server for scripts: it gives the answers that the script states and records the requests.
//!
//! Scripts call it `https://hook.invalid/NAME` with the CA bundle [`BUNDLE`], where NAME is one of their
//! `hooks`. [`Hooks::with_address`] replaces both by the real address and CA of the run.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::run::{Request, Response};

const HOST: &str = "hook.invalid";
/// The placeholder for the webhook's CA bundle in scripts: the word HOOK.
const BUNDLE: &str = "SE9PSw==";
/// The path at which scripts read and clear the recorded webhook requests.
const SEEN: &str = "/hooks/seen";
/// The time limit for receiving a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running webhook server; it stops when this value is dropped.
pub struct Hooks {
    address: SocketAddr,
    bundle: String,
    shared: Arc<Shared>,
    server: Option<JoinHandle<()>>,
}

struct Shared {
    answers: BTreeMap<String, Value>,
    tls: Arc<ServerConfig>,
    seen: Mutex<Vec<(String, Value)>>,
    has_ended: AtomicBool,
}

impl Hooks {
    /// Starts a webhook server with these answers, by name.
    ///
    /// # Errors
    /// When the server cannot be started.
    pub fn start(answers: &BTreeMap<String, Value>) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot start the webhook server: {error}");
        let names = vec!["127.0.0.1".to_owned()];
        let own = rcgen::generate_simple_self_signed(names).map_err(|error| failed(&error))?;
        let key = PrivateKeyDer::Pkcs8(own.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .map_err(|error| failed(&error))?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| failed(&error))?;
        let address = listener.local_addr().map_err(|error| failed(&error))?;
        let shared = Arc::new(Shared {
            answers: answers.clone(),
            tls: Arc::new(tls),
            seen: Mutex::default(),
            has_ended: AtomicBool::new(false),
        });
        let serving = shared.clone();
        let server = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.has_ended.load(Ordering::Relaxed) {
                    return;
                }
                let shared = serving.clone();
                let _ = stream.map(|stream| std::thread::spawn(move || shared.serve(stream)));
            }
        });
        Ok(Self {
            address,
            bundle: STANDARD.encode(x509::pem::encode(x509::pem::CERTIFICATE, own.cert.der())),
            shared,
            server: Some(server),
        })
    }

    /// Answers a request for the recorded webhook requests; `None` for other requests.
    pub fn answer(&self, request: &Request) -> Option<Response> {
        if request.path != SEEN {
            return None;
        }
        let mut seen = std::mem::take(&mut *self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner));
        // The API server calls validating webhooks concurrently, so the order is not defined.
        seen.sort_by(|a, b| a.0.cmp(&b.0));
        let reviews: Vec<Value> =
            seen.into_iter().map(|(name, review)| json!({"hook": name, "review": review})).collect();
        let body = if request.method == "GET" { json!({"seen": reviews}) } else { json!({}) };
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Some(Response { code: 200, headers, body: body.to_string().into_bytes() })
    }

    /// Replaces the placeholders in a request by the webhook's real address and CA.
    #[must_use]
    pub fn with_address(&self, mut request: Request) -> Request {
        if let Ok(text) = std::str::from_utf8(&request.body) {
            let text = text.replace(HOST, &self.address.to_string()).replace(BUNDLE, &self.bundle);
            request.body = text.into_bytes();
        }
        request
    }

    /// Replaces the webhook's real address and CA in a response by the placeholders.
    #[must_use]
    pub fn without_address(&self, mut response: Response) -> Response {
        let hide = |text: &str| text.replace(&self.address.to_string(), HOST).replace(&self.bundle, BUNDLE);
        if let Ok(text) = std::str::from_utf8(&response.body) {
            response.body = hide(text).into_bytes();
        }
        response.headers.iter_mut().for_each(|(_, value)| *value = hide(value));
        response
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        // Wakes the accept loop.
        let _ = TcpStream::connect(self.address);
        let _ = self.server.take().map(JoinHandle::join);
    }
}

impl Shared {
    /// Serves one request on a connection.
    fn serve(&self, stream: TcpStream) {
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let Ok(tls) = ServerConnection::new(self.tls.clone()) else { return };
        let mut stream = BufReader::new(StreamOwned::new(tls, stream));
        let Some((name, body)) = read(&mut stream) else { return };
        let review: Value = serde_json::from_slice(&body).unwrap_or_default();
        let (code, answer) = self.answer(&name, &review);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push((name, review));
        let head = format!(
            "HTTP/1.1 {code} Answer\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            answer.len()
        );
        let stream = stream.get_mut();
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(answer.as_bytes()));
        stream.conn.send_close_notify();
        let _ = stream.flush();
    }

    /// Builds the answer of a script: `http` is the status code, `text` a literal body, `patch` a JSON patch,
    /// `review` fields of the review; all other fields go into the response.
    fn answer(&self, name: &str, review: &Value) -> (u64, String) {
        let Some(Value::Object(said)) = self.answers.get(name) else { return (404, String::new()) };
        let code = said.get("http").and_then(Value::as_u64).unwrap_or(200);
        if let Some(text) = said.get("text").and_then(Value::as_str) {
            return (code, text.to_owned());
        }
        let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
        let own = ["http", "text", "patch", "review"];
        for (key, value) in said.iter().filter(|(key, _)| !own.contains(&key.as_str())) {
            response[key] = value.clone();
        }
        if let Some(patch) = said.get("patch") {
            let patch = patch.as_str().map_or_else(|| patch.to_string(), str::to_owned);
            response["patch"] = STANDARD.encode(patch).into();
            response["patchType"] = said.get("patchType").cloned().unwrap_or_else(|| "JSONPatch".into());
        }
        let mut answer = json!({
            "kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response,
        });
        for (key, value) in said.get("review").and_then(Value::as_object).into_iter().flatten() {
            answer[key] = value.clone();
        }
        (code, answer.to_string())
    }
}

/// The last segment of a request's path, and its body.
fn read(stream: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let (mut line, mut length) = (String::new(), 0);
    stream.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.split('?').next()?.trim_start_matches('/').to_owned();
    loop {
        line.clear();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((path, body))
}
