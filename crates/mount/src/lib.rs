//! Paths of a product on the API server's port: the interface between the two.
//!
//! A product hands the server a [`Mount`]: a path prefix and a handler. The server authenticates, impersonates, authorizes (by
//! `nonResourceURLs`), audits, limits, measures and traces a request below the prefix as every other one. The handler receives a
//! [`Call`] with the [`Caller`], or the reason why there is none, and a client that acts as the caller: RBAC and admission decide
//! about it as they do about kubectl. Neither side imports the other; both import this crate.
//!
//! ```
//! use bytes::Bytes;
//! use http::{Method, Response, StatusCode};
//! use mount::{Body, Call, Failure, Mount};
//!
//! async fn hello(call: Call) -> Response<Body> {
//!     match (call.request.method(), call.path(), &call.caller) {
//!         (&Method::GET, "/openapi", _) => Response::new(Body::from("openapi: 3.1.0")),
//!         (&Method::GET, "/me", Ok(caller)) => Response::new(Body::from(caller.user.name.clone())),
//!         _ => text(StatusCode::NOT_FOUND, "no such path").map(Body::from),
//!     }
//! }
//!
//! fn text(status: StatusCode, message: &str) -> Response<Bytes> {
//!     let mut response = Response::new(Bytes::from(message.to_owned()));
//!     *response.status_mut() = status;
//!     response
//! }
//!
//! let mount = Mount::new("/hello/v1", hello)
//!     .public(Method::GET, "/openapi")
//!     .failures(|failure: &Failure<'_>| text(failure.status, failure.message));
//! assert_eq!(mount.path_below("/hello/v1/me"), Some("/me"));
//! ```
//!
//! [`ActingClient`] is a tower service, so `kube::Client::new(caller.client, "default")` is a Kubernetes client of the caller.

mod acting;
mod body;
mod call;
mod failure;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use http::{Method, Response};

pub use acting::{ActingClient, Backend, RequestBody, RequestEnded};
pub use body::Body;
pub use call::{Call, Caller, Unauthenticated, User};
pub use failure::Failure;

/// An error of any kind.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Handler = dyn Fn(Call) -> BoxFuture<'static, Response<Body>> + Send + Sync;
type FailureRenderer = dyn Fn(&Failure<'_>) -> Response<Bytes> + Send + Sync;

/// A path prefix that a product serves. Cheap to clone.
#[derive(Clone)]
pub struct Mount {
    prefix: String,
    public: Vec<(Method, String)>,
    handler: Arc<Handler>,
    renderer: Option<Arc<FailureRenderer>>,
}

impl Mount {
    /// Serves every path below `prefix`, such as `/api/hyperfleet/v1`, and the prefix itself.
    ///
    /// The server refuses a prefix that collides with its own paths or with another mount when it is built. Of nested prefixes the
    /// longest one serves a path.
    pub fn new<F, R>(prefix: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Call) -> R + Send + Sync + 'static,
        R: Future<Output = Response<Body>> + Send + 'static,
    {
        let handler: Arc<Handler> = Arc::new(move |call| handler(call).boxed());
        Self { prefix: prefix.into(), public: Vec::new(), handler, renderer: None }
    }

    /// Serves this method of exactly this path, below the prefix, without authorization and to callers without credentials. All
    /// other paths need the caller's right to their text and method (`nonResourceURLs`).
    #[must_use]
    pub fn public(mut self, method: Method, path: impl Into<String>) -> Self {
        self.public.push((method, path.into()));
        self
    }

    /// Renders failures of the server in the product's own form. Without it they are `Status` objects.
    #[must_use]
    pub fn failures(
        mut self,
        render: impl Fn(&Failure<'_>) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.renderer = Some(Arc::new(render));
        self
    }

    /// The prefix.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Methods and whole paths that are public.
    pub fn public_paths(&self) -> impl Iterator<Item = (&Method, String)> {
        self.public.iter().map(|(method, path)| (method, format!("{}{path}", self.prefix)))
    }

    /// The part of a path behind the prefix: empty, or text that begins with a slash. `None` where the path is not below the
    /// prefix: prefixes end where segments end.
    #[must_use]
    pub fn path_below<'a>(&self, path: &'a str) -> Option<&'a str> {
        let rest = path.strip_prefix(self.prefix.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    }

    /// Whether this method of this whole path is public, by the text as it was sent.
    #[must_use]
    pub fn is_public(&self, method: &Method, path: &str) -> bool {
        let Some(below) = self.path_below(path) else { return false };
        self.public.iter().any(|(open, path)| open == method && path == below)
    }

    /// Runs the handler.
    pub fn handle(&self, call: Call) -> BoxFuture<'static, Response<Body>> {
        (self.handler)(call)
    }

    /// The response to a failure in the product's own form; `None` where it has none.
    #[must_use]
    pub fn render(&self, failure: &Failure<'_>) -> Option<Response<Bytes>> {
        self.renderer.as_ref().map(|render| render(failure))
    }
}

impl fmt::Debug for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mount").field("prefix", &self.prefix).field("public", &self.public).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn empty(_: Call) -> Response<Body> {
        Response::new(Body::empty())
    }

    #[test]
    fn a_prefix_ends_where_a_segment_ends() {
        let mount = Mount::new("/api/v1/resources", empty);
        for (path, below) in [
            ("/api/v1/resources", Some("")),
            ("/api/v1/resources/", Some("/")),
            ("/api/v1/resources/a/b", Some("/a/b")),
            ("/api/v1/resourcesx", None),
            ("/api/v1/resource", None),
            ("//api/v1/resources", None),
            ("/x/api/v1/resources", None),
        ] {
            assert_eq!(mount.path_below(path), below, "{path}");
        }
    }

    #[test]
    fn a_public_path_is_one_text_and_one_method() {
        let mount = Mount::new("/m", empty).public(Method::GET, "/openapi");
        assert!(mount.is_public(&Method::GET, "/m/openapi"));
        for (method, path) in [
            (Method::POST, "/m/openapi"),
            (Method::HEAD, "/m/openapi"),
            (Method::GET, "/m/openapi/"),
            (Method::GET, "/m/openapi/x"),
            (Method::GET, "/m/%6fpenapi"),
            (Method::GET, "/m//openapi"),
            (Method::GET, "/openapi"),
        ] {
            assert!(!mount.is_public(&method, path), "{method} {path}");
        }
        let paths: Vec<_> = mount.public_paths().collect();
        assert_eq!(paths, [(&Method::GET, "/m/openapi".to_owned())]);
    }
}
