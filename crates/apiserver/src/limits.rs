//! Limits on requests, responses and connections.

use std::time::Duration;

/// The limits of a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request body. Kubernetes has 3 MiB.
    pub body_bytes: usize,
    /// Bytes of path and query.
    pub url_bytes: usize,
    /// Bytes of request headers.
    pub header_bytes: usize,
    /// Bytes of all request bodies in memory. A tenth is reserved for leader election and node Leases, and one user gets at
    /// most half of the rest. Clients in this process and `system:masters` are exempt.
    pub bodies_bytes: usize,
    /// The time for a request body, beside that of the received bytes at [`Limits::body_rate`].
    pub body_timeout: Duration,
    /// Bytes per second: the least rate of a body that takes longer than [`Limits::body_timeout`].
    pub body_rate: usize,
    /// Concurrent reads, divided as [`Limits::bodies_bytes`]. Watches do not count.
    pub reads_in_flight: usize,
    /// Concurrent writes, divided in the same way.
    pub writes_in_flight: usize,
    /// Concurrent watches, a tenth of them reserved in the same way.
    pub watches: usize,
    /// Watches of one user, except components of the control plane and nodes.
    pub watches_per_user: usize,
    /// Open connections. Beyond that, the longest idle unauthenticated one is closed.
    pub connections: usize,
    /// Concurrent streams of one HTTP/2 connection.
    pub streams_per_connection: u32,
    /// The time from the request head to the response head. A client may request less.
    pub request_timeout: Duration,
    /// The time of a watch without `timeoutSeconds`: this, and up to as much again, so that watches do not end all at once.
    pub watch_time: Duration,
    /// The probability that a request is the last of its HTTP/2 connection, so that clients spread over servers.
    pub goaway_chance: f64,
    /// Whether requests during shutdown get a 503 with Retry-After. If not, no connection is accepted.
    pub sends_late_requests_away: bool,
    /// The time for the TLS handshake and the first request head. Later heads have [`Limits::idle_timeout`].
    pub head_timeout: Duration,
    /// The time for each 64 KiB of a response with unsent bytes; a slower response is aborted.
    pub stall_timeout: Duration,
    /// Unsent bytes of all responses. Beyond that, [`Limits::stall_timeout`] is divided by twelve.
    pub response_bytes: usize,
    /// The time that an idle connection stays open.
    pub idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 3 << 20,
            url_bytes: 16 << 10,
            header_bytes: 64 << 10,
            bodies_bytes: 64 << 20,
            body_timeout: Duration::from_secs(10),
            body_rate: 64 << 10,
            reads_in_flight: 400,
            writes_in_flight: 200,
            watches: 20_000,
            watches_per_user: 5_000,
            connections: 10_000,
            streams_per_connection: 250,
            request_timeout: Duration::from_secs(60),
            watch_time: Duration::from_secs(1800),
            goaway_chance: 0.0,
            sends_late_requests_away: false,
            head_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(60),
            response_bytes: 64 << 20,
            idle_timeout: Duration::from_secs(180),
        }
    }
}

/// A random number in [0, 1).
pub fn random_fraction() -> f64 {
    // The bits of an f64 mantissa.
    let bits = uuid::Uuid::new_v4().as_u128() as u64 >> 11;
    bits as f64 / (1_u64 << 53) as f64
}
