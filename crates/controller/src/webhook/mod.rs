//! An admission webhook server: mutating, validating and conversion handlers on HTTPS.
//!
//! ```no_run
//! use controller::webhook::certificates::{CaTarget, ManagedCertificate};
//! use controller::webhook::{AdmissionRequest, Validate, Verdict, WebhookServer};
//! use serde_json::Value;
//!
//! struct NameTheShip;
//!
//! impl Validate for NameTheShip {
//!     type Object = Value;
//!
//!     async fn validate(&self, request: &AdmissionRequest<Value>) -> Verdict {
//!         match request.object.as_ref().and_then(|ship| ship["spec"]["title"].as_str()) {
//!             Some(_) => Verdict::allow(),
//!             None => Verdict::invalid("spec.title: a ship needs a title"),
//!         }
//!     }
//! }
//!
//! # async fn start(client: kube::Client, shutdown: process::Shutdown) -> Result<(), Box<dyn std::error::Error>> {
//! let certificate = ManagedCertificate::new(client, "sea", "harbour-webhook", ["harbour.sea.svc"])
//!     .inject_into(CaTarget::validating("harbour"));
//! let listener = tokio::net::TcpListener::bind("0.0.0.0:9443").await?;
//! WebhookServer::new().validating("/validate-ship", NameTheShip).run(listener, certificate, shutdown).await?;
//! # Ok(()) }
//! ```
//!
//! [`certificates`] has the two sources of its certificate: one that the server creates, shares between replicas and rotates, and one that
//! cert-manager keeps in a folder.
//!
//! A request that is no AdmissionReview or ConversionReview gets 400, one that is too large 413, one beyond the limit of concurrent requests
//! 503; a handler that is too slow fails its request with 504, and one that panics with 500. The API server applies the `failurePolicy` then.

mod admission;
pub mod certificates;
mod conversion;
mod patch;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use process::Shutdown;
use process::http_server::{self, Handler, Limits, text};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::timeout;

pub use self::admission::{AdmissionRequest, Mutate, Operation, UserInfo, Validate, Verdict};
pub use self::conversion::Convert;
pub use self::patch::{PatchOperation, diff};

use self::admission::Admit;
use self::certificates::{CertificateError, CertificateSource};
use self::conversion::{ConversionRequest, ConvertAll};

/// The longest AdmissionReview: an object and its predecessor of 3 MiB each, and the rest of the request.
const REVIEW_BYTES_MAX: usize = 7 << 20;
/// The longest ConversionReview: the API server sends a page of a list at once.
const CONVERSION_BYTES_MAX: usize = 64 << 20;
/// The time that a handler has if the API server names none.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(10);

/// A server of webhooks, by their paths.
#[derive(Default)]
pub struct WebhookServer {
    hooks: BTreeMap<String, Hook>,
    limits: Option<Limits>,
}

enum Hook {
    Admission(Admit),
    Conversion(ConvertAll),
}

impl WebhookServer {
    /// A server without webhooks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a validating webhook.
    #[must_use]
    pub fn validating(self, path: impl Into<String>, handler: impl Validate) -> Self {
        self.hook(path, Hook::Admission(admission::validating(handler)))
    }

    /// Adds a mutating webhook.
    #[must_use]
    pub fn mutating(self, path: impl Into<String>, handler: impl Mutate) -> Self {
        self.hook(path, Hook::Admission(admission::mutating(handler)))
    }

    /// Adds the conversion webhook of one or more CRDs.
    #[must_use]
    pub fn converting(self, path: impl Into<String>, handler: impl Convert) -> Self {
        self.hook(path, Hook::Conversion(conversion::converting(handler)))
    }

