//! The work queue without a controller: order, fairness and time.

use futures::FutureExt;
use prometheus_client::registry::Registry;

use super::*;
use crate::metrics::{Metrics, QueueMetrics};

fn now<K: Key>(queue: &WorkQueue<K>) -> Option<K> {
    queue.next().now_or_never()
}

/// All keys that can be taken now, each finished at once.
fn drain<K: Key>(queue: &WorkQueue<K>) -> Vec<K> {
    std::iter::from_fn(|| now(queue).inspect(|key| queue.done(key))).collect()
}

#[tokio::test]
async fn a_key_that_is_added_twice_is_taken_once() {
    let queue = WorkQueue::default();
    for key in ["a", "b", "a"] {
        queue.add(key);
    }
    assert_eq!([now(&queue), now(&queue), now(&queue)], [Some("a"), Some("b"), None]);
}

#[tokio::test]
async fn a_key_is_never_in_two_workers_and_comes_again_if_it_was_added_meanwhile() {
    let queue = WorkQueue::default();
    queue.add("a");
    assert_eq!(now(&queue), Some("a"));
    queue.add("a");
    assert_eq!(now(&queue), None);
    queue.done(&"a");
    assert_eq!(now(&queue), Some("a"));
    queue.done(&"a");
    assert_eq!(now(&queue), None);
}

#[tokio::test]
async fn changes_are_taken_before_the_objects_of_a_list() {
    let queue = WorkQueue::default();
    for key in ["listed 1", "listed 2", "listed and changed"] {
        queue.add_with_priority(key, Priority::Low);
    }
    queue.add("changed");
    queue.add("listed and changed");
    queue.add_with_priority("changed", Priority::Low);
    assert_eq!(drain(&queue), ["listed and changed", "changed", "listed 1", "listed 2"]);
}

#[tokio::test]
async fn a_key_that_becomes_urgent_while_a_worker_has_it_comes_first_afterwards() {
    let queue = WorkQueue::default();
    queue.add_with_priority("a", Priority::Low);
    queue.add_with_priority("b", Priority::Low);
    assert_eq!(now(&queue), Some("a"));
    queue.add_with_priority("a", Priority::Low);
    queue.add("a");
    queue.done(&"a");
    assert_eq!(drain(&queue), ["a", "b"]);
}

#[tokio::test]
async fn changes_that_never_end_do_not_starve_the_objects_of_a_list() {
    let queue = WorkQueue::default();
    (1000..1003).for_each(|key| queue.add_with_priority(key, Priority::Low));
    (0..100).for_each(|key| queue.add(key));
    let taken: Vec<u32> = (100..130)
        .map(|next| {
            queue.add(next);
            let key = now(&queue).unwrap();
            queue.done(&key);
            key
        })
        .collect();
    let listed: Vec<_> = taken.iter().enumerate().filter(|(_, key)| **key >= 1000).collect();
    assert_eq!(listed, [(8, &1000), (17, &1001), (26, &1002)]);
}

#[tokio::test]
async fn flows_take_turns_however_many_keys_one_of_them_has() {
    let queue: WorkQueue<(&str, u32)> = WorkQueue::default();
    queue.fair_by(|key| key.0.to_owned());
    (0..100).for_each(|number| queue.add(("flood", number)));
    assert_eq!(now(&queue), Some(("flood", 0)));
    queue.done(&("flood", 0));
    (0..3).for_each(|number| queue.add(("calm", number)));
    queue.add(("late", 0));
    let taken: Vec<_> = (0..9).map(|_| now(&queue).inspect(|key| queue.done(key)).unwrap()).collect();
    let expected = [
        ("calm", 0),
        ("late", 0),
        ("flood", 1),
        ("calm", 1),
        ("flood", 2),
        ("calm", 2),
        ("flood", 3),
        ("flood", 4),
        ("flood", 5),
    ];
    assert_eq!(taken, expected);
    // A flow that was away gets no turns for the time in which it had no key.
    queue.add(("calm", 3));
    queue.add(("calm", 4));
    assert_eq!(drain(&queue)[..4], [("calm", 3), ("flood", 6), ("calm", 4), ("flood", 7)]);
    assert!(queue.state().rounds.len() <= 1, "flows without keys are forgotten");
}

