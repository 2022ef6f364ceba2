//! Reading of request bodies, bounded in size, time and total memory.

use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use model::error::Error;
use tokio::time::{Instant, timeout, timeout_at};

use crate::gate::Room;
use crate::limits::Limits;

/// The multiple of the size limit up to which an oversized body is still read.
const DISCARDED_MULTIPLE: usize = 4;

/// Reads a whole body. Its memory is counted in `room` as chunks arrive, so a client that only announces a large body takes
/// no memory from others.
pub async fn read_body<B>(body: B, limits: &Limits, room: &mut Room<'_>) -> Result<Bytes, Error>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let mut fits = body.size_hint().lower() <= limits.body_bytes as u64;
    let mut body = std::pin::pin!(body);
    let mut begin = Instant::now();
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while fits {
        let received = first.len() + all.len();
        let next = timeout_at(begin + time_for(received, limits), body.frame());
        let Some(frame) = next.await.map_err(|_| too_slow(received))? else { break };
        let frame = frame.map_err(|error| Error::BadRequest {
            message: format!("the body of the request could not be read: {error}"),
        })?;
        let Ok(data) = frame.into_data() else { continue };
        fits = received + data.len() <= limits.body_bytes;
        if !fits {
            break;
        }
        let waited = Instant::now();
        room.grow(data.len()).await?;
        // The wait for memory does not count against the sender.
        begin += waited.elapsed();
        // Most bodies are one chunk, which needs no copy.
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
    }
    if !fits {
        return Err(refuse(body, limits).await);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// The time limit after so many received bytes: a fixed time, plus their time at the least rate.
fn time_for(received: usize, limits: &Limits) -> Duration {
    limits.body_timeout + Duration::from_secs_f64(received as f64 / limits.body_rate.max(1) as f64)
}

fn too_slow(received: usize) -> Error {
    tracing::debug!(received, "request body is below the least rate; refusing it");
    let message = "request did not complete within the allotted timeout".to_owned();
    Error::Timeout { message, retry_after_seconds: 0 }
}

/// Refuses an oversized body after reading its rest, within bounds: a client that cannot finish sending would not read the
/// response.
async fn refuse<B>(mut body: Pin<&mut B>, limits: &Limits) -> Error
where
    B: Body<Data = Bytes>,
{
    let mut patience = limits.body_bytes.saturating_mul(DISCARDED_MULTIPLE);
    let is_worth_it = body.size_hint().lower() <= patience as u64;
    let rest = async {
        while is_worth_it && let Some(Ok(frame)) = body.frame().await {
            let size = frame.data_ref().map_or(0, Bytes::len);
            if size > patience {
                break;
            }
            patience -= size;
        }
    };
    // The response is the same whether the body ended or not.
    let _ = timeout(limits.body_timeout, rest).await;
    Error::TooLarge { limit: limits.body_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{FlowDistinguisher, Gate, PriorityLevel, VerbClass};
    use futures::StreamExt;
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};

    const FLOW: FlowDistinguisher<'static> =
        FlowDistinguisher { user: "jane", level: PriorityLevel::Shared, class: VerbClass::Mutate, width: 1 };

    async fn read<B>(body: B, limits: &Limits) -> Result<Bytes, Error>
    where
        B: Body<Data = Bytes>,
        B::Error: std::fmt::Display,
    {
        let gate = Gate::new(limits);
        let mut room = gate.room(FLOW);
        read_body(body, limits, &mut room).await
    }

    /// A body of chunks of 1000 bytes, one every `pause` milliseconds.
    fn trickle(pieces: usize, pause: u64) -> impl Body<Data = Bytes, Error = String> {
        let pieces = futures::stream::iter(0..pieces).then(move |_| async move {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            Ok::<_, String>(Frame::data(Bytes::from(vec![b'x'; 1000])))
        });
        StreamBody::new(pieces)
    }

    #[tokio::test]
    async fn a_body_past_the_limit_is_refused() {
        let limits = Limits { body_bytes: 4, ..Limits::default() };
        assert_eq!(read(Full::new(Bytes::from("1234")), &limits).await.unwrap(), "1234");
        let error = read(Full::new(Bytes::from("12345")), &limits).await.unwrap_err();
        assert_eq!(error, Error::TooLarge { limit: 4 });
    }

    #[tokio::test]
    async fn a_body_slightly_over_the_limit_is_read_to_its_end_and_refused() {
        let limits = Limits { body_bytes: 4, ..Limits::default() };
        for (pieces, left) in [(3, 0), (8, 1)] {
            let mut rest = (0..pieces).map(|_| Ok::<_, String>(Frame::data(Bytes::from("1234"))));
            let body = StreamBody::new(futures::stream::iter(rest.by_ref()));
            let error = read(body, &limits).await.unwrap_err();
            assert_eq!(error, Error::TooLarge { limit: 4 });
            assert_eq!(rest.count(), left);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_be_long_but_not_slower_than_the_least_rate() {
        let limits = Limits { body_timeout: Duration::from_secs(10), body_rate: 1000, ..Limits::default() };
        let whole = read(trickle(100, 1000), &limits).await.unwrap();
        assert_eq!(whole.len(), 100_000, "at the least rate a body may take much longer than the fixed time");
        let error = read(trickle(100, 1500), &limits).await.unwrap_err();
        assert!(matches!(error, Error::Timeout { .. }), "{error}");
        let silent = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, String>>());
        let begin = Instant::now();
        assert!(matches!(read(silent, &limits).await, Err(Error::Timeout { .. })));
        assert_eq!(begin.elapsed(), Duration::from_secs(10));
    }
}
