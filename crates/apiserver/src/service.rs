//! The server as a tower service for clients in the same process: no socket, no TLS, the same pipeline.

use std::future::Future;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use thiserror::Error;
use tower_service::Service;

use crate::api::{ApiServer, ServerState};
use crate::auth::{Connection, Identity};
use crate::body::Body;

/// The in-process transport: an [`ApiServer`] as one caller sees it.
#[derive(Clone)]
pub struct ApiService {
    api: Handle,
    connection: Connection,
    user_agent: Option<HeaderValue>,
}

#[derive(Clone)]
enum Handle {
    Owned(ApiServer),
    Weak(Weak<ServerState>),
}

/// The server behind an in-process transport no longer exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the server has stopped")]
pub struct Stopped;

impl ApiService {
    /// A transport that keeps the server alive. The caller is trusted to be this user.
    pub fn new(api: ApiServer, caller: Identity) -> Self {
        Self { api: Handle::Owned(api), connection: Connection::InProcess(caller), user_agent: None }
    }

    /// A transport that does not keep the server alive: its requests fail with [`Stopped`] once the server is dropped. For client
    /// libraries whose background tasks may outlive their clients.
    pub fn weak(api: &ApiServer, caller: Identity) -> Self {
        Self { api: Handle::Weak(api.weak()), connection: Connection::InProcess(caller), user_agent: None }
    }

    /// Adds a user agent to requests without one. The server derives the default field manager from it.
    #[must_use]
    pub fn with_user_agent(mut self, user_agent: HeaderValue) -> Self {
        self.user_agent = Some(user_agent);
        self
    }
}

impl<B> Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    type Response = Response<Body>;
    type Error = Stopped;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Stopped>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Stopped>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(user_agent) = &self.user_agent {
            request.headers_mut().entry(header::USER_AGENT).or_insert_with(|| user_agent.clone());
        }
        let api = match &self.api {
            Handle::Owned(api) => Some(api.clone()),
            Handle::Weak(parts) => parts.upgrade().map(ApiServer::of),
        };
        let connection = self.connection.clone();
        Box::pin(async move { Ok(api.ok_or(Stopped)?.answer(&connection, request).await) })
    }
}
