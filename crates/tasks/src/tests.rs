//! Tasks that end early are reported, stopped tasks are not.

use futures::FutureExt;

use super::*;

#[tokio::test]
async fn a_panic_is_reported_with_its_text_and_only_the_first_counts() {
    let tasks = Tasks::default();
    tasks.start("the patient task", std::future::pending());
    let number = 7;
    tasks.start("the counter", async move { panic!("{number} is odd") });
    let failure = tasks.failed().await;
    assert_eq!(failure.to_string(), "the counter panicked: 7 is odd; this is a defect of the program");
    assert!(tasks.inject_fault("the patient task"));
    tasks.join().await;
    assert_eq!(tasks.failure(), Some(failure));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_ends_because_of_another_is_not_the_first_failure() {
    let tasks = Tasks::default();
    let (request, requested) = tokio::sync::oneshot::channel::<()>();
    tasks.start("the requester", async move {
        std::future::pending::<()>().await;
        drop(request);
    });
    tasks.start("the follower", requested.map(drop));
    assert!(tasks.inject_fault("the requester"));
    tasks.join().await;
    assert_eq!(tasks.failed().await.task, "the requester");
}

#[tokio::test]
async fn a_task_that_returns_early_is_reported() {
    let tasks = Tasks::default();
    tasks.start("the poller", async {});
    let failure = tasks.failed().await;
    assert_eq!((&*failure.task, failure.cause), ("the poller", Cause::Returned));
}

#[tokio::test]
async fn finite_tasks_and_tasks_of_a_stopped_owner_may_end() {
    let tasks = Tasks::default();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    tasks.start_finite("the first steps", async {});
    tasks.start("the worker", stopped.map(drop));
    tasks.stop();
    drop(stop);
    tasks.join().await;
    assert_eq!(tasks.failure(), None);
    assert!(tasks.failed().now_or_never().is_none());
}

#[tokio::test]
async fn a_task_has_started_until_it_comes_to_an_end_of_its_own() {
    let tasks = Tasks::default();
    tasks.start_finite("the first steps", async {});
    tasks.start("the poller", async { panic!("stumbled") });
    let known = |name: &str| (tasks.has_started(name), tasks.has_failed(name));
    assert_eq!([known("the first steps"), known("the poller")], [(true, false); 2]);
    tasks.join().await;
    assert_eq!(
        [known("the first steps"), known("the poller"), known("another")],
        [(false, false), (true, true), (false, false)]
    );
}

#[tokio::test]
async fn a_finite_task_that_panics_is_reported() {
    let tasks = Tasks::default();
    tasks.start_finite("the first steps", async { panic!("stumbled") });
    assert_eq!(tasks.failed().await.cause, Cause::Panicked("stumbled".to_owned()));
}

#[tokio::test]
async fn a_thread_that_panics_is_reported() {
    let tasks = Tasks::default();
    let reporter = tasks.reporter();
    tokio::task::spawn_blocking(move || reporter.run("the writer", || panic!("disk gone"))).await.unwrap();
    assert_eq!(
        tasks.failed().await.to_string(),
        "the writer panicked: disk gone; this is a defect of the program"
    );
}

#[tokio::test]
async fn a_joined_panic_goes_on_in_the_task_that_joins() {
    let outer = Tasks::default();
    outer.start("the manager", async {
        let mut inner = JoinSet::new();
        inner.spawn(async { panic!("inner") });
        while let Some(ended) = inner.join_next().await {
            propagate::<()>(ended);
        }
    });
    assert_eq!(outer.failed().await.cause, Cause::Panicked("inner".to_owned()));
}
