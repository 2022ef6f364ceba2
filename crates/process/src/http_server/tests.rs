//! The HTTP server against clients that send too much, too slowly, or too many requests at once.

use std::net::SocketAddr;

use hyper::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
};

use super::*;

/// Echoes the length of a body. `/panic` panics, `/wait` says that it has begun and waits for the bell.
#[derive(Clone, Default)]
struct Echo {
    begun: Arc<Notify>,
    bell: Arc<Notify>,
}

impl Handler for Echo {
    fn body_bytes_max(&self, _: &str) -> usize {
        100
    }

    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        match request.uri().path() {
            "/panic" => panic!("a defect"),
            "/wait" => {
                self.begun.notify_one();
                self.bell.notified().await;
            }
            _ => {}
        }
        let status = if request.method() == Method::GET { StatusCode::OK } else { StatusCode::CREATED };
        text(status, request.body().len().to_string())
    }
}

struct Running {
    address: SocketAddr,
    shutdown: Shutdown,
    echo: Echo,
    tasks: JoinSet<()>,
}

async fn start(limits: Limits) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, shutdown, echo) = (listener.local_addr().unwrap(), Shutdown::new(), Echo::default());
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(listener, None, limits, echo.clone(), shutdown.clone()));
    Running { address, shutdown, echo, tasks }
}

/// Sends a text and reads the whole answer.
async fn exchange(address: SocketAddr, request: impl AsRef<str>) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_ref().as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or(answer)
}

#[tokio::test]
async fn bodies_are_read_whole_within_the_limit() {
    let server = start(Limits::default()).await;
    let answer = exchange(server.address, post("/", &"x".repeat(100))).await;
    assert!(status(&answer) == "201" && answer.ends_with("\r\n\r\n100"), "{answer}");
    let answer = exchange(server.address, post("/", &"x".repeat(101))).await;
    assert_eq!(status(&answer), "413", "{answer}");
    let chunk = format!("{:x}\r\n{}\r\n", 60, "x".repeat(60));
    let chunked = format!(
        "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n{chunk}{chunk}0\r\n\r\n"
    );
    assert_eq!(status(&exchange(server.address, &chunked).await), "413");
}

#[tokio::test]
async fn a_handler_that_panics_fails_its_own_request_only() {
    let server = start(Limits::default()).await;
    let both = "GET /panic HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let answers = exchange(server.address, both).await;
    let statuses: Vec<_> =
        answers.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")).map(|line| &line[..3]).collect();
    assert_eq!(statuses, ["500", "200"], "{answers}");
}

#[tokio::test]
async fn requests_beyond_the_limit_wait_and_get_503_when_that_takes_too_long() {
    let limits = Limits { requests: 1, request_timeout: Duration::from_secs(2), ..Limits::default() };
    let server = start(limits).await;
    let (first, second) = tokio::join!(
        exchange(server.address, post("/wait", "")),
        exchange(server.address, post("/wait", ""))
    );
    let mut both = [status(&first), status(&second)];
    both.sort_unstable();
    assert_eq!(
        both,
        ["503", "504"],
        "one runs into the time limit, the other is sent away: {first} {second}"
    );
}

#[tokio::test]
async fn a_client_that_sends_nothing_is_cut_off() {
    let limits = Limits { header_timeout: Duration::from_millis(50), ..Limits::default() };
    let server = start(limits).await;
    assert_eq!(exchange(server.address, "").await, "");
    let half = exchange(server.address, "GET / HT").await;
    assert!(half.is_empty() || status(&half).starts_with('4'), "{half}");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_keeps_no_other_request_waiting() {
    let limits = Limits { requests: 1, body_timeout: Duration::from_millis(300), ..Limits::default() };
    let server = start(limits).await;
    let head = "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 9\r\n\r\nhalf";
    let (slow, other) =
        tokio::join!(exchange(server.address, head), exchange(server.address, post("/", "x")));
    assert_eq!((status(&slow), status(&other)), ("408", "201"), "{slow} {other}");
}

#[tokio::test]
async fn a_stop_lets_open_requests_end_and_takes_no_new_ones() {
    let mut server = start(Limits::default()).await;
    let (address, shutdown) = (server.address, server.shutdown.clone());
    let stop = async {
        server.echo.begun.notified().await;
        shutdown.request();
        server.echo.bell.notify_one();
    };
    let (answer, ()) = tokio::join!(exchange(address, post("/wait", "x")), stop);
    assert_eq!(status(&answer), "201", "{answer}");
    server.tasks.join_next().await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}
