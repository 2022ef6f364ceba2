//! The healthy client: one ordinary user that gets and updates one small object at a low rate.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::SendRequest;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::frames;
use super::waves::CONFIGMAPS;
use crate::api_level::Endpoint;
use crate::stats::Latencies;

/// The pause between two rounds.
const PACE: Duration = Duration::from_millis(10);

/// Rounds after which a new connection replaces the old one, so that a lock-out of new clients shows.
const ROUNDS_PER_CONNECTION: usize = 50;

/// A request that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Latencies and errors of the healthy client.
#[derive(Debug, Default)]
pub struct Felt {
    pub latencies: Latencies,
    /// Times of new connections with their TLS handshakes.
    pub connects: Latencies,
    pub errors: usize,
}

type Sender = SendRequest<Full<bytes::Bytes>>;

/// Gets and updates for this long.
pub async fn measure(endpoint: &Endpoint, time: Duration) -> Result<Felt> {
    let mut felt = Felt::default();
    let mut drivers = JoinSet::new();
    let mut sender = None;
    let end = Instant::now() + time;
    for rounds in 1.. {
        if Instant::now() >= end {
            break;
        }
        match timeout(PATIENCE, round(endpoint, &mut sender, &mut drivers, &mut felt)).await {
            Ok(Ok(())) => sender = sender.filter(|_| rounds % ROUNDS_PER_CONNECTION != 0),
            failed => {
                if let Ok(Err(error)) = failed {
                    crate::report::progress(&format!("         healthy client: {error:#}"));
                }
                felt.errors += 1;
                sender = None;
            }
        }
        tokio::time::sleep(PACE).await;
    }
    Ok(felt)
}

/// A get and an update, on a new connection if there is none.
async fn round(
    endpoint: &Endpoint,
    sender: &mut Option<Sender>,
    drivers: &mut JoinSet<()>,
    felt: &mut Felt,
) -> Result<()> {
    let begin = Instant::now();
    if sender.is_none() {
        *sender = Some(frames::http2(endpoint, drivers).await?);
        felt.connects.push(begin.elapsed());
    }
    let begin = Instant::now();
    let sender = sender.as_mut().context("it was just made")?;
    let path = format!("https://{}{CONFIGMAPS}/healthy", endpoint.address);
    let found = send(sender, Method::GET, &path, String::new()).await?;
    let mut object: serde_json::Value = serde_json::from_slice(&found)?;
    let count = object["data"]["a"].as_str().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
    object["data"]["a"] = (count + 1).to_string().into();
    send(sender, Method::PUT, &path, object.to_string()).await?;
    felt.latencies.push(begin.elapsed());
    Ok(())
}

async fn send(sender: &mut Sender, method: Method, path: &str, body: String) -> Result<bytes::Bytes> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", "Bearer bob")
        .header("content-type", "application/json")
        .body(Full::from(body))?;
    sender.ready().await?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    anyhow::ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}
