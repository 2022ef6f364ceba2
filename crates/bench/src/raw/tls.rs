//! TLS and HTTP/2 without Orlop's server, with the same TLS settings: the limit of client and socket.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use process::pki::Pki;
use process::tls::{ClientCaVerifier, ServingCertificate, server_config};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::api_level::{Credentials, Endpoint};

/// The chunk size of large responses.
const PIECE: usize = 64 << 10;

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// A server that responds from memory.
pub struct RawServer {
    /// The address and credentials.
    pub endpoint: Endpoint,
    /// Its own threads, as a server in another process has.
    runtime: Option<Runtime>,
    _folder: TempDir,
}

impl RawServer {
    /// Starts it on a free port.
    pub async fn start() -> Result<Self> {
        let folder = TempDir::new()?;
        let pki = Pki::ensure(folder.path(), "127.0.0.1", SystemTime::now())?;
        let tls = server_config(
            Arc::new(ServingCertificate::new(&pki.server)?),
            &ClientCaVerifier::trusting_none(),
        );
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?.to_string();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let _served = runtime.spawn(async move {
            // It ends with the runtime; clients notice a broken listener.
            let _ = serve(listener, TlsAcceptor::from(tls)).await;
        });
        let credentials = Credentials { ca: pki.ca, certificate: pki.admin.certificate, key: pki.admin.key };
        let endpoint = Endpoint::new(&address, &credentials)?;
        Ok(Self { endpoint, runtime: Some(runtime), _folder: folder })
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Its tasks only sleep or respond, so they can be dropped at any time.
            runtime.shutdown_background();
        }
    }
}

async fn serve(listener: std::net::TcpListener, acceptor: TlsAcceptor) -> Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        let acceptor = acceptor.clone();
        connections.spawn(async move {
            stream.set_nodelay(true)?;
            let stream = acceptor.accept(stream).await?;
            http2::Builder::new(TokioExecutor::new())
                .max_concurrent_streams(1000)
                .serve_connection(TokioIo::new(stream), service_fn(answer))
                .await
                .context("a raw connection broke")
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Answers `/bytes/N` with N bytes. The request body is read, as every server has to.
async fn answer(request: Request<Incoming>) -> Result<Answer> {
    let bytes = request.uri().path().rsplit('/').next().and_then(|number| number.parse::<usize>().ok());
    let bytes = bytes.context("the raw server serves only /bytes/N")?;
    request.into_body().collect().await?;
    let body = if bytes <= PIECE {
        Full::new(Bytes::from(vec![b'a'; bytes])).boxed_unsync()
    } else {
        let piece = Bytes::from(vec![b'a'; PIECE]);
        let sizes = (0..bytes).step_by(PIECE).map(move |sent| PIECE.min(bytes - sent));
        let pieces = sizes.map(move |size| Ok(Frame::data(piece.slice(..size))));
        StreamBody::new(stream::iter(pieces)).boxed_unsync()
    };
    Ok(Response::new(body))
}

/// The time to start and end a process that does nothing.
pub async fn start_and_end(times: usize) -> Result<Vec<Duration>> {
    let mut latencies = Vec::new();
    for _ in 0..times {
        let started = std::time::Instant::now();
        tokio::process::Command::new("true").status().await?;
        latencies.push(started.elapsed());
    }
    Ok(latencies)
}
