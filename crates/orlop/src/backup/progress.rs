//! Progress of a copy: one line on a terminal, an occasional line elsewhere.

use std::{
    io::{self, IsTerminal, Read, Write},
    time::{Duration, Instant},
};

use store::sqlite::Copied;

/// The interval of updates on a terminal.
const ON_TERMINAL: Duration = Duration::from_millis(100);

/// The interval of lines elsewhere, such as in the log of a nightly job.
const ELSEWHERE: Duration = Duration::from_secs(10);

/// Prints progress to standard error.
pub(crate) struct Display {
    shown: Option<Instant>,
    is_terminal: bool,
}

impl Display {
    pub(crate) fn new(now: Instant) -> Self {
        let is_terminal = io::stderr().is_terminal();
        // A terminal shows the first line at once, a log after an interval.
        Self { shown: (!is_terminal).then_some(now), is_terminal }
    }

    /// Prints a line if the interval has passed, or if it is the last one.
    pub(crate) fn show(&mut self, is_last: bool, now: Instant, line: impl FnOnce() -> String) {
        if let Some(text) = self.text(is_last, now, line) {
            let _ = write!(io::stderr(), "{text}");
        }
    }

    fn text(&mut self, is_last: bool, now: Instant, line: impl FnOnce() -> String) -> Option<String> {
        let interval = if self.is_terminal { ON_TERMINAL } else { ELSEWHERE };
        let is_due = self.shown.is_none_or(|shown| now - shown >= interval);
        if !(is_due || is_last) {
            return None;
        }
        self.shown = Some(now);
        Some(match (self.is_terminal, is_last) {
            (true, false) => format!("\r{}", line()),
            (true, true) => format!("\r{}\n", line()),
            (false, _) => format!("{}\n", line()),
        })
    }
}

/// A reader that prints its progress.
pub(crate) struct Progress<R> {
    inner: R,
    done: u64,
    total: u64,
    display: Display,
}

impl<R> Progress<R> {
    pub(crate) fn new(inner: R, total: u64) -> Self {
        Self { inner, done: 0, total, display: Display::new(Instant::now()) }
    }
}

impl<R: Read> Read for Progress<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        self.done += read as u64;
        if read > 0 {
            let (done, total) = (self.done, self.total);
            self.display.show(done == total, Instant::now(), || line(done, total));
        }
        Ok(read)
    }
}

/// Prints the progress of the copy of a file.
pub(crate) fn of_pages() -> impl FnMut(Copied) {
    let mut display = Display::new(Instant::now());
    move |Copied { pages, total }| {
        let line = || format!("copied {pages} of {total} pages ({} %)", percent(pages, total));
        display.show(pages == total, Instant::now(), line);
    }
}

fn line(done: u64, total: u64) -> String {
    format!("received {} of {} ({} %)", size(done), size(total), percent(done, total))
}

fn percent(done: u64, total: u64) -> u64 {
    done.saturating_mul(100).checked_div(total).unwrap_or(100)
}

/// A readable number of bytes.
pub(crate) fn size(bytes: u64) -> String {
    let whole = bytes >> 20;
    let tenth = ((bytes & ((1 << 20) - 1)) * 10) >> 20;
    format!("{whole}.{tenth} MiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_bytes_and_percent() {
        assert_eq!(line(0, 0), "received 0.0 MiB of 0.0 MiB (100 %)");
        assert_eq!(line(3 << 19, 3 << 20), "received 1.5 MiB of 3.0 MiB (50 %)");
    }

    #[test]
    fn lines_come_at_their_pace_and_the_last_one_always() {
        let start = Instant::now();
        let texts = |is_terminal: bool, shown: Option<Instant>, times: [u64; 4]| {
            let mut display = Display { shown, is_terminal };
            let text = |milliseconds| start + Duration::from_millis(milliseconds);
            times.map(|time| display.text(time == times[3], text(time), || time.to_string()))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(texts(true, None, [0, 99, 100, 101]), [some("\r0"), None, some("\r100"), some("\r101\n")]);
        let elsewhere = texts(false, Some(start), [0, 9_999, 10_000, 10_001]);
        assert_eq!(elsewhere, [None, None, some("10000\n"), some("10001\n")]);
    }
}
