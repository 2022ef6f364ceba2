//! Limits on everything that a client can send or keep waiting.

use std::time::Duration;

/// How much a client may send, and how much may go on at once.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request's body. Kubernetes has 3 MiB.
    pub body_bytes: usize,
    /// Bytes of a request's path and query.
    pub url_bytes: usize,
    /// Bytes of a request's headers.
    pub header_bytes: usize,
    /// Bytes of all request bodies in memory at once. A tenth is reserved for leader election and Leases of nodes, and one user
    /// gets at most half of the rest. Clients in this process and `system:masters` are exempt.
    pub bodies_bytes: usize,
    /// How long the body of a request may take, beside the time that what has come takes at [`Limits::body_rate`].
    pub body_timeout: Duration,
    /// Bytes per second: the least rate of a body that takes longer than [`Limits::body_timeout`].
    pub body_rate: usize,
    /// Requests at once that only read, divided as [`Limits::bodies_bytes`] is. Watches do not count.
    pub reads_in_flight: usize,
    /// Requests at once that write, divided in the same way.
    pub writes_in_flight: usize,
    /// Watches at once, of which a tenth is reserved in the same way.
    pub watches: usize,
    /// Watches of one user, unless that is a component of the control plane or a node.
    pub watches_per_user: usize,
    /// Open connections. When there are more, the longest idle one that nobody has authenticated on is closed.
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
    /// How long the TLS handshake and the head of the first request may take. Later heads have [`Limits::idle_timeout`].
    pub head_timeout: Duration,
    /// How long a response may take for 64 KiB while bytes of it are unsent; then it is aborted.
    pub stall_timeout: Duration,
    /// Unsent bytes of all responses. While there are more, the time for one without progress is a twelfth of
    /// [`Limits::stall_timeout`].
    pub response_bytes: usize,
    /// How long a connection without a request stays open.
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

/// A random number from 0 up to 1.
pub fn dice() -> f64 {
    // As many bits as the number has room for.
    let bits = uuid::Uuid::new_v4().as_u128() as u64 >> 11;
    bits as f64 / (1_u64 << 53) as f64
}
