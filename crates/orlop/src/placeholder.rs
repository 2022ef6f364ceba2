//! Stands in for the API server until it is here: TLS, and an answer to health checks.

use std::{io, sync::Arc};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, StatusCode, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use process::Shutdown;
use tokio::{net::TcpListener, net::TcpStream, task::JoinSet};
use tokio_rustls::TlsAcceptor;

pub(crate) async fn serve(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    shutdown: Shutdown,
) -> io::Result<()> {
    let acceptor = TlsAcceptor::from(tls);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = shutdown.requested() => return Ok(()),
            accepted = listener.accept() => {
                connections.spawn(connection(acceptor.clone(), accepted?.0));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(acceptor: TlsAcceptor, stream: TcpStream) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let _ = Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service_fn(|request| async move { answer(&request) }))
        .await;
}

fn answer(request: &Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::http::Error> {
    let status = match request.uri().path() {
        "/livez" | "/readyz" | "/healthz" => StatusCode::OK,
        _ => StatusCode::NOT_IMPLEMENTED,
    };
    Response::builder().status(status).body(Full::from(status.as_str().to_owned()))
}
