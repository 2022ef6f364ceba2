//! Connections: shutdown, stalled responses, idle and unauthenticated connections.

use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use http_body_util::{BodyExt, Empty, Full};
use hyper_util::rt::TokioExecutor;
use mount::{Call, Mount};
use store::sqlite::Sqlite;
use store::{Metrics, Options, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;
use crate::auth::{Authorizer, AuthorizerAttributes, Decision, Identity, Mode};

/// Longer than anything takes on a busy machine; only a failing test waits for it.
const TIMEOUT: Duration = Duration::from_secs(60);
const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
const FOR_EVER: Duration = Duration::from_secs(1 << 30);

/// An authorizer that panics for one object.
struct Broken;

impl Authorizer for Broken {
    fn decide(&self, _: &Identity, attributes: AuthorizerAttributes<'_>) -> Decision {
        match attributes {
            AuthorizerAttributes::Resource { path, .. } if path.name == "panic" => panic!("asked for panic"),
            _ => Decision::NoOpinion { reason: String::new() },
        }
    }
}

/// A product with endless streams: `/events` waits after the first chunk, everything else fills every buffer.
async fn endless(call: Call) -> Response<mount::Body> {
    let piece = || Ok(Bytes::from_static(&[b'x'; 8 << 10]));
    let first = futures::stream::iter([Ok(Bytes::from("first"))]);
    Response::new(match call.path() {
        "/events" => mount::Body::stream(first.chain(futures::stream::pending())),
        _ => mount::Body::stream(futures::stream::repeat_with(piece)),
    })
}

/// A server, and the connections to it.
struct World {
    api: ApiServer,
    shutdown: Shutdown,
    room: Arc<Connections>,
    connections: JoinSet<()>,
}

impl World {
    async fn new(limits: Limits) -> Self {
        let engine = Arc::new(Sqlite::in_memory().unwrap());
        let store = Store::open(engine, Options::default(), &Metrics::unregistered()).await.unwrap();
        let shutdown = Shutdown::new();
        let broken: Arc<dyn Authorizer> = Arc::new(Broken);
        let builder = ApiServer::builder(store)
            .limits(limits)
            .authorization(vec![Mode::Own(broken), Mode::AlwaysAllow])
            .mount(Mount::new("/endless", endless))
            .shutdown(shutdown.clone());
        let (room, connections) = (Connections::new(100), JoinSet::new());
        Self { api: builder.build().await.unwrap(), shutdown, room, connections }
    }

    fn connect(&mut self, stop: Stop) -> DuplexStream {
        self.connect_as(Connection::InProcess(Identity::server()), stop)
    }

    fn connect_as(&mut self, peer: Connection, stop: Stop) -> DuplexStream {
        let (client, server) = tokio::io::duplex(64 << 10);
        let slot = self.room.enter().now_or_never().flatten().expect("there is room");
        let head_by = Instant::now() + self.api.limits.head_timeout;
        let session = Session { peer: Arc::new(peer), address: None, slot, head_by };
        self.connections.spawn(serve_connection(server, session, self.api.clone(), stop));
        client
    }

    /// An unauthenticated connection, without any exemption.
    fn connect_stranger(&mut self) -> DuplexStream {
        let stop = Stop::Ahead(self.shutdown.clone());
        self.connect_as(Connection::Bare, stop)
    }

    /// Creates ConfigMaps that fill every buffer on the way to a client.
    async fn fill(&self) {
        for i in 0..20 {
            let data = "x".repeat(100 << 10);
            let object = format!(r#"{{"metadata":{{"name":"c{i}"}},"data":{{"x":"{data}"}}}}"#);
            let request = Request::post(CONFIGMAPS).body(Full::new(Bytes::from(object))).unwrap();
            let answer = self.api.answer(&Connection::InProcess(Identity::server()), request).await;
            assert_eq!(answer.status(), 201);
        }
    }

    /// The status code of an unauthenticated read.
    async fn read_code(&self) -> u16 {
        let request = Request::get(CONFIGMAPS).body(Empty::<Bytes>::new()).unwrap();
        self.api.answer(&Connection::Bare, request).await.status().as_u16()
    }

    async fn until_a_read_gets_in(&self) {
        let reads = async {
            while self.read_code().await != 200 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(TIMEOUT, reads).await.expect("the slot is given back");
    }

    fn connect_early(&mut self) -> DuplexStream {
        self.connect(Stop::Ahead(self.shutdown.clone()))
    }

    /// Waits until the server closes all connections.
    async fn all_end(self) {
        timeout(TIMEOUT, self.connections.join_all()).await.expect("they end");
    }
}

/// Sends a request and reads until the server closes the connection.
async fn last_answer(client: &mut DuplexStream, path: &str) -> String {
    client.write_all(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(TIMEOUT, client.read_to_string(&mut answer)).await.expect("it is closed").unwrap();
    answer
}

#[tokio::test]
async fn requests_in_flight_are_answered_at_shutdown() {
    let mut world = World::new(Limits::default()).await;
    let mut client = world.connect_early();
    let body = r#"{"metadata":{"name":"late"}}"#;
    let head = format!(
        "POST /api/v1/namespaces HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes()).await.unwrap();
    while world.api.metrics.in_flight.get() == 0 {
        tokio::task::yield_now().await;
    }
    world.shutdown.request();
    client.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    world.all_end().await;
    assert!(answer.starts_with("HTTP/1.1 201 Created\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
}

#[tokio::test]
async fn connections_that_have_nothing_to_do_end_at_once_when_the_server_stops() {
    let limits = Limits { head_timeout: FOR_EVER, idle_timeout: FOR_EVER, ..Limits::default() };
    let mut world = World::new(limits).await;
    // One before its first byte, one between two requests, one with a watch.
    let _silent = world.connect_early();
    let (mut idle, mut watch) = (world.connect_early(), world.connect_early());
    let mut begun = [0; 15];
    for (client, path) in [(&mut idle, "/livez/ping"), (&mut watch, "/api/v1/pods?watch=1")] {
        client.write_all(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await.unwrap();
        client.read_exact(&mut begun).await.unwrap();
        assert_eq!(&begun, b"HTTP/1.1 200 OK");
    }
    world.shutdown.request();
    world.all_end().await;
}

#[tokio::test]
async fn a_stream_of_a_mount_ends_cleanly_when_the_server_stops() {
    let mut world = World::new(Limits { idle_timeout: FOR_EVER, ..Limits::default() }).await;
    let mut client = world.connect_stranger();
    begin(&mut client, "/endless/events").await;
    let mut sent = String::new();
    while !sent.contains("first") {
        let mut piece = [0; 64];
        let length = client.read(&mut piece).await.unwrap();
        sent.push_str(std::str::from_utf8(&piece[..length]).unwrap());
    }
    world.shutdown.request();
    timeout(TIMEOUT, client.read_to_string(&mut sent)).await.expect("it is closed").unwrap();
    assert!(sent.ends_with("5\r\nfirst\r\n0\r\n\r\n"), "the last chunk is there: {sent}");
    world.all_end().await;
}

#[tokio::test]
async fn a_handshake_that_has_not_ended_does_not_hold_up_a_stop() {
    let World { api, shutdown, room, .. } =
        World::new(Limits { head_timeout: FOR_EVER, ..Limits::default() }).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let _silent = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::server::ResolvesServerCertUsingSni::new()));
    let peers: Peers = Arc::new(|_| Connection::Bare);
    let stop = Stop::Ahead(shutdown.clone());
    let slot = room.enter().await.unwrap();
    let handshake = connection(stream, slot, TlsAcceptor::from(Arc::new(tls)), peers, api, stop);
    let request = async {
        tokio::task::yield_now().await;
        shutdown.request();
    };
    timeout(TIMEOUT, async { tokio::join!(handshake, request) }).await.expect("it ends");
}

#[tokio::test]
async fn requests_during_shutdown_get_a_retry_after() {
    let mut world = World::new(Limits::default()).await;
    let answer = last_answer(&mut world.connect(Stop::Begun), "/api/v1/namespaces").await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{head}");
    for header in ["retry-after: 5", "connection: close", "content-type: text/plain; charset=utf-8"] {
        assert!(head.lines().any(|line| line == header), "{header} in {head}");
    }
    assert_eq!(body, "The apiserver is shutting down, please try again later.\n");
    let answer = last_answer(&mut world.connect(Stop::Begun), "/livez/ping").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    world.all_end().await;
}

#[tokio::test]
async fn a_request_is_the_last_of_its_connection_with_the_configured_probability() {
    let mut world = World::new(Limits { goaway_chance: 1.0, ..Limits::default() }).await;
    let client = TokioIo::new(world.connect_early());
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), client).await.unwrap();
    world.connections.spawn(async { connection.await.unwrap() });
    let request = Request::get("http://a/livez/ping").body(Empty::<Bytes>::new()).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok");
    world.all_end().await;
    drop(sender);
}

/// Sends a request and reads only the status line.
async fn begin(client: &mut DuplexStream, path: &str) {
    client.write_all(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await.unwrap();
    let mut begun = [0; 15];
    client.read_exact(&mut begun).await.unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200 OK");
}

/// Limits with one read slot and this stall timeout.
fn one_read(stall_timeout: Duration) -> Limits {
    Limits { reads_in_flight: 1, stall_timeout, ..Limits::default() }
}

#[tokio::test]
async fn a_list_that_nobody_reads_keeps_its_slot() {
    let mut world = World::new(one_read(FOR_EVER)).await;
    world.fill().await;
    let mut client = world.connect_stranger();
    begin(&mut client, CONFIGMAPS).await;
    assert_eq!(world.read_code().await, 429);
    let mut rest = vec![0; 3 << 20];
    while world.read_code().await != 200 {
        assert!(client.read(&mut rest).await.unwrap() > 0, "the slot is given back when all was read");
    }
}

#[tokio::test]
async fn a_list_that_nobody_reads_is_aborted_and_its_connection_closed() {
    let mut world = World::new(one_read(Duration::from_millis(200))).await;
    world.fill().await;
    let mut client = world.connect_stranger();
    begin(&mut client, CONFIGMAPS).await;
    world.until_a_read_gets_in().await;
    world.all_end().await;
}

#[tokio::test]
async fn a_list_that_is_read_byte_by_byte_is_aborted_too() {
    let mut world = World::new(one_read(Duration::from_millis(200))).await;
    world.fill().await;
    let mut client = world.connect_stranger();
    begin(&mut client, CONFIGMAPS).await;
    let mut pace = tokio::time::interval(Duration::from_millis(5));
    let trickle = async {
        while client.read_u8().await.is_ok() {
            pace.tick().await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = world.until_a_read_gets_in() => {}
        () = trickle => {}
    }
}

#[tokio::test]
async fn a_stream_of_a_mount_that_nobody_reads_is_aborted() {
    let limits =
        Limits { stall_timeout: Duration::from_millis(200), idle_timeout: FOR_EVER, ..Limits::default() };
    let mut world = World::new(limits).await;
    let mut client = world.connect_stranger();
    begin(&mut client, "/endless/flood").await;
    let api = world.api.clone();
    world.all_end().await;
    assert_eq!(api.metrics.watches.get(), 0, "its slot is released");
}

#[tokio::test]
async fn a_stalled_stream_is_reset_and_its_neighbours_go_on() {
    let mut world = World::new(one_read(Duration::from_millis(200))).await;
    world.fill().await;
    let client = TokioIo::new(world.connect_stranger());
    let (mut sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(1024)
        .handshake(client)
        .await
        .unwrap();
    world.connections.spawn(async { drop(connection.await) });
    let get = |path: &str| Request::get(format!("http://a{path}")).body(Empty::<Bytes>::new()).unwrap();
    let stalled = sender.send_request(get(CONFIGMAPS)).await.unwrap();
    assert_eq!(stalled.status(), 200);
    world.until_a_read_gets_in().await;
    let answer = sender.send_request(get("/livez/ping")).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok");
    assert!(stalled.into_body().collect().await.is_err(), "its stream was reset");
}

#[tokio::test]
async fn the_time_of_a_watch_is_over_although_nobody_reads_it() {
    let mut world = World::new(Limits { stall_timeout: FOR_EVER, ..Limits::default() }).await;
    world.fill().await;
    let mut client = world.connect_stranger();
    begin(&mut client, &format!("{CONFIGMAPS}?watch=1&timeoutSeconds=1")).await;
    world.all_end().await;
}

#[tokio::test]
async fn a_connection_without_a_request_ends_after_the_time_for_a_head() {
    let mut world = World::new(Limits { idle_timeout: FOR_EVER, ..Limits::default() }).await;
    tokio::time::pause();
    let _silent = world.connect_stranger();
    let (mut slow, mut preface) = (world.connect_stranger(), world.connect_stranger());
    slow.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n").await.unwrap();
    preface.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    world.all_end().await;
}

#[tokio::test]
async fn a_connection_that_had_a_request_stays_for_the_idle_time() {
    let limits = Limits { idle_timeout: Duration::from_secs(180), ..Limits::default() };
    let mut world = World::new(limits).await;
    let mut client = world.connect_stranger();
    let mut answer = vec![0; 4096];
    begin(&mut client, "/version").await;
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(100)).await;
    while client.read(&mut answer).now_or_never().is_some() {}
    begin(&mut client, "/version").await;
}

#[tokio::test]
async fn a_connection_is_not_evicted_after_its_first_authenticated_request() {
    let mut world = World::new(Limits { idle_timeout: FOR_EVER, ..Limits::default() }).await;
    let mut known = world.connect_early();
    begin(&mut known, "/version").await;
    let mut stranger = world.connect_stranger();
    begin(&mut stranger, "/version").await;
    world.room.close_unauthenticated();
    world.room.close_unauthenticated();
    let mut rest = Vec::new();
    timeout(TIMEOUT, stranger.read_to_end(&mut rest)).await.expect("it is closed").unwrap();
    let mut answer = vec![0; 4096];
    while known.read(&mut answer).now_or_never().is_some() {}
    begin(&mut known, "/version").await;
}

#[tokio::test]
async fn a_panic_of_one_request_is_an_internal_error_and_leaves_others_of_the_connection_alone() {
    let mut world = World::new(Limits::default()).await;
    let stop = Stop::Ahead(world.shutdown.clone());
    let client =
        TokioIo::new(world.connect_as(Connection::InProcess(Identity::authenticated("jane", [])), stop));
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), client).await.unwrap();
    world.connections.spawn(async { connection.await.unwrap() });
    let get = |path: &str| Request::get(format!("http://a{path}")).body(Empty::<Bytes>::new()).unwrap();
    let watch = sender.send_request(get("/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3Ddefault"));
    let mut watch = watch.await.unwrap().into_body();
    let panicked = sender.send_request(get("/api/v1/namespaces/panic")).await.unwrap();
    assert_eq!(panicked.status(), 500);
    let status = panicked.into_body().collect().await.unwrap().to_bytes();
    let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
    assert_eq!(status["reason"], "InternalError");
    assert_eq!(world.api.metrics.panics.get(), 1);
    let event = timeout(TIMEOUT, watch.frame()).await.expect("the watch goes on").unwrap().unwrap();
    assert!(event.into_data().unwrap().starts_with(br#"{"type":"ADDED""#));
    let after = sender.send_request(get("/api/v1/namespaces/default")).await.unwrap();
    assert_eq!(after.status(), 200);
    assert_eq!(world.api.metrics.in_flight.get(), 0, "nothing is left of the request that panicked");
    drop(sender);
}
