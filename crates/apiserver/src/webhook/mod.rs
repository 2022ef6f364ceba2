//! The HTTPS client of webhooks.

mod address;
mod connection;
mod pool;
mod services;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use model::error::quote;
use process::pki::Identity;
use rustls::ClientConfig;
use tokio::time::{Instant, timeout};

use connection::Failure;
use pool::{ConnectionLease, ConnectionPool};

pub(crate) use address::WebhookAddress;
pub(crate) use services::Services;

/// The size limit of a response.
const MAX_ANSWER: usize = 64 << 20;
/// The time that resolved addresses are cached.
const ADDRESS_TTL: Duration = Duration::from_secs(5);

/// The operator's credentials for a webhook. Without `Debug`, so that nothing logs them.
#[derive(Default)]
pub(crate) struct WebhookCredentials {
    /// The client certificate and its key.
    pub identity: Option<Identity>,
    /// The `Authorization` header.
    pub authorization: Option<HeaderValue>,
}

/// Resolved addresses, and the time of the lookup.
type CachedAddresses = Option<(Instant, Arc<[SocketAddr]>)>;

/// A client of one webhook. Connections are pooled and spread over its addresses.
pub(crate) struct Webhook {
    address: WebhookAddress,
    services: Services,
    tls: Result<Arc<ClientConfig>, String>,
    authorization: Option<HeaderValue>,
    timeout: Duration,
    addresses: Mutex<CachedAddresses>,
    pool: ConnectionPool,
}

impl Webhook {
    /// Trusts the CAs of `bundle`, or those of the system if it is empty.
    pub fn new(
        address: WebhookAddress,
        bundle: &[u8],
        timeout: Duration,
        services: &Services,
        credentials: WebhookCredentials,
    ) -> Self {
        let tls = connection::tls_config(bundle, credentials.identity.as_ref());
        let (services, authorization) = (services.clone(), credentials.authorization);
        Self {
            address,
            services,
            tls,
            authorization,
            timeout,
            addresses: Mutex::default(),
            pool: ConnectionPool::default(),
        }
    }

    /// Posts a document and returns the response of a success. The timeout is the smaller of the webhook's own and the
    /// remaining time of the request; the query has it in whole seconds.
    ///
    /// # Errors
    /// The message for the client of this server.
    pub async fn post(&self, document: Bytes, deadline: Option<Instant>) -> Result<Bytes, String> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let limit = left.map_or(self.timeout, |left| left.min(self.timeout));
        let seconds = limit.as_secs() + u64::from(limit.subsec_nanos() > 0);
        let query = format!("?timeout={seconds}s");
        let address = format!("{}{query}", self.address.address());
        // Boxed: nearly every request could get here, and few do.
        match timeout(limit, Box::pin(self.exchange(document, &query))).await {
            Ok(Ok((head, body))) if head.status == StatusCode::OK => Ok(body),
            Ok(Ok((head, body))) => Err(refusal(&head, &body)),
            Ok(Err(reason)) => Err(format!("Post {}: {reason}", quote(&address))),
            Err(_) => Err(format!("Post {}: context deadline exceeded", quote(&address))),
        }
    }

    async fn exchange(&self, document: Bytes, query: &str) -> Result<(Parts, Bytes), String> {
        let _permit = self.pool.call_permit().await;
        let mut lease = self.connection(false).await?;
        let request = self.request(document.clone(), query, lease.is_http2())?;
        let answer = match lease.send(request).await {
            Ok(answer) => answer,
            // The webhook closed a pooled connection before it received the request; any other failure may have had effects.
            Err(Failure::Unsent(_)) if lease.is_reused => {
                drop(lease);
                lease = self.connection(true).await?;
                let request = self.request(document, query, lease.is_http2())?;
                lease.send(request).await.map_err(Failure::into_reason)?
            }
            Err(failure) => return Err(failure.into_reason()),
        };
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|error| error.to_string())?;
        lease.give_back();
        Ok((head, body.to_bytes()))
    }

    fn request(&self, document: Bytes, query: &str, is_http2: bool) -> Result<Request<Full<Bytes>>, String> {
        let mut request = Request::builder()
            .method(Method::POST)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, "kube-apiserver-admission");
        // HTTP/2 takes the authority from the URI, HTTP/1.1 from a header.
        request = match is_http2 {
            true => request.uri(format!("{}{query}", self.address.address())),
            false => request
                .uri(format!("{}{query}", self.address.path))
                .header(header::HOST, self.address.authority()),
        };
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        request.body(Full::new(document)).map_err(|error| error.to_string())
    }

    async fn connection(&self, is_fresh: bool) -> Result<ConnectionLease<'_>, String> {
        let tls = self.tls.as_ref().map_err(Clone::clone)?;
        let addresses = self.addresses().await?;
        let connection = self.pool.connection(&addresses, &self.address.host, tls, is_fresh).await;
        if connection.is_err() {
            // The addresses may have changed.
            *self.cached() = None;
        }
        connection
    }

    /// The addresses of the webhook: endpoints of its Service, or DNS.
    async fn addresses(&self) -> Result<Arc<[SocketAddr]>, String> {
        let cached = self.cached().clone();
        if let Some((_, addresses)) = cached.filter(|(when, _)| when.elapsed() < ADDRESS_TTL) {
            return Ok(addresses);
        }
        let hosts = match &self.address.service {
            Some((namespace, name)) => self.services.find(namespace, name, self.address.port).await?,
            None => vec![(self.address.host.clone(), self.address.port)],
        };
        let mut addresses = Vec::new();
        for (host, port) in hosts {
            if let Ok(ip) = host.parse::<IpAddr>() {
                addresses.push(SocketAddr::new(ip, port));
                continue;
            }
            let found = tokio::net::lookup_host((host.as_str(), port)).await;
            addresses.extend(found.map_err(|error| format!("dial tcp {host}:{port}: {error}"))?);
        }
        let addresses: Arc<[SocketAddr]> = addresses.into();
        *self.cached() = Some((Instant::now(), Arc::clone(&addresses)));
        Ok(addresses)
    }

    fn cached(&self) -> std::sync::MutexGuard<'_, CachedAddresses> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of an unsuccessful response, with the messages of Kubernetes' clients.
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
        500.. => format!("an error on the server ({}) has prevented the request from succeeding", quote(said)),
        code => format!("the server responded with the status code {code} but did not return more information"),
    }
}
