//! Response bodies: bytes, or a stream that is written while the store is read.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http_body::{Frame, SizeHint};
use tokio::time::Instant;

use crate::gate::Slot;

/// The stream broke. The connection ends early, which clients treat as an error.
#[derive(Clone, Copy, Debug)]
pub struct Aborted;

impl std::fmt::Display for Aborted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer ended early")
    }
}

impl std::error::Error for Aborted {}

impl From<Infallible> for Aborted {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes, Aborted>> + Send>>;

/// A response body.
pub enum Body {
    /// All bytes at once.
    Full(Bytes),
    /// A stream of chunks.
    Chunks(Chunks),
    /// Either of them, with the slot of its request.
    Held(Box<Held>),
}

/// A body that holds a slot until it is sent.
pub struct Held {
    body: Body,
    _slot: Slot,
}

/// Response extension: the time at which the body ends by itself, read or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends(pub Instant);

impl Body {
    /// A streamed body.
    pub fn stream(chunks: impl Stream<Item = Result<Bytes, Aborted>> + Send + 'static) -> Self {
        Self::Chunks(Box::pin(chunks))
    }

    /// Holds the slot of the request until the body is sent.
    pub(crate) fn holding(self, slot: Slot) -> Self {
        Self::Held(Box::new(Held { body: self, _slot: slot }))
    }

    /// Whether all bytes are available.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Self::Full(_) => true,
            Self::Chunks(_) => false,
            Self::Held(held) => held.body.is_whole(),
        }
    }

    /// The next chunk. A panic of the stream propagates to the caller.
    pub(crate) fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Aborted>>> {
        match self {
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(Ok(std::mem::take(bytes)))),
            Self::Chunks(chunks) => chunks.as_mut().poll_next(context),
            Self::Held(held) => held.body.poll_chunk(context),
        }
    }

    /// An empty body.
    pub fn empty() -> Self {
        Self::Full(Bytes::new())
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self::Full(bytes.into())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        let body = self.get_mut();
        match catch_unwind(AssertUnwindSafe(|| body.poll_chunk(context))) {
            Ok(polled) => polled.map(|next| next.map(|chunk| chunk.map(Frame::data))),
            Err(panic) => {
                let panic = tasks::panic_text(&*panic);
                tracing::error!(panic, "panic while writing a response body; ending the stream");
                *body = Self::empty();
                Poll::Ready(Some(Err(Aborted)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_empty(),
            Self::Chunks(_) => false,
            Self::Held(held) => held.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Chunks(_) => SizeHint::default(),
            Self::Held(held) => held.body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_stream_that_panics_ends_as_aborted() {
        let chunks = futures::stream::iter(0..2).map(|number| {
            assert!(number == 0, "a defect");
            Ok(Bytes::from_static(b"first"))
        });
        let mut body = Body::stream(chunks);
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "first");
        assert!(body.frame().await.unwrap().is_err());
        assert!(body.frame().await.is_none());
    }
}