    /// Sets other limits on connections, requests, memory and time.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Serves until a stop is requested, and looks after the certificate meanwhile. Connections are accepted from the moment at which there
    /// is a certificate.
    ///
    /// # Errors
    /// When the certificate of a folder cannot be used at the start; when an informer of the certificate panicked.
    pub async fn run(
        self,
        listener: TcpListener,
        certificate: impl Into<CertificateSource>,
        shutdown: Shutdown,
    ) -> Result<(), CertificateError> {
        let source = certificate.into();
        let served = source.served();
        let server = async {
            tokio::select! {
                config = served.tls_config() => {
                    let limits = self.limits.unwrap_or_default();
                    let handler = Hooks(self.hooks);
                    http_server::serve(listener, Some(config), limits, handler, shutdown.clone()).await;
                }
                () = shutdown.requested() => {}
            }
        };
        let server = async {
            server.await;
            Ok(())
        };
        tokio::try_join!(server, source.keep(shutdown.clone())).map(drop)
    }

    fn hook(mut self, path: impl Into<String>, hook: Hook) -> Self {
        self.hooks.insert(path.into(), hook);
        self
    }
}

struct Hooks(BTreeMap<String, Hook>);

impl Handler for Hooks {
    fn body_bytes_max(&self, path: &str) -> usize {
        match self.0.get(path) {
            Some(Hook::Admission(_)) => REVIEW_BYTES_MAX,
            Some(Hook::Conversion(_)) => CONVERSION_BYTES_MAX,
            None => 0,
        }
    }

    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let Some(hook) = self.0.get(request.uri().path()) else {
            return text(StatusCode::NOT_FOUND, "there is no webhook of this path\n");
        };
        if request.method() != Method::POST {
            let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "a webhook answers POST only\n");
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return refused;
        }
        let media_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if media_type.and_then(|value| value.split(';').next()).map(str::trim) != Some("application/json") {
            return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a review is application/json\n");
        }
        let limit = time_limit(request.uri().query().unwrap_or_default());
        match timeout(limit, hook.answer(request.body())).await {
            Ok(Ok(review)) => review_response(&review),
            Ok(Err(reason)) => text(StatusCode::BAD_REQUEST, format!("{reason}\n")),
            Err(_) => text(StatusCode::GATEWAY_TIMEOUT, "the handler took too long\n"),
        }
    }
}

fn review_response(review: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(review.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The time that the API server waits, which it says as `timeout=10s`.
fn time_limit(query: &str) -> Duration {
    let text = query.split('&').find_map(|pair| pair.strip_prefix("timeout=")).unwrap_or_default();
    let seconds = text.strip_suffix('s').and_then(|seconds| seconds.parse::<u64>().ok());
    seconds.map_or(HANDLER_TIMEOUT, Duration::from_secs)
}

/// A review as it came, of either kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<R> {
    api_version: String,
    kind: String,
    request: R,
}

const ADMISSION: ReviewKind = ReviewKind { api_version: "admission.k8s.io/v1", kind: "AdmissionReview" };
const CONVERSION: ReviewKind =
    ReviewKind { api_version: "apiextensions.k8s.io/v1", kind: "ConversionReview" };

struct ReviewKind {
    api_version: &'static str,
    kind: &'static str,
}

impl ReviewKind {
    fn request<R: for<'de> Deserialize<'de>>(&self, body: &[u8]) -> Result<R, String> {
        let Self { api_version, kind } = self;
        let review: Review<R> =
            serde_json::from_slice(body).map_err(|error| format!("the body is no {kind}: {error}"))?;
        if review.api_version != *api_version || review.kind != *kind {
            return Err(format!(
                "the body is {} of {}, not {kind} of {api_version}",
                review.kind, review.api_version
            ));
        }
        Ok(review.request)
    }

    fn review(&self, response: Value) -> Value {
        json!({"apiVersion": self.api_version, "kind": self.kind, "response": response})
    }
}

impl Hook {
    /// The review that answers another one, or the reason why the body is none.
    async fn answer(&self, body: &[u8]) -> Result<Value, String> {
        match self {
            Self::Admission(admit) => {
                let request: AdmissionRequest<Value> = ADMISSION.request(body)?;
                Ok(ADMISSION.review(admit(request).await))
            }
            Self::Conversion(convert) => {
                let request: ConversionRequest = CONVERSION.request(body)?;
                Ok(CONVERSION.review(convert(request).await))
            }
        }
    }
}