#[tokio::test]
async fn priorities_come_before_turns() {
    let queue: WorkQueue<(&str, u32)> = WorkQueue::default();
    queue.fair_by(|key| key.0.to_owned());
    queue.add_with_priority(("listed", 0), Priority::Low);
    queue.add_with_priority(("listed", 1), Priority::Low);
    queue.add_with_priority(("other", 0), Priority::Low);
    queue.add(("changed", 0));
    queue.add(("changed", 1));
    queue.add(("listed", 1));
    let expected = [("listed", 1), ("changed", 0), ("changed", 1), ("listed", 0), ("other", 0)];
    assert_eq!(drain(&queue), expected);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_always_fails_does_not_starve_the_others() {
    let queue = WorkQueue::default();
    queue.add(0);
    (1..=50).for_each(|key| queue.add_with_priority(key, Priority::Low));
    let mut done = 0;
    // One worker, which needs 20 ms for a key: longer than the first waits of the key that fails.
    for _ in 0..70 {
        let key = queue.next().await;
        tokio::time::advance(Duration::from_millis(20)).await;
        if key == 0 {
            queue.retry(key);
        } else {
            done += 1;
        }
        queue.done(&key);
        if done == 50 {
            return;
        }
    }
    panic!("only {done} of 50 keys were taken beside the one that fails");
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_two_times_counts_and_the_higher_of_two_priorities() {
    let queue = WorkQueue::default();
    let begin = Instant::now();
    queue.delay("a", Duration::from_secs(9), Priority::Low);
    queue.add_after("a", Duration::from_secs(3));
    queue.delay("a", Duration::from_secs(6), Priority::Low);
    queue.delay("b", Duration::from_secs(3), Priority::Low);
    assert_eq!(queue.next().await, "a");
    assert_eq!(begin.elapsed().as_secs(), 3);
    queue.done(&"a");
    assert_eq!(drain(&queue), ["b"]);
    assert!(tokio::time::timeout(Duration::from_secs(60), queue.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn failures_wait_longer_and_longer_until_they_are_forgotten() {
    let queue = WorkQueue::default();
    let mut waits = Vec::new();
    for _ in 0..16 {
        let begin = Instant::now();
        queue.retry("a");
        queue.next().await;
        queue.done(&"a");
        waits.push(begin.elapsed().as_millis());
    }
    assert_eq!(waits[..4], [5, 10, 20, 40]);
    assert_eq!(waits[14..], [60_000, 60_000]);
    queue.forget(&"a");
    assert_eq!(queue.retry("a"), 1);
}

#[tokio::test]
async fn as_many_workers_wake_as_there_are_keys() {
    let queue = WorkQueue::<u32>::default();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let queue = queue.clone();
        workers.spawn(async move { queue.next().await });
    }
    tokio::task::yield_now().await;
    (0..3).for_each(|key| queue.add(key));
    workers.join_all().await;
}

#[tokio::test(start_paused = true)]
async fn the_queue_measures_how_long_keys_wait_and_workers_work() {
    let queue = WorkQueue::default();
    queue.add("a");
    queue.add("b");
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(now(&queue), Some("a"));
    tokio::time::advance(Duration::from_secs(3)).await;
    assert_eq!(now(&queue), Some("b"));
    tokio::time::advance(Duration::from_secs(4)).await;
    let measured = queue.measured();
    let snapshot = measured.snapshot();
    assert_eq!((snapshot.unfinished.as_secs(), snapshot.longest_running.as_secs()), (7 + 4, 7));
    queue.retry("a");
    queue.done(&"a");
    queue.add("a");
    let snapshot = measured.snapshot();
    assert_eq!((snapshot.depth, snapshot.unfinished.as_secs()), (1, 4));
    assert_eq!((snapshot.counts.adds(), snapshot.counts.retries()), (3, 1));
    let mut registry = Registry::default();
    Metrics::register(&mut registry).show("test", QueueMetrics(queue.measured()));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        "workqueue_queue_duration_seconds_count{name=\"test\"} 2",
        "workqueue_queue_duration_seconds_sum{name=\"test\"} 7.0",
        "workqueue_work_duration_seconds_count{name=\"test\"} 1",
        "workqueue_work_duration_seconds_sum{name=\"test\"} 7.0",
    ] {
        assert_eq!(text.matches(&format!("\n{line}\n")).count(), 1, "{line} in {text}");
    }
}
