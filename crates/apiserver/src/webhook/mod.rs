//! Webhooks: JSON documents that are sent to other servers over HTTPS, and their answers.

mod connection;
mod services;
mod target;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use rustls::ClientConfig;
use tokio::task::JoinSet;
use tokio::time::timeout;

pub(crate) use services::Services;
pub(crate) use target::Target;

/// The longest answer that is read.
const MAX_ANSWER: usize = 64 << 20;
/// How many connections that nobody uses are kept.
const IDLE: usize = 8;

/// A client of one webhook. Connections are kept and used again.
pub(crate) struct Webhook {
    target: Target,
    services: Services,
    tls: Result<Arc<ClientConfig>, String>,
    timeout: Duration,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
    /// One for each connection; they end with the client.
    connections: Mutex<JoinSet<()>>,
}

impl Webhook {
    /// Trusts the authorities of `bundle`, or those of the system where that is empty.
    pub fn new(target: Target, bundle: &[u8], timeout: Duration, services: &Services) -> Self {
        let tls = connection::trusting(bundle);
        let (idle, connections) = (Mutex::new(Vec::new()), Mutex::new(JoinSet::new()));
        Self { target, services: services.clone(), tls, timeout, idle, connections }
    }

    /// Sends a document and gives the answer, if that is a success.
    ///
    /// # Errors
    /// Why there is no answer, in words for the client of this server.
    pub async fn post(&self, document: Bytes) -> Result<Bytes, String> {
        let address = format!("{}?timeout={}s", self.target.address(), self.timeout.as_secs());
        // Boxed: nearly every request could come here, and few do.
        match timeout(self.timeout, Box::pin(self.exchange(document))).await {
            Ok(Ok((head, body))) if head.status == StatusCode::OK => Ok(body),
            Ok(Ok((head, body))) => Err(refusal(&head, &body)),
            Ok(Err(reason)) => Err(format!("Post {address:?}: {reason}")),
            Err(_) => Err(format!("Post {address:?}: context deadline exceeded")),
        }
    }

    async fn exchange(&self, document: Bytes) -> Result<(Parts, Bytes), String> {
        let (mut connection, is_used) = match self.take_idle() {
            Some(connection) => (connection, true),
            None => (self.connect().await?, false),
        };
        let answer = match connection.send_request(self.request(document.clone())?).await {
            Ok(answer) => answer,
            // The other side may have closed a connection that was not used for a while; then nobody has seen the request.
            Err(error) if is_used && (error.is_canceled() || error.is_closed()) => {
                connection = self.connect().await?;
                connection.send_request(self.request(document)?).await.map_err(|error| error.to_string())?
            }
            Err(error) => return Err(error.to_string()),
        };
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|error| error.to_string())?;
        self.keep(connection);
        Ok((head, body.to_bytes()))
    }

    fn request(&self, document: Bytes) -> Result<Request<Full<Bytes>>, String> {
        let path = format!("{}?timeout={}s", self.target.path, self.timeout.as_secs());
        Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::HOST, self.target.authority())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, "kube-apiserver-admission")
            .body(Full::new(document))
            .map_err(|error| error.to_string())
    }

    fn take_idle(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| idle.pop()).find(|connection| !connection.is_closed())
    }

    fn keep(&self, connection: SendRequest<Full<Bytes>>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE && !connection.is_closed() {
            idle.push(connection);
        }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let tls = self.tls.clone()?;
        let place = match &self.target.service {
            Some((namespace, name)) => self.services.find(namespace, name, self.target.port).await?,
            None => (self.target.host.clone(), self.target.port),
        };
        let (sender, driving) = connection::open(&self.target, place, tls).await?;
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        while connections.try_join_next().is_some() {}
        connections.spawn(driving);
        Ok(sender)
    }
}

/// What a server said that did not take a document, in the words of Kubernetes' clients.
fn refusal(head: &Parts, body: &[u8]) -> String {
    let is_text =
        head.headers.get(header::CONTENT_TYPE).is_some_and(|of| of.as_bytes().starts_with(b"text/"));
    let said = String::from_utf8_lossy(&body[..body.len().min(2048)]);
    let said = if is_text { said.trim() } else { "unknown" };
    match head.status.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => said.to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        415 => "the server was unable to respond with a content type that the client supports".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request".to_owned(),
        500.. => format!("an error on the server ({said:?}) has prevented the request from succeeding"),
        code => format!("the server responded with the status code {code} but did not return more information"),
    }
}
