//! Limits on everything that a client can send, and the reading of bodies within them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use model::error::Error;

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
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
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
            body_timeout: Duration::from_secs(30),
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

/// Reads a whole body, within its limits of size and time.
pub async fn read_body<B>(body: B, limits: &Limits) -> Result<Bytes, Error>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let too_large = || Error::TooLarge { limit: limits.body_bytes };
    if body.size_hint().lower() > limits.body_bytes as u64 {
        return Err(too_large());
    }
    let read = async {
        let mut body = std::pin::pin!(body);
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Error::BadRequest {
                message: format!("the body of the request could not be read: {error}"),
            })?;
            let Ok(data) = frame.into_data() else { continue };
            if first.len() + all.len() + data.len() > limits.body_bytes {
                return Err(too_large());
            }
            // Most bodies come in one piece, which then needs no copy.
            if first.is_empty() && all.is_empty() {
                first = data;
            } else {
                all.extend_from_slice(&std::mem::take(&mut first));
                all.extend_from_slice(&data);
            }
        }
        Ok(if all.is_empty() { first } else { all.freeze() })
    };
    match tokio::time::timeout(limits.body_timeout, read).await {
        Ok(result) => result,
        Err(_) => Err(Error::BadRequest {
            message: format!("the body of the request did not arrive within {:?}", limits.body_timeout),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;

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

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_arrives_is_given_up() {
        let never = http_body_util::StreamBody::new(futures::stream::pending::<
            Result<http_body::Frame<Bytes>, std::convert::Infallible>,
        >());
        let error = read_body(never, &Limits::default()).await.unwrap_err();
        assert!(matches!(error, Error::BadRequest { .. }));
    }
}
