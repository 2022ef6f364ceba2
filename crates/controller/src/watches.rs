//! Watches that do not end: the present objects, then every change, from the same place again when a connection is lost.
//!
//! However many listen to a target, there is one stream of it. Who comes late gets the present objects from a request of its own,
//! and the changes behind them from the stream. A watch that waits holds no buffer, and the code is there once for all types: what
//! comes is handed on as bytes.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http_body_util::BodyExt;
use kube::Client;
use kube::core::Status;
use tasks::{TaskFailure, Tasks};
use tokio::sync::Notify;

use crate::line::{Head, Line, Name};
use crate::objects::refusal;
use crate::watch::{Event, Listener, Target};
use crate::{Error, Result};

/// How long to wait before trying again when a watch cannot be opened, at first and at most.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LAST_DELAY: Duration = Duration::from_secs(30);
/// Longer than the event of any object.
const LONGEST_LINE: usize = 64 << 20;
/// What marks the bookmark behind the last of the present objects.
const END_OF_STATE: &str = "k8s.io/initial-events-end";

/// The watches of a client, one for each target. Clones are the same.
#[derive(Clone)]
pub struct Watches(Arc<Shared>);

struct Shared {
    client: Client,
    feeds: Mutex<Feeds>,
}

#[derive(Default)]
struct Feeds {
    by_target: HashMap<Target, Arc<Feed>>,
    tasks: Tasks,
    is_open: bool,
}

/// What a watch shares with those who come and go.
#[derive(Default)]
struct Feed {
    newcomers: Mutex<Vec<Member>>,
    /// Rings when somebody has come or gone.
    bell: Notify,
}

/// Somebody who listens.
struct Member {
    listener: Box<dyn Listener>,
    has_left: Arc<AtomicBool>,
    /// The revision up to which everything has been heard; none before all present objects have been.
    position: Option<u64>,
}

/// Listening, until it is dropped.
pub(crate) struct Membership {
    feed: Arc<Feed>,
    has_left: Arc<AtomicBool>,
    /// The task of the watch lives as long as somebody who needs it.
    _watches: Watches,
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.has_left.store(true, Ordering::Relaxed);
        self.feed.bell.notify_one();
    }
}

impl Watches {
    /// The watches of a client that may watch all that is asked for.
    #[must_use]
    pub fn new(client: Client) -> Self {
        let watches = Self::closed(client);
        watches.open();
        watches
    }

    /// As [`Watches::new`], but none begins before [`Watches::open`]: who has come by then needs no request of its own.
    #[must_use]
    pub fn closed(client: Client) -> Self {
        Self(Arc::new(Shared { client, feeds: Mutex::default() }))
    }

    /// Lets all watches begin.
    pub fn open(&self) {
        let mut feeds = self.0.feeds();
        feeds.is_open = true;
        let Feeds { by_target, tasks, .. } = &mut *feeds;
        for (target, feed) in by_target {
            tasks.start_finite(format!("the watch of {target}"), self.task(target, feed));
        }
    }

    /// Resolves with the first watch that panicked; never where none does.
    pub(crate) fn failed(&self) -> impl Future<Output = TaskFailure> + Send + use<> {
        self.0.feeds().tasks.failed()
    }

    /// Listens from now on: first to the present objects, then to every change.
    pub(crate) fn join(&self, target: Target, listener: Box<dyn Listener>) -> Membership {
        let has_left = Arc::new(AtomicBool::new(false));
        let member = Member { listener, has_left: Arc::clone(&has_left), position: None };
        let mut feeds = self.0.feeds();
        let Feeds { by_target, tasks, is_open } = &mut *feeds;
        let feed = by_target.entry(target).or_insert_with_key(|target| {
            let feed = Arc::default();
            if *is_open {
                tasks.start_finite(format!("the watch of {target}"), self.task(target, &feed));
            }
            feed
        });
        feed.newcomers().push(member);
        feed.bell.notify_one();
        Membership { feed: Arc::clone(feed), has_left, _watches: self.clone() }
    }

