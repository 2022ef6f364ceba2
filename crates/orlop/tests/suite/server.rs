//! A running `orlop`, for tests: started on a free port in a folder of its own, killed when dropped.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{ExitStatus, Output, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

/// Far more than a start or stop takes on a busy machine; only a test that fails waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server process that has printed that it is ready.
pub struct Server {
    process: Child,
    /// HOST:PORT that it serves on.
    pub address: String,
    /// The path that it printed.
    pub kubeconfig: PathBuf,
    /// All lines that it printed up to the ready ones.
    pub printed: Vec<String>,
    log: PathBuf,
}

impl Server {
    /// Starts `orlop ROLE --data FOLDER --listen 127.0.0.1:0 ARGUMENTS` and waits until it is ready.
    pub async fn start(role: &str, folder: &Path, arguments: &[&str]) -> Self {
        Self::start_as(orlop(), role, folder, arguments).await
    }

    /// The same from a shell that has run a command before, such as `umask 000`.
    pub async fn start_behind(command: &str, role: &str, folder: &Path) -> Self {
        let mut shell = without_settings(Command::new("sh"));
        shell.args(["-c", &format!("{command} && exec \"$@\""), "sh", env!("CARGO_BIN_EXE_orlop")]);
        Self::start_as(shell, role, folder, &[]).await
    }

    async fn start_as(mut program: Command, role: &str, folder: &Path, arguments: &[&str]) -> Self {
        let log = folder.with_extension("log");
        let mut process = program
            .args([role, "--listen", "127.0.0.1:0", "--data"])
            .arg(folder)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).expect("the log's folder is there"))
            .kill_on_drop(true)
            .spawn()
            .expect("the binary was built with this test");
        let mut lines = BufReader::new(process.stdout.take().expect("stdout is a pipe")).lines();
        let mut printed = Vec::new();
        while !printed.iter().any(|line: &String| line.trim_start().starts_with("try ")) {
            match timeout(PATIENCE, lines.next_line()).await {
                Ok(Ok(Some(line))) => printed.push(line),
                ended => panic!("not ready, but {ended:?}: {}", fs::read_to_string(&log).unwrap_or_default()),
            }
        }
        let value = |label: &str| {
            let line = printed.iter().find_map(|line| line.trim_start().strip_prefix(label));
            line.unwrap_or_else(|| panic!("{label} in {printed:?}")).trim().to_owned()
        };
        let (address, kubeconfig) =
            (value("Orlop is ready at https://"), PathBuf::from(value("kubeconfig ")));
        Self { process, address, kubeconfig, printed, log }
    }

    /// Sends a signal and waits until the process has exited.
    pub async fn stop(&mut self, signal: &str) -> ExitStatus {
        let id = self.process.id().expect("the process has not been waited for").to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status().await.expect("kill can be run");
        assert!(sent.success());
        timeout(PATIENCE, self.process.wait()).await.expect("it ends").expect("it can be waited for")
    }

    /// The soft and the hard limit of its open files.
    pub fn file_limits(&self) -> [String; 2] {
        let id = self.process.id().expect("the process has not been waited for");
        let limits = fs::read_to_string(format!("/proc/{id}/limits")).expect("the process is there");
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let mut values = line.expect("the limit is listed").split_whitespace().map(str::to_owned);
        [(); 2].map(|()| values.next().expect("there are two limits"))
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("the log is there")
    }
}

/// The binary, without settings of the machine that runs the test.
fn orlop() -> Command {
    without_settings(Command::new(env!("CARGO_BIN_EXE_orlop")))
}

fn without_settings(mut command: Command) -> Command {
    command.env_remove("ORLOP_POSTGRES").env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    command
}

/// Runs `orlop ARGUMENTS` until it exits by itself.
pub async fn run(arguments: &[&str]) -> Output {
    let output = orlop().args(arguments).kill_on_drop(true).output();
    timeout(PATIENCE, output).await.expect("it ends").expect("the binary can be run")
}
