//! How far a copy is, for a person who waits for it: one line on standard error, and nothing where nobody looks.

use std::{
    io::{self, IsTerminal, Read, Write},
    time::{Duration, Instant},
};

/// How often the line is written.
const INTERVAL: Duration = Duration::from_millis(100);

/// Shows how much has been read through it.
pub(crate) struct Progress<R> {
    inner: R,
    done: u64,
    total: u64,
    shown: Option<Instant>,
    is_watched: bool,
}

impl<R> Progress<R> {
    pub(crate) fn new(inner: R, total: u64) -> Self {
        Self { inner, done: 0, total, shown: None, is_watched: io::stderr().is_terminal() }
    }

    fn show(&mut self) {
        let is_due = self.shown.is_none_or(|shown| shown.elapsed() >= INTERVAL) || self.done == self.total;
        if self.is_watched && is_due {
            self.shown = Some(Instant::now());
            let end = if self.done == self.total { "\n" } else { "" };
            let _ = write!(io::stderr(), "\r{}{end}", line(self.done, self.total));
        }
    }
}

fn line(done: u64, total: u64) -> String {
    let percent = done.saturating_mul(100).checked_div(total).unwrap_or(100);
    format!("copied {} of {} ({percent} %)", size(done), size(total))
}

/// A number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    let whole = bytes >> 20;
    let tenth = ((bytes & ((1 << 20) - 1)) * 10) >> 20;
    format!("{whole}.{tenth} MiB")
}

impl<R: Read> Read for Progress<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        self.done += read as u64;
        if read > 0 {
            self.show();
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_bytes_and_percent() {
        assert_eq!(line(0, 0), "copied 0.0 MiB of 0.0 MiB (100 %)");
        assert_eq!(line(3 << 19, 3 << 20), "copied 1.5 MiB of 3.0 MiB (50 %)");
    }
}
