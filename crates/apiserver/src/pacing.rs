//! Pacing of expensive work: TLS handshakes and requests with large bodies never occupy all processors at once.
//!
//! Such a future takes milliseconds of processor time in a single poll, and everything else on the same worker thread waits for it.
//! The bound therefore counts polls, not futures: a client that stalls in the middle of its handshake holds nothing.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use tokio::sync::Semaphore;

/// Requests with larger bodies are paced: parsing and encoding them takes milliseconds.
pub(crate) const LARGE_BODY: usize = 256 << 10;

/// Bounds the concurrent polls of expensive futures.
#[derive(Debug)]
pub(crate) struct Pacer(Semaphore);

impl Pacer {
    /// Half of the processors, at least one.
    pub fn new(processors: usize) -> Self {
        Self(Semaphore::new((processors / 2).max(1)))
    }

    /// Runs a future with bounded polls.
    pub async fn pace<F: Future>(&self, mut future: Pin<&mut F>) -> F::Output {
        loop {
            let turn = self.0.acquire().await.expect("the semaphore is never closed");
            let polled = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
            drop(turn);
            if let Poll::Ready(output) = polled {
                return output;
            }
            next_wake().await;
        }
    }
}

/// Returns when the task is woken again. The caller has just polled the future that registers the waker.
async fn next_wake() {
    let mut is_woken = false;
    poll_fn(|_| if std::mem::replace(&mut is_woken, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use tokio::sync::oneshot;
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn polls_run_one_at_a_time_where_there_are_two_processors() {
        let pacer = Arc::new(Pacer::new(2));
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            let (pacer, running, most) = (pacer.clone(), running.clone(), most.clone());
            tasks.spawn(async move {
                let busy = pin!(async {
                    for _ in 0..3 {
                        most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        // Long enough for the other workers to get here.
                        let begin = Instant::now();
                        while begin.elapsed() < Duration::from_millis(1) {}
                        running.fetch_sub(1, Ordering::SeqCst);
                        tokio::task::yield_now().await;
                    }
                });
                pacer.pace(busy).await;
            });
        }
        tasks.join_all().await;
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_future_that_waits_for_its_client_holds_no_turn() {
        let pacer = Arc::new(Pacer::new(1));
        let (answer, stalled) = oneshot::channel::<u8>();
        let waiting = pacer.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { waiting.pace(pin!(stalled)).await });
        tokio::task::yield_now().await;
        assert_eq!(pacer.pace(pin!(async { 7 })).await, 7, "the stalled future was polled before");
        answer.send(9).expect("the paced future waits for it");
        assert_eq!(tasks.join_next().await.expect("one task").expect("no panic"), Ok(9));
    }
}
