//! The server at the client URLs: health for launchers, the store for kube-apiserver, an error for etcd clients.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, UPGRADE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use process::{Shutdown, sockets};
use rustls::pki_types::UnixTime;
use store::remote::{self, PROTOCOL, Shared, Stream};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::config::Tls;
use super::databases::Databases;
use super::{PREFIX_HEADER, STORE_PATH, USUAL_PREFIX, VERSION};

/// The limit of open connections. Every kube-apiserver has one, and launchers poll the health.
pub(super) const CONNECTIONS: usize = 1_000;

/// The time limit for a handshake and for the head of a request.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The wait after a connection could not be accepted, for instance because of too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves up to this many connections until a stop is requested.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    databases: Arc<Databases>,
    most: usize,
    shutdown: Shutdown,
) -> io::Result<()> {
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(shutdown.requested());
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < most => match accepted {
                Ok((stream, _)) => {
                    let (tls, databases, shutdown) = (tls.clone(), Arc::clone(&databases), shutdown.clone());
                    connections.spawn(async move {
                        if let Err(error) = connection(stream, tls, databases, shutdown).await {
                            tracing::debug!(%error, "a connection ended early");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection could be accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
    // Connections to a database finish their commits; the others have no state.
    while connections.join_next().await.is_some() {}
    Ok(())
}

async fn connection(
    stream: TcpStream,
    tls: Option<Tls>,
    databases: Arc<Databases>,
    shutdown: Shutdown,
) -> io::Result<()> {
    // Responses are small, and their readers wait for them.
    stream.set_nodelay(true)?;
    sockets::detect_loss(&stream)?;
    let Some(Tls { config, clients }) = tls else { return speak(stream, databases, shutdown).await };
    let stream = timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await??;
    if let Some(clients) = clients {
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        clients.verify(chain, UnixTime::now()).map_err(io::Error::other)?;
    }
    speak(stream, databases, shutdown).await
}

/// Speaks HTTP, until the client upgrades the connection to the store protocol.
async fn speak(stream: impl Stream, databases: Arc<Databases>, shutdown: Shutdown) -> io::Result<()> {
    let lent: Arc<Mutex<Option<Lent>>> = Arc::default();
    let service = service_fn(|request| {
        let (databases, lent) = (Arc::clone(&databases), Arc::clone(&lent));
        async move { Ok::<_, Infallible>(answer(request, &databases, &lent).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HANDSHAKE);
    let http = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::select! {
        ended = http => ended.map_err(io::Error::other)?,
        () = shutdown.requested() => return Ok(()),
    }
    let lent = lent.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Lent { database, connection }) = lent else { return Ok(()) };
    let stream = connection.await.map_err(io::Error::other)?;
    remote::serve(TokioIo::new(stream), database, shutdown.requested()).await
}

/// The database for a connection that is upgraded.
struct Lent {
    database: Arc<Shared>,
    connection: OnUpgrade,
}

async fn answer(
    mut request: Request<Incoming>,
    databases: &Databases,
    lent: &Mutex<Option<Lent>>,
) -> Response<Full<Bytes>> {
    let grpc = request
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    if grpc {
        return not_etcd();
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/health") => text(StatusCode::OK, r#"{"health":"true","reason":""}"#),
        (&Method::GET, "/livez" | "/readyz") => text(StatusCode::OK, "ok\n"),
        (&Method::GET, "/version") => {
            let mut version = text(
                StatusCode::OK,
                format!(r#"{{"etcdserver":"{VERSION}","etcdcluster":"{VERSION}","storage":"{VERSION}"}}"#),
            );
            version.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            version
        }
        (&Method::GET, STORE_PATH) => {
            if request.headers().get(UPGRADE).is_none_or(|protocol| protocol != PROTOCOL) {
                return text(
                    StatusCode::UPGRADE_REQUIRED,
                    format!("this is for kube-apiserver of the same version, which speaks {PROTOCOL}\n"),
                );
            }
            let prefix = request.headers().get(PREFIX_HEADER).map_or(Ok(USUAL_PREFIX), HeaderValue::to_str);
            let Ok(prefix) = prefix else { return text(StatusCode::BAD_REQUEST, "the prefix is no text\n") };
            let database = match databases.of(prefix).await {
                Ok(database) => database,
                Err(error) => return text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
            };
            let connection = hyper::upgrade::on(&mut request);
            *lent.lock().unwrap_or_else(PoisonError::into_inner) = Some(Lent { database, connection });
            switching()
        }
        _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn switching() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    response
}

/// gRPC's status UNIMPLEMENTED, which etcd clients print.
fn not_etcd() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from_static("12"));
    headers.insert(
        "grpc-message",
        HeaderValue::from_static(
            "this is the etcd of Orlop: it serves kube-apiserver of Orlop and does not speak the API of etcd",
        ),
    );
    response
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use store::Durability;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Requests the health, and reads the response.
    async fn health(stream: &mut TcpStream) {
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(br#"{"health":"true","reason":""}"#) {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "{answer:?}");
        }
    }

    #[tokio::test]
    async fn who_comes_when_there_is_no_room_waits_until_somebody_leaves() {
        let folder = tempfile::tempdir().unwrap();
        let databases = Arc::new(Databases::new(folder.path().to_owned(), Durability::Process));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut server = JoinSet::new();
        server.spawn(serve(listener, None, databases, 1, Shutdown::new()));
        let mut first = TcpStream::connect(address).await.unwrap();
        health(&mut first).await;
        let mut second = TcpStream::connect(address).await.unwrap();
        let mut waiting = std::pin::pin!(health(&mut second));
        // Far longer than the second response takes.
        for _ in 0..50 {
            tokio::select! {
                () = &mut waiting => panic!("there was room for two"),
                () = health(&mut first) => {}
            }
        }
        drop(first);
        timeout(Duration::from_secs(60), waiting).await.expect("there is room now");
    }
}
