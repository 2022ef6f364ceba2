//! The queue of audit events.
//!
//! No event is lost: events are grouped, and one task writes a group with one call. In the blocking modes a response ends
//! after the group of its last event is written; it waits for no other group. In every mode new requests wait if the disk
//! falls far behind.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

use super::file::{File, Rotation};
use super::rotation::RotatedFiles;

/// Queued bytes above which new requests wait.
const ROOM: usize = 4 << 20;

/// The mode of `--audit-log-mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Responses do not wait for their events.
    Batch,
    /// A response ends after its events are written.
    #[default]
    Blocking,
    /// Like blocking; a request fails if its first event cannot be written.
    BlockingStrict,
}

impl Mode {
    /// The names of all modes, in the order of Kubernetes.
    pub const NAMES: [&str; 3] = ["batch", "blocking", "blocking-strict"];

    /// The mode of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "batch" => Self::Batch,
            "blocking" => Self::Blocking,
            "blocking-strict" => Self::BlockingStrict,
            _ => return None,
        })
    }
}

/// Resolves with whether a group was written; closes without a value if the writer is gone.
pub(super) type Written = oneshot::Receiver<bool>;

/// Events that are written with one call.
#[derive(Default)]
struct EventGroup {
    lines: Vec<u8>,
    waiting: Vec<oneshot::Sender<bool>>,
}

/// An audit log in a file or on standard output.
pub struct Log {
    mode: Mode,
    pending: Mutex<EventGroup>,
    /// Wakes the writer.
    bell: Notify,
    /// Wakes requests that wait for the disk.
    written: Notify,
    out: Mutex<Out>,
    /// Whether the last write failed.
    is_failing: AtomicBool,
}

enum Out {
    Standard,
    File(File),
}

impl Log {
    /// Opens or creates a log file; `-` is standard output.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        let out = match path.to_str() {
            Some("-") => Out::Standard,
            _ => Out::File(File::open(path, rotation)?),
        };
        Ok(Self {
            mode: Mode::default(),
            pending: Mutex::default(),
            bell: Notify::new(),
            written: Notify::new(),
            out: Mutex::new(out),
            is_failing: AtomicBool::new(false),
        })
    }

    /// Sets the mode.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// Queues an event. In the blocking modes returns a receiver for its write.
    pub(super) fn add(&self, line: &[u8]) -> Option<Written> {
        let mut pending = self.pending();
        pending.lines.extend_from_slice(line);
        let written = (self.mode != Mode::Batch).then(|| {
            let (sender, written) = oneshot::channel();
            pending.waiting.push(sender);
            written
        });
        drop(pending);
        self.bell.notify_one();
        written
    }

    /// Waits until the queue has room.
    pub(super) async fn room(&self) {
        loop {
            let written = self.written.notified();
            if self.pending().lines.len() < ROOM {
                return;
            }
            written.await;
        }
    }

    /// Writes queued events for ever.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut tidying = JoinSet::new();
        loop {
            self.bell.notified().await;
            let log = Arc::clone(&self);
            // File writes block, so they run outside the async workers.
            tasks::propagate(tokio::task::spawn_blocking(move || log.flush()).await);
            // Cleanup runs in the background, one at a time.
            tidying.try_join_next().and_then(tasks::propagate);
            if tidying.is_empty()
                && let Some(old) = self.pending_cleanup()
            {
                tidying.spawn_blocking(move || {
                    if let Err(error) = old.clean_up(Timestamp::now()) {
                        tracing::warn!(%error, "cannot clean up rotated files of the audit log");
                    }
                });
            }
        }
    }

    /// Writes all queued events.
    pub fn flush(&self) {
        // Locked before the queue is taken, so concurrent flushes keep the order.
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let EventGroup { lines, waiting } = std::mem::take(&mut *self.pending());
        let result = match &mut *out {
            Out::Standard => io::stdout().lock().write_all(&lines),
            Out::File(file) => file.write(&lines),
        };
        self.is_failing.store(result.is_err(), Ordering::Relaxed);
        if let Err(error) = &result {
            tracing::error!(%error, "cannot write the audit log; events are lost");
        }
        // A cancelled request no longer waits.
        for waiting in waiting {
            let _ = waiting.send(result.is_ok());
        }
        self.written.notify_waiters();
    }

    /// Whether the last lines could not be written.
    pub(crate) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    fn pending_cleanup(&self) -> Option<RotatedFiles> {
        match &mut *self.out.lock().unwrap_or_else(PoisonError::into_inner) {
            Out::Standard => None,
            Out::File(file) => file.pending_cleanup(),
        }
    }

    fn pending(&self) -> MutexGuard<'_, EventGroup> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until an event is written; false if it was lost.
pub(super) async fn written_to_file(written: Option<Written>) -> bool {
    match written {
        Some(written) => written.await.unwrap_or(true),
        None => true,
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn an_event_waits_for_the_write_of_its_own_group_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let log = Log::open(file.path(), Rotation::default()).unwrap();
        let mut first = log.add(b"a\n").unwrap();
        let second = log.add(b"b\n").unwrap();
        drop(second);
        assert!(first.try_recv().is_err(), "nothing is written yet");
        log.flush();
        let mut third = log.add(b"c\n").unwrap();
        assert_eq!((first.try_recv(), third.try_recv().is_err()), (Ok(true), true));
        assert_eq!(std::fs::read(file.path()).unwrap(), b"a\nb\n", "a cancelled request's event stays");
        drop(log);
        assert_eq!(third.try_recv(), Ok(true), "the end of the log writes what is left");
        let batch = Log::open(file.path(), Rotation::default()).unwrap().with_mode(Mode::Batch);
        assert!(batch.add(b"d\n").is_none(), "no receiver in batch mode");
    }

    #[test]
    fn requests_wait_for_a_disk_that_falls_behind_and_no_line_is_lost() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let log = Log::open(file.path(), Rotation::default()).unwrap();
        let line = [vec![b'a'; ROOM - 2], vec![b'\n']].concat();
        let _ = log.add(&line);
        assert!(log.room().now_or_never().is_some());
        let _ = log.add(b"b\n");
        let mut room = Box::pin(log.room());
        assert!(room.as_mut().now_or_never().is_none());
        log.flush();
        assert!(room.now_or_never().is_some());
        let _ = log.add(b"c\n");
        drop(log);
        assert!(std::fs::read(file.path()).unwrap() == [line, b"b\nc\n".to_vec()].concat());
    }
}
