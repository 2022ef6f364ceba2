//! Bodies of answers: a few bytes, or a stream that is written while it is read from the store.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http_body::{Frame, SizeHint};
use tokio::time::Instant;

use crate::gate::Slot;

/// The stream broke: the client sees the connection end early, which it takes as an error.
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

/// The body of an answer.
pub enum Body {
    /// All of it at once.
    Full(Bytes),
    /// Piece by piece.
    Chunks(Chunks),
    /// Either of them, with a slot that is taken until it has gone.
    Held(Box<Held>),
}

/// A body and the slot that it takes.
pub struct Held {
    body: Body,
    _slot: Slot,
}

/// In the extensions of a response: when its body ends by itself, whether or not somebody reads it until then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends(pub Instant);

impl Body {
    /// A body that is written as the stream yields.
    pub fn stream(chunks: impl Stream<Item = Result<Bytes, Aborted>> + Send + 'static) -> Self {
        Self::Chunks(Box::pin(chunks))
    }

    /// The same body, which keeps the slot of its request until it has gone.
    pub(crate) fn holding(self, slot: Slot) -> Self {
        Self::Held(Box::new(Held { body: self, _slot: slot }))
    }

    /// Whether all of it is there already.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Self::Full(_) => true,
            Self::Chunks(_) => false,
            Self::Held(held) => held.body.is_whole(),
        }
    }

    /// No bytes at all.
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
        match self.get_mut() {
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Chunks(chunks) => {
                chunks.as_mut().poll_next(context).map(|next| next.map(|chunk| chunk.map(Frame::data)))
            }
            Self::Held(held) => Pin::new(&mut held.body).poll_frame(context),
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
