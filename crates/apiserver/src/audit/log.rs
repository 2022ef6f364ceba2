//! Lines on their way to the file.
//!
//! Nobody loses a line, and nobody waits for a disk that keeps up: lines go into a buffer, and one task writes what is there. Where
//! that falls behind, requests wait before they begin, as kube-apiserver's do in its mode `blocking`.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::file::{File, Rotation};
use super::old::Old;

/// Bytes that may wait for the disk before requests wait for it.
const ROOM: usize = 4 << 20;

/// A log that is written to a file, or to the standard output.
pub struct Log {
    pending: Mutex<Vec<u8>>,
    /// Rings when there is something to write.
    bell: Notify,
    /// Rings when something was written.
    written: Notify,
    out: Mutex<Out>,
}

enum Out {
    Standard,
    File(File),
}

impl Log {
    /// A log in a file, which is made where it is missing; `-` is the standard output.
    ///
    /// # Errors
    /// Why the file cannot be written.
    pub fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        let out = match path.to_str() {
            Some("-") => Out::Standard,
            _ => Out::File(File::open(path, rotation)?),
        };
        Ok(Self {
            pending: Mutex::default(),
            bell: Notify::new(),
            written: Notify::new(),
            out: Mutex::new(out),
        })
    }

    /// Adds a line.
    pub(super) fn add(&self, line: &[u8]) {
        self.pending().extend_from_slice(line);
        self.bell.notify_one();
    }

    /// Waits until the disk keeps up.
    pub(super) async fn room(&self) {
        loop {
            let written = self.written.notified();
            if self.pending().len() < ROOM {
                return;
            }
            written.await;
        }
    }

    /// Writes lines as they come, for ever.
    pub(crate) async fn keep(self: Arc<Self>) {
        let mut tidying = JoinSet::new();
        loop {
            self.bell.notified().await;
            let log = Arc::clone(&self);
            // Writing waits for the disk, which no task of a request's may.
            let _ = tokio::task::spawn_blocking(move || log.flush()).await;
            // Nobody waits until old files are compressed; two at once would get in each other's way.
            let _ = tidying.try_join_next();
            if tidying.is_empty()
                && let Some(old) = self.untidy()
            {
                tidying.spawn_blocking(move || {
                    if let Err(error) = old.tidy(Timestamp::now()) {
                        tracing::warn!(%error, "old files of the audit log cannot be tidied up");
                    }
                });
            }
        }
    }

    /// Writes all lines that there are.
    pub fn flush(&self) {
        // In this order, so that two who do it at once do not turn the lines around.
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = std::mem::take(&mut *self.pending());
        let result = match &mut *out {
            Out::Standard => io::stdout().lock().write_all(&lines),
            Out::File(file) => file.write(&lines),
        };
        if let Err(error) = result {
            tracing::error!(%error, "events of the audit log are lost");
        }
        self.written.notify_waiters();
    }

    fn untidy(&self) -> Option<Old> {
        match &mut *self.out.lock().unwrap_or_else(PoisonError::into_inner) {
            Out::Standard => None,
            Out::File(file) => file.untidy(),
        }
    }

    fn pending(&self) -> MutexGuard<'_, Vec<u8>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn requests_wait_for_a_disk_that_falls_behind_and_no_line_is_lost() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let log = Log::open(file.path(), Rotation::default()).unwrap();
        let line = [vec![b'a'; ROOM - 2], vec![b'\n']].concat();
        log.add(&line);
        assert!(log.room().now_or_never().is_some());
        log.add(b"b\n");
        let mut room = Box::pin(log.room());
        assert!(room.as_mut().now_or_never().is_none());
        log.flush();
        assert!(room.now_or_never().is_some());
        log.add(b"c\n");
        drop(log);
        assert!(std::fs::read(file.path()).unwrap() == [line, b"b\nc\n".to_vec()].concat());
    }
}
