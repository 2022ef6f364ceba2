//! Limits on everything that a client can send, and the reading of bodies within them.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use model::error::Error;

/// How many times its limit is read of a body in vain.
const IN_VAIN: usize = 4;

/// How much a client may send, and how much may go on at once.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request's body. Kubernetes has 3 MiB.
    pub body_bytes: usize,
    /// Bytes of a request's path and query.
    pub url_bytes: usize,
    /// Bytes of a request's headers.
    pub header_bytes: usize,
    /// Requests at once that only read. Watches do not count.
    pub reads_in_flight: usize,
    /// Requests at once that write.
    pub writes_in_flight: usize,
    /// Open connections.
    pub connections: usize,
    /// Streams at once in one HTTP/2 connection.
    pub streams_per_connection: u32,
    /// How long a request may take, from its head to the head of its answer. A client may ask for less.
    pub request_timeout: Duration,
    /// How long a watch lasts for which the client names no time: this, and up to as much again, so that not all end at once.
    pub watch_time: Duration,
    /// With which chance a request is the last of its HTTP/2 connection, so that clients spread over servers.
    pub goaway_chance: f64,
    /// Whether who comes while the server stops is told to come back. Else there is no connection to be had.
    pub sends_late_requests_away: bool,
    /// How long the head of a request may take to arrive, and the TLS handshake.
    pub head_timeout: Duration,
    /// How long a connection without a request stays open.
    pub idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 3 << 20,
            url_bytes: 16 << 10,
            header_bytes: 64 << 10,
            reads_in_flight: 400,
            writes_in_flight: 200,
            connections: 10_000,
            streams_per_connection: 250,
            request_timeout: Duration::from_secs(60),
            watch_time: Duration::from_secs(1800),
            goaway_chance: 0.0,
            sends_late_requests_away: false,
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(180),
        }
    }
}

/// Counts what is in flight. A slot is given back when its guard goes away.
#[derive(Debug, Default)]
pub struct Gate {
    reads: Arc<AtomicUsize>,
    writes: Arc<AtomicUsize>,
}

/// A request that is in flight.
#[derive(Debug)]
pub struct Slot(Arc<AtomicUsize>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Gate {
    /// Takes a slot, or says to come back later.
    pub fn enter(&self, mutating: bool, limits: &Limits) -> Result<Slot, Error> {
        let (count, limit) = if mutating {
            (&self.writes, limits.writes_in_flight)
        } else {
            (&self.reads, limits.reads_in_flight)
        };
        let slot = count.fetch_add(1, Ordering::Relaxed);
        let guard = Slot(count.clone());
        if slot >= limit {
            return Err(Error::TooManyRequests {
                message: "Too many requests, please try again later.".to_owned(),
                retry_after_seconds: 1,
            });
        }
        Ok(guard)
    }
}

/// A random number from 0 up to 1.
pub fn dice() -> f64 {
    // As many bits as the number has room for.
    let bits = uuid::Uuid::new_v4().as_u128() as u64 >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

/// Reads a whole body, within its limit of size.
pub async fn read_body<B>(body: B, limits: &Limits) -> Result<Bytes, Error>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let mut fits = body.size_hint().lower() <= limits.body_bytes as u64;
    let mut body = std::pin::pin!(body);
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while fits && let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Error::BadRequest {
            message: format!("the body of the request could not be read: {error}"),
        })?;
        let Ok(data) = frame.into_data() else { continue };
        fits = first.len() + all.len() + data.len() <= limits.body_bytes;
        // Most bodies come in one piece, which then needs no copy.
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

/// The refusal of a body, once its rest was read, unless that is far too much as well: a sender who cannot send on hears no answer.
async fn refuse<B>(mut body: Pin<&mut B>, limits: &Limits) -> Error
where
    B: Body<Data = Bytes>,
{
    let mut patience = limits.body_bytes.saturating_mul(IN_VAIN);
    if body.size_hint().lower() <= patience as u64 {
        while let Some(Ok(frame)) = body.frame().await {
            let size = frame.data_ref().map_or(0, Bytes::len);
            if size > patience {
                break;
            }
            patience -= size;
        }
    }
    Error::TooLarge { limit: limits.body_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};

    #[test]
    fn the_gate_counts_reads_and_writes_apart() {
        let limits = Limits { reads_in_flight: 1, writes_in_flight: 1, ..Limits::default() };
        let gate = Gate::default();
        let read = gate.enter(false, &limits).unwrap();
        let _write = gate.enter(true, &limits).unwrap();
        assert!(matches!(gate.enter(false, &limits), Err(Error::TooManyRequests { .. })));
        drop(read);
        assert!(gate.enter(false, &limits).is_ok());
    }

    #[tokio::test]
    async fn a_body_past_the_limit_is_refused() {
        let limits = Limits { body_bytes: 4, ..Limits::default() };
        assert_eq!(read_body(Full::new(Bytes::from("1234")), &limits).await.unwrap(), "1234");
        let error = read_body(Full::new(Bytes::from("12345")), &limits).await.unwrap_err();
        assert_eq!(error, Error::TooLarge { limit: 4 });
    }

    #[tokio::test]
    async fn who_sends_a_little_too_much_may_end_and_hear_that() {
        let limits = Limits { body_bytes: 4, ..Limits::default() };
        for (pieces, left) in [(3, 0), (8, 1)] {
            let mut rest = (0..pieces).map(|_| Ok::<_, String>(Frame::data(Bytes::from("1234"))));
            let body = StreamBody::new(futures::stream::iter(rest.by_ref()));
            let error = read_body(body, &limits).await.unwrap_err();
            assert_eq!(error, Error::TooLarge { limit: 4 });
            assert_eq!(rest.count(), left);
        }
    }
}
