//! The scheduler without the store's hub: waking one task, and a broadcast to a thousand.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;

use crate::stats::Latencies;

/// Events per batch, as from a commit under load.
const BATCH: usize = 64;

/// The time from sending a message to its arrival in another task.
pub async fn one_task(count: usize, pause: Duration) -> Result<Latencies> {
    let (sender, mut receiver) = mpsc::unbounded_channel::<Instant>();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut latencies = Latencies::default();
        while let Some(sent) = receiver.recv().await {
            latencies.push(sent.elapsed());
        }
        latencies
    });
    for _ in 0..count {
        tokio::time::sleep(pause).await;
        sender.send(Instant::now())?;
    }
    drop(sender);
    Ok(tasks.join_next().await.transpose()?.unwrap_or_default())
}

/// Events per second of a plain broadcast channel with this number of receivers.
pub async fn broadcast(watchers: usize, events: usize) -> Result<f64> {
    let (sender, _) = broadcast::channel::<Arc<Bytes>>(events.next_power_of_two());
    let mut tasks = JoinSet::new();
    for _ in 0..watchers {
        let mut receiver = sender.subscribe();
        tasks.spawn(async move {
            let mut received = 0_usize;
            while let Ok(event) = receiver.recv().await {
                std::hint::black_box(event.len());
                received += 1;
            }
            received
        });
    }
    let event = Arc::new(Bytes::from_static(b"event"));
    let begin = Instant::now();
    for number in 0..events {
        sender.send(Arc::clone(&event))?;
        if number % BATCH == 0 {
            tokio::task::yield_now().await;
        }
    }
    drop(sender);
    let received: usize = tasks.join_all().await.into_iter().sum();
    Ok(received as f64 / begin.elapsed().as_secs_f64())
}
