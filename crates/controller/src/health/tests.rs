//! Health checks: their texts, and the server over a socket.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

fn health() -> (Health, Arc<AtomicBool>) {
    let (health, is_synced) = (Health::default(), Arc::new(AtomicBool::new(false)));
    let synced = Arc::clone(&is_synced);
    health.ready("informer-sync", move || match synced.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err("an informer is not synced".to_owned()),
    });
    health.live("leader-election", || Ok(()));
    (health, is_synced)
}

fn answer(health: &Health, target: &str) -> (u16, String) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let answer = health.answer(path, query).expect("the path is one of health");
    (answer.status().as_u16(), String::from_utf8(answer.body().to_vec()).unwrap())
}

#[test]
fn answers_are_those_of_kubernetes() {
    let (health, is_synced) = health();
    for (is_well, target, code, expected) in [
        (false, "/livez", 200, "ok"),
        (false, "/healthz", 200, "ok"),
        (false, "/livez?verbose", 200, "[+]ping ok\n[+]leader-election ok\nlivez check passed\n"),
        (
            false,
            "/readyz",
            500,
            "[+]ping ok\n[-]informer-sync failed: reason withheld\n[+]leader-election ok\nreadyz check failed\n",
        ),
        (
            false,
            "/readyz?verbose&exclude=informer-sync",
            200,
            "[+]ping ok\n[+]informer-sync excluded: ok\n[+]leader-election ok\nreadyz check passed\n",
        ),
        (false, "/readyz?exclude=informer-sync", 200, "ok"),
        (false, "/readyz/informer-sync", 500, "internal server error: an informer is not synced\n"),
        (false, "/readyz/ping", 200, "ok"),
        (false, "/readyz/other", 404, "404 page not found\n"),
        (false, "/livez/informer-sync", 404, "404 page not found\n"),
        (true, "/readyz", 200, "ok"),
        (
            true,
            "/readyz?verbose&exclude=no%2Fone",
            200,
            "[+]ping ok\n[+]informer-sync ok\n[+]leader-election ok\n\
             warn: some health checks cannot be excluded: no matches for \"no/one\"\nreadyz check passed\n",
        ),
    ] {
        is_synced.store(is_well, Ordering::Relaxed);
        assert_eq!(answer(&health, target), (code, expected.to_owned()), "{target}");
    }
    assert!(health.answer("/metrics", "").is_none() && health.answer("/", "").is_none());
}

#[test]
fn a_check_takes_the_place_of_the_one_of_its_name() {
    let (health, _) = health();
    health.ready("informer-sync", || Ok(()));
    assert_eq!(answer(&health, "/readyz").0, 200);
}

async fn get(address: std::net::SocketAddr, line: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(format!("{line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn the_server_answers_kubelets_and_prometheus() {
    let (health, is_synced) = health();
    is_synced.store(true, Ordering::Relaxed);
    let mut registry = Registry::default();
    let metrics = crate::Metrics::register(&mut registry);
    metrics.show("notes", crate::QueueMetrics(crate::WorkQueue::<u32>::default().measured()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, shutdown) = (listener.local_addr().unwrap(), Shutdown::new());
    let server = HealthServer::new(health).metrics(registry).run(listener, shutdown.clone());
    let client = async {
        let ready = get(address, "GET /readyz?verbose").await;
        assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("[+]shutdown ok"), "{ready}");
        assert!(ready.contains("x-content-type-options: nosniff"), "{ready}");
        let metrics = get(address, "GET /metrics").await;
        assert!(metrics.contains("workqueue_depth{name=\"notes\"} 0"), "{metrics}");
        assert!(metrics.contains(METRICS), "{metrics}");
        assert!(get(address, "GET /else").await.starts_with("HTTP/1.1 404"));
        assert!(get(address, "POST /readyz").await.starts_with("HTTP/1.1 405"));
        assert!(get(address, "HEAD /livez").await.starts_with("HTTP/1.1 200"));
        shutdown.request();
    };
    tokio::join!(server, client);
}
