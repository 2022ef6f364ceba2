//! Frames: a length, the number of the call, and the content.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::wire::Wire;

/// Number of a call: an answer has the number of its call.
pub type Call = u64;

/// The number of a frame that answers no call and rings the bell.
pub const BELL: Call = 0;

/// Length and call number.
const HEAD: usize = 4 + 8;

/// Far more than a batch or a page takes; a peer that announces more does not speak this protocol.
const MAX_BYTES: usize = 256 << 20;

/// Least growth of the buffer for a frame that does not fit.
const GROWTH: usize = 64 << 10;

/// A frame as bytes.
pub fn frame(call: Call, content: &impl Wire) -> Vec<u8> {
    let mut out = vec![0; HEAD];
    content.put(&mut out);
    // A frame that does not fit is refused by the reader; batches are bounded far below.
    let length = u32::try_from(out.len() - HEAD).unwrap_or(u32::MAX);
    out[..4].copy_from_slice(&length.to_le_bytes());
    out[4..HEAD].copy_from_slice(&call.to_le_bytes());
    out
}

/// Takes frames off a connection.
pub struct Frames<R> {
    stream: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    /// For a connection from which nothing was read.
    pub fn new(stream: R) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    /// The next frame; `None` at an end between two frames. Cancel safe.
    pub async fn next(&mut self) -> io::Result<Option<(Call, Bytes)>> {
        loop {
            if let Some(frame) = self.whole()? {
                return Ok(Some(frame));
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return match self.buffer.is_empty() {
                    true => Ok(None),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }

    /// A frame that has arrived as a whole.
    fn whole(&mut self) -> io::Result<Option<(Call, Bytes)>> {
        let Some((head, _)) = self.buffer.split_first_chunk::<HEAD>() else { return Ok(None) };
        let mut head = &head[..];
        let (length, call) = (head.get_u32_le() as usize, head.get_u64_le());
        if length > MAX_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too large"));
        }
        let arrived = self.buffer.len();
        if arrived < HEAD + length {
            // A length is only announced: reserve no more memory than has arrived already, or one step.
            self.buffer.reserve((HEAD + length - arrived).min(arrived.max(GROWTH)));
            return Ok(None);
        }
        self.buffer.advance(HEAD);
        Ok(Some((call, self.buffer.split_to(length).freeze())))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn memory_grows_with_received_bytes_and_not_with_the_announced_length() {
        let (mut ours, theirs) = tokio::io::duplex(1 << 20);
        let mut frames = Frames::new(theirs);
        let length = u32::try_from(MAX_BYTES).unwrap();
        ours.write_all(&length.to_le_bytes()).await.unwrap();
        ours.write_all(&7_u64.to_le_bytes()).await.unwrap();
        for arrived in [0_usize, 1, 100 << 10, 300 << 10] {
            let before = frames.buffer.len();
            ours.write_all(&vec![1; (HEAD + arrived).saturating_sub(before.max(HEAD))]).await.unwrap();
            while frames.buffer.len() < HEAD + arrived {
                assert!(futures::poll!(Box::pin(frames.next())).is_pending());
            }
            assert!(futures::poll!(Box::pin(frames.next())).is_pending());
            assert!(frames.buffer.capacity() <= 4 * (arrived + GROWTH), "{}", frames.buffer.capacity());
        }
    }

    #[tokio::test]
    async fn a_frame_of_any_size_comes_as_it_was_sent() {
        for size in [0_usize, 1, GROWTH - HEAD, GROWTH, 5 * GROWTH + 3] {
            let sent = frame(9, &Bytes::from(vec![7; size]));
            let (mut ours, theirs) = tokio::io::duplex(1000);
            let mut frames = Frames::new(theirs);
            let (written, received) = tokio::join!(ours.write_all(&sent), frames.next());
            written.unwrap();
            let (call, content) = received.unwrap().unwrap();
            assert_eq!((call, &content[..]), (9, &sent[HEAD..]));
        }
    }
}
