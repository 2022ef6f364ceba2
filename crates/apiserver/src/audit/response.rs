//! The response of an audited request: its object, and the stream that ends after its last event.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures::Stream;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use kinds::{protobuf, schema};
use model::json;
use serde_json::Value;

use super::Trail;
use super::log::Written;
use crate::body::{Aborted, Body};
use crate::request::negotiate::{PROTOBUF, YAML};

/// The object in a response body of any encoding; `None` if the body has none.
pub(super) fn response_object(headers: &HeaderMap, body: &[u8]) -> Option<Value> {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let value = match media_type.split(';').next().unwrap_or_default() {
        YAML => json::parse_yaml(body).ok()?.value,
        PROTOBUF => protobuf::decode(schema::builtin(), body, protobuf::TypeMeta::UNKNOWN).ok()?.value,
        _ => serde_json::from_slice(body).ok()?,
    };
    value.is_object().then_some(value)
}

/// A streamed body that completes the audit trail of its request.
pub(super) struct AuditedStream {
    chunks: Body,
    /// The bytes so far, if the level includes the response object.
    seen: Option<(HeaderMap, BytesMut)>,
    trail: Trail,
    /// Set after the last chunk: the body ends when the last event is written.
    ending: Option<Option<Written>>,
}

impl AuditedStream {
    pub fn new(chunks: Body, seen: Option<HeaderMap>, trail: Trail) -> Self {
        Self { chunks, seen: seen.map(|headers| (headers, BytesMut::new())), trail, ending: None }
    }
}

impl AuditedStream {
    /// Records the response object, once.
    fn note(&mut self) {
        let response_object = self.seen.take().and_then(|(headers, seen)| response_object(&headers, &seen));
        self.trail.note_response(response_object);
    }
}

impl Stream for AuditedStream {
    type Item = Result<Bytes, Aborted>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let body = self.get_mut();
        if body.ending.is_none() {
            let polled = catch_unwind(AssertUnwindSafe(|| body.chunks.poll_chunk(context)));
            let polled = polled.unwrap_or_else(|panic| {
                body.trail.panicked();
                resume_unwind(panic)
            });
            if let Some(chunk) = ready!(polled) {
                if let (Some((_, seen)), Ok(chunk)) = (&mut body.seen, &chunk) {
                    seen.extend_from_slice(chunk);
                }
                return Poll::Ready(Some(chunk));
            }
            body.note();
            body.trail.complete();
            body.ending = Some(body.trail.take_last());
        }
        if let Some(Some(written)) = &mut body.ending {
            // The result does not matter: the write is over.
            let _ = ready!(Pin::new(written).poll(context));
            body.ending = Some(None);
        }
        Poll::Ready(None)
    }
}

impl Drop for AuditedStream {
    fn drop(&mut self) {
        self.note();
    }
}
