//! The server as a tower service for clients in the same process: no socket, no TLS, the same pipeline.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use tower_service::Service;

use crate::api::ApiServer;
use crate::auth::{Connection, Identity};
use crate::body::Body;

/// An [`ApiServer`] for one caller.
#[derive(Clone)]
pub struct ApiService {
    api: ApiServer,
    connection: Connection,
}

impl ApiService {
    /// The server for a caller of this process, whose identity is trusted.
    pub fn new(api: ApiServer, caller: Identity) -> Self {
        Self { api, connection: Connection::InProcess(caller) }
    }
}

impl<B> Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { api, connection } = self.clone();
        Box::pin(async move { Ok(api.answer(&connection, request).await) })
    }
}
