//! Bodies of responses: all bytes at once, or a stream.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::{BoxStream, Stream, StreamExt};
use http_body::{Frame, SizeHint};

use crate::BoxError;

/// The body of a response.
pub enum Body {
    /// All of it at once.
    Full(Bytes),
    /// Piece by piece, as long as the product likes: no timeout ends it, the stop of the server does. An error aborts it.
    Stream(BoxStream<'static, Result<Bytes, BoxError>>),
}

impl Body {
    /// No bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self::Full(Bytes::new())
    }

    /// A body that is sent as the stream yields: server-sent events, or a document of any length.
    pub fn stream(pieces: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static) -> Self {
        Self::Stream(pieces.boxed())
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self::Full(bytes.into())
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(bytes) => write!(f, "Full({} bytes)", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream(pieces) => {
                pieces.poll_next_unpin(context).map(|next| next.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    #[test]
    fn both_kinds_of_bodies_are_read_to_their_end() {
        let pieces = ["a", "b"].map(|piece| Ok(Bytes::from(piece)));
        let stream = Body::stream(futures::stream::iter(pieces));
        for (body, expected) in [(Body::empty(), ""), (Body::from("text"), "text"), (stream, "ab")] {
            let read = body.collect().now_or_never().unwrap().unwrap();
            assert_eq!(read.to_bytes(), expected);
        }
    }
}