    fn task(&self, target: &Target, feed: &Arc<Feed>) -> impl Future<Output = ()> + Send + use<> {
        let (target, feed) = (target.clone(), Arc::clone(feed));
        let watch = Watch { target, feed, members: Vec::new(), has_heard: false, has_news: false };
        watch.run(self.0.client.clone(), Arc::downgrade(&self.0))
    }
}

impl Shared {
    fn feeds(&self) -> MutexGuard<'_, Feeds> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed {
    fn newcomers(&self) -> MutexGuard<'_, Vec<Member>> {
        self.newcomers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    fn hear(&mut self, target: &Target, event: Event<'_>) {
        if self.has_left.load(Ordering::Relaxed) {
            return;
        }
        match std::panic::catch_unwind(AssertUnwindSafe(|| self.listener.hear(event))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%target, %error, "an object cannot be read and is passed over");
            }
            Err(_) => {
                tracing::error!(%target, "what listens to a watch panicked; this is a defect of the program");
            }
        }
    }
}

/// One stream and all who listen to it.
struct Watch {
    target: Target,
    feed: Arc<Feed>,
    members: Vec<Member>,
    /// Whether the server has sent something since the last request.
    has_heard: bool,
    /// Whether it had something to say. A server that stops says only where a watch can go on, as often as it is asked.
    has_news: bool,
}

/// What a request was made for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The present objects, for those who have not seen them.
    State,
    /// Every change, for all.
    Changes,
    /// The next request has more to say.
    Over,
}

impl Watch {
    /// Follows the target until nobody listens.
    async fn run(mut self, client: Client, shared: Weak<Shared>) {
        let mut delay = FIRST_DELAY;
        loop {
            self.let_in_and_out();
            if self.members.is_empty() {
                if self.is_over(&shared) {
                    return;
                }
                continue;
            }
            (self.has_heard, self.has_news) = (false, false);
            let ended = Box::pin(self.pass(&client)).await;
            if self.has_heard {
                delay = FIRST_DELAY;
            }
            let target = &self.target;
            match ended {
                Ok(()) if self.has_news || self.has_visitors() => continue,
                Ok(()) => {}
                Err(error) if error.is_expired() => {
                    tracing::debug!(%target, "a watch begins anew: {error}");
                    self.members.iter_mut().for_each(|member| member.position = None);
                }
                Err(error) if error.is_not_found() => {
                    tracing::debug!(%target, "there is no such type; trying again");
                    for member in &mut self.members {
                        member.hear(target, Event::NotServed);
                        member.position = None;
                    }
                }
                Err(error) => tracing::warn!(%target, %error, "a watch failed; trying again"),
            }
            self.pause(delay).await;
            delay = (delay * 2).min(LAST_DELAY);
        }
    }

    /// Waits, unless there is nobody to wait for.
    async fn pause(&mut self, delay: Duration) {
        let mut end = std::pin::pin!(tokio::time::sleep(delay));
        while !self.members.is_empty() {
            tokio::select! {
                () = &mut end => return,
                () = self.feed.bell.notified() => self.let_in_and_out(),
            }
        }
    }

    fn let_in_and_out(&mut self) {
        self.members.append(&mut self.feed.newcomers());
        self.members.retain(|member| !member.has_left.load(Ordering::Relaxed));
    }

    /// Whether somebody has come, or the last has gone.
    fn has_visitors(&self) -> bool {
        let is_left = self.members.iter().all(|member| member.has_left.load(Ordering::Relaxed));
        is_left || !self.feed.newcomers().is_empty()
    }

    /// Takes the watch off the list, unless somebody has come.
    fn is_over(&self, shared: &Weak<Shared>) -> bool {
        let Some(shared) = shared.upgrade() else { return true };
        let mut feeds = shared.feeds();
        let is_over = self.feed.newcomers().is_empty();
        if is_over {
            feeds.by_target.remove(&self.target);
        }
        is_over
    }

