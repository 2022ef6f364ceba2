//! A child process: this test program, started again with a role in its environment.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::line::Line;

const ORDERS: &str = "ORLOP_CRASH_ORDERS";

/// Task of a writer process.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The folder of the database.
    pub folder: PathBuf,
    /// Seed of its random choices.
    pub seed: u64,
    /// Number of earlier processes.
    pub round: u64,
    /// Pages after which the write-ahead log is folded back.
    pub checkpoint_pages: u32,
}

impl Orders {
    /// The orders of this process, if it is a writer.
    pub fn received() -> Option<Self> {
        let text = std::env::var(ORDERS).ok()?;
        let mut parts = text.splitn(4, ' ');
        let mut next = || parts.next().expect("the orders have four parts");
        let seed = next().parse().expect("the seed is a number");
        let round = next().parse().expect("the round is a number");
        let checkpoint_pages = next().parse().expect("the pages are a number");
        Some(Self { folder: next().into(), seed, round, checkpoint_pages })
    }

    fn text(&self) -> String {
        let folder = self.folder.to_str().expect("a temporary folder has a plain name");
        format!("{} {} {} {folder}", self.seed, self.round, self.checkpoint_pages)
    }
}

/// The name of a test in the test harness.
pub fn name_of<T>(_test: T) -> &'static str {
    let path = std::any::type_name::<T>();
    path.rsplit_once("::").map_or(path, |(_, name)| name)
}

/// The command that runs one test of this program again.
pub fn again(wrapper: &[&str], test: &str) -> Command {
    let program = std::env::current_exe().expect("a running program has a file");
    let mut command = match wrapper {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command
}

/// A running writer. It does not outlive this value.
pub struct Process {
    child: Child,
    lines: Receiver<Line>,
    reader: Option<JoinHandle<()>>,
    complaints: PathBuf,
}

/// Result of waiting for a line.
#[derive(Debug)]
pub enum Heard {
    /// A line.
    Line(Line),
    /// None until the given time.
    Nothing,
}

impl Process {
    /// Starts `test` again as a writer.
    pub fn start(test: &str, orders: &Orders) -> Self {
        let complaints = orders.folder.join("complaints");
        let stderr = File::create(&complaints).expect("the folder is ours");
        let mut child = again(&[], test)
            .env(ORDERS, orders.text())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("this program starts again");
        let stdout = child.stdout.take().expect("it is piped");
        let (send, lines) = channel();
        let reader = std::thread::spawn(move || read(stdout, &send));
        Self { child, lines, reader: Some(reader), complaints }
    }

    /// Waits for the next line, not longer than until `deadline`.
    pub fn hear(&mut self, deadline: Instant) -> Heard {
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => Heard::Line(line),
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => panic!("the writer ended: {}", self.complaints()),
        }
    }

    /// Kills it, and returns the lines that were not read yet. It must have been running until then.
    pub fn kill(mut self) -> Vec<Line> {
        self.child.kill().expect("a child can be killed");
        let status = self.child.wait().expect("a killed child ends");
        self.reader.take().expect("it is joined once").join().expect("the reader ends with the pipe");
        let complaints = self.complaints();
        assert!(status.signal() == Some(9) && complaints.is_empty(), "the writer: {status}: {complaints}");
        self.lines.try_iter().collect()
    }

    fn complaints(&self) -> String {
        read_to_string(&self.complaints)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It fails for a child that was waited for, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_to_string(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| format!("(its complaints are unreadable: {error})"))
}

/// Passes on whole lines; a line that the kill cut off is dropped.
fn read(stdout: ChildStdout, send: &Sender<Line>) {
    let mut stdout = BufReader::new(stdout);
    let mut text = String::new();
    while stdout.read_line(&mut text).is_ok_and(|length| length > 0) && text.ends_with('\n') {
        // The receiver may be gone.
        if let Some(line) = Line::parse(text.trim_end())
            && send.send(line).is_err()
        {
            return;
        }
        text.clear();
    }
}
