//! The HTTP client of the trace exporter: one plain request per batch, on the exporter's own thread.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Request, Response,
    client::conn::http1,
    header::{HOST, HeaderValue},
};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::net::TcpStream;

/// The time limit of a request; a batch that takes longer is lost.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The size limit of the collector's answer, which is normally a few bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// Sends batches. Logs once when the collector becomes unavailable and once when it is back.
#[derive(Debug)]
pub(super) struct CollectorClient {
    failing: AtomicBool,
}

impl CollectorClient {
    pub(super) fn new() -> Self {
        Self { failing: AtomicBool::new(false) }
    }

    fn note(&self, answer: &Result<Response<Bytes>, HttpError>) {
        let failure = match answer {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(response.status().to_string()),
            Err(error) => Some(error.to_string()),
        };
        let was_failing = self.failing.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(reason) if !was_failing => {
                tracing::warn!(reason, "cannot send traces to the collector; dropping them until it is back")
            }
            None if was_failing => tracing::info!("the trace collector accepts traces again"),
            _ => {}
        }
    }
}

#[async_trait::async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // The batch thread polls this future without a tokio reactor. A runtime per request is cheap at one
        // request every few seconds, and leaves no connection or task behind.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let answer = runtime.block_on(async {
            tokio::time::timeout(TIMEOUT, exchange(request))
                .await
                .unwrap_or_else(|_| Err(format!("no answer within {TIMEOUT:?}").into()))
        });
        // A hanging name lookup must not block this thread.
        runtime.shutdown_background();
        self.note(&answer);
        answer
    }
}

async fn exchange(mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let authority = request.uri().authority().ok_or("the collector's address has no host")?.clone();
    let path = request.uri().path().parse()?;
    *request.uri_mut() = path;
    request.headers_mut().insert(HOST, HeaderValue::from_str(authority.as_str())?);

    let host = authority.host().trim_matches(['[', ']']);
    let stream = TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let exchange = async {
        let (parts, body) = sender.send_request(request.map(Full::new)).await?.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
        Ok(Response::from_parts(parts, body))
    };
    tokio::select! {
        answer = exchange => answer,
        Err(error) = connection => Err(error.into()),
    }
}
