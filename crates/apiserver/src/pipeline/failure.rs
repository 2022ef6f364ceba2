//! Error responses.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use model::error::Error;
use mount::{Failure, Mount, Unauthenticated};

use crate::body::Body;
use crate::render::{encode, respond};
use crate::request::negotiate::{self, Form, JSON, Offer};

/// Renders an error in the format of its mount, else as a `Status` in the negotiated encoding.
pub(super) fn failure(
    error: &Error,
    accept: Option<HeaderValue>,
    form: Option<OwnForm<'_>>,
) -> Response<Body> {
    if let Some(response) = form.and_then(|form| form.render(error)) {
        return response;
    }
    if let Error::NoSuchPage = error {
        return no_such_page();
    }
    let headers: HeaderMap = accept.into_iter().map(|accept| (ACCEPT, accept)).collect();
    // Errors have no table or metadata representation, so these clients get JSON.
    let form = negotiate::accepted(&headers, Offer::WHOLE, false, false);
    let form = form.unwrap_or(Form::STORED);
    let status = error.status();
    let (media_type, body) = match encode(form, &status) {
        Ok(body) => (form.encoding.media_type(), body),
        Err(_) => (JSON, Bytes::from(status.to_string())),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status_of(error);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Some(seconds) = error.retry_after_seconds() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The error format of a mount.
pub(super) struct OwnForm<'a> {
    pub mount: &'a Mount,
    pub path: &'a str,
    pub unauthenticated: Option<Unauthenticated>,
}

impl OwnForm<'_> {
    /// The product's response; `None` if it has no renderer, or the renderer panics.
    fn render(&self, error: &Error) -> Option<Response<Body>> {
        let (message, retry_after) = (error.to_string(), error.retry_after_seconds());
        let failure = Failure {
            status: status_of(error),
            reason: error.reason(),
            message: &message,
            path: self.path,
            unauthenticated: self.unauthenticated,
            retry_after,
        };
        let rendered = catch_unwind(AssertUnwindSafe(|| self.mount.render(&failure)));
        let mut response = rendered.unwrap_or_else(|panic| {
            let (mount, panic) = (self.mount.prefix(), tasks::panic_text(&*panic));
            tracing::error!(mount, panic, "mount panicked while rendering a failure; sending a Status");
            None
        })?;
        if let Some(seconds) = retry_after {
            response.headers_mut().entry(RETRY_AFTER).or_insert_with(|| HeaderValue::from(seconds));
        }
        Some(response.map(Body::from))
    }
}

fn status_of(error: &Error) -> StatusCode {
    StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn no_such_page() -> Response<Body> {
    let mut response = respond("text/plain; charset=utf-8", "404 page not found\n");
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
