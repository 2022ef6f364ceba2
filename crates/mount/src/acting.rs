//! A client of the API server that acts as the caller of a request.

use std::fmt;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, ready};
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tower_service::Service;

use crate::{Body, BoxError};

/// The body of a request to the API server.
pub type RequestBody = UnsyncBoxBody<Bytes, BoxError>;

/// The API server as one caller sees it.
pub trait Backend: Send + Sync {
    /// Answers a request of this caller.
    fn answer(self: Arc<Self>, request: Request<RequestBody>) -> BoxFuture<'static, Response<Body>>;
}

/// The API server as a tower service whose requests have the identity of the caller: RBAC and admission decide about each of them.
///
/// It works while the caller's request lasts, which is until the handler has returned a whole body or its stream has ended. A client
/// that is kept longer answers [`RequestEnded`]: no client acts for a caller that is gone.
#[derive(Clone)]
pub struct ActingClient(Weak<dyn Backend>);

impl ActingClient {
    /// A client of this backend, for as long as the backend has an owner.
    pub fn new<B: Backend + 'static>(backend: &Arc<B>) -> Self {
        let weak: Weak<B> = Arc::downgrade(backend);
        Self(weak)
    }
}

impl fmt::Debug for ActingClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ActingClient")
    }
}

/// The request of the caller has ended, and with it the right to act as them.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the request of the caller has ended")]
pub struct RequestEnded;

impl<B> Service<Request<B>> for ActingClient
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = RequestEnded;
    type Future = BoxFuture<'static, Result<Response<Body>, RequestEnded>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), RequestEnded>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Some(backend) = self.0.upgrade() else { return ready(Err(RequestEnded)).boxed() };
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        async move { Ok(backend.answer(request).await) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    struct Echo;

    impl Backend for Echo {
        fn answer(self: Arc<Self>, request: Request<RequestBody>) -> BoxFuture<'static, Response<Body>> {
            async move {
                let body = request.into_body().collect().await.unwrap();
                Response::new(Body::from(body.to_bytes()))
            }
            .boxed()
        }
    }

    #[test]
    fn a_client_works_until_its_backend_has_no_owner() {
        let backend = Arc::new(Echo);
        let mut client = ActingClient::new(&backend);
        let mut answer = || client.call(Request::new(Full::new(Bytes::from("text")))).now_or_never().unwrap();
        let body = answer().unwrap().into_body().collect().now_or_never().unwrap().unwrap();
        assert_eq!(body.to_bytes(), "text");
        drop(backend);
        assert!(answer().is_err());
    }
}