    /// One request, to its end, or until there is somebody to whom it has not enough to say.
    async fn pass(&mut self, client: &Client) -> Result<()> {
        let position = self.members.iter().map(|member| member.position).min().flatten();
        let answer = client.send(self.target.request(position)?).await?;
        if !answer.status().is_success() {
            return Err(refusal(answer).await);
        }
        let mut phase = if position.is_some() { Phase::Changes } else { Phase::State };
        if phase == Phase::State {
            for member in self.members.iter_mut().filter(|member| member.position.is_none()) {
                member.hear(&self.target, Event::Reset);
            }
        }
        let (mut body, mut begun) = (answer.into_body(), Vec::new());
        while phase != Phase::Over {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = self.feed.bell.notified() => {
                    self.members.retain(|member| !member.has_left.load(Ordering::Relaxed));
                    // Who comes while others are told of the present objects waits for the next time.
                    if self.members.is_empty() || phase == Phase::Changes && self.has_visitors() {
                        return Ok(());
                    }
                    continue;
                }
            };
            let Some(frame) = frame else { return Ok(()) };
            let Ok(data) = frame.map_err(Error::other)?.into_data() else { continue };
            self.has_heard = true;
            let mut rest = &data[..];
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                if begun.is_empty() {
                    phase = self.line(&rest[..end], phase)?;
                } else {
                    begun.extend_from_slice(&rest[..end]);
                    phase = self.line(&std::mem::take(&mut begun), phase)?;
                }
                rest = &rest[end + 1..];
            }
            if begun.len() + rest.len() > LONGEST_LINE {
                return Err(Error::other("an event of a watch is longer than any object"));
            }
            begun.extend_from_slice(rest);
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], phase: Phase) -> Result<Phase> {
        let Head { name, key, revision } = Head::of(line)?;
        let line_of = Line::new(line);
        let event = match name {
            Name::Added | Name::Modified => Event::Seen(&key, &line_of),
            Name::Deleted => Event::Gone(&key, &line_of),
            Name::Bookmark => return self.bookmark(parse(&revision)?, is_end_of_state(line), phase),
            Name::Error => return Err(Error::Refused(line_of.parse::<Status>()?.boxed())),
        };
        self.has_news = true;
        // The state comes in no order of revisions: only behind all of it there is a place to go on from.
        let revision = if phase == Phase::State { None } else { Some(parse(&revision)?) };
        for member in &mut self.members {
            let is_new = match revision {
                None => member.position.is_none(),
                Some(_) => member.position < revision,
            };
            if is_new {
                member.hear(&self.target, event);
                member.position = revision;
            }
        }
        Ok(phase)
    }

    fn bookmark(&mut self, revision: u64, is_end_of_state: bool, phase: Phase) -> Result<Phase> {
        if phase != Phase::State {
            let behind = self.members.iter_mut().filter(|member| member.position < Some(revision));
            behind.for_each(|member| member.position = Some(revision));
            return Ok(phase);
        }
        if !is_end_of_state {
            return Ok(phase);
        }
        self.has_news = true;
        for member in self.members.iter_mut().filter(|member| member.position.is_none()) {
            member.hear(&self.target, Event::Synced);
            member.position = Some(revision);
        }
        // What follows is all that there is for those who have heard as much.
        let is_behind = self.members.iter().any(|member| member.position < Some(revision));
        Ok(if is_behind || self.has_visitors() { Phase::Over } else { Phase::Changes })
    }
}

fn parse(revision: &str) -> Result<u64> {
    revision.parse().map_err(|_| Error::other(format!("a revision is no number: {revision:?}")))
}

fn is_end_of_state(bookmark: &[u8]) -> bool {
    bookmark.windows(END_OF_STATE.len()).any(|window| window == END_OF_STATE.as_bytes())
}

#[cfg(test)]
mod tests;
