//! Servers under test: processes that are started, awaited and stopped.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::{Client, Endpoint};

/// The time limit for a server to become ready.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The time after which a server that has not stopped is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// A path that every server answers to an authorized client.
pub const FIRST_QUESTION: &str = "/api/v1/namespaces/default";

/// A running server: one process, or kube-apiserver with etcd.
pub struct Server {
    /// The address and credentials.
    pub endpoint: Endpoint,
    /// The time from the start of the process to its first response to an authenticated client.
    pub start: Duration,
    /// Stopped in reverse order.
    processes: Vec<Child>,
}

impl Server {
    /// A server that has responded.
    pub fn new(endpoint: Endpoint, start: Duration, processes: Vec<Child>) -> Self {
        Self { endpoint, start, processes }
    }

    /// Adds a process that belongs to the server.
    pub fn add(&mut self, process: Child) {
        self.processes.push(process);
    }

    /// The ids of its processes.
    pub fn pids(&self) -> Vec<u32> {
        self.processes.iter().filter_map(Child::id).collect()
    }

    /// Stops the server with SIGTERM and waits until it has ended.
    pub async fn stop(mut self) -> Result<()> {
        while let Some(process) = self.processes.pop() {
            stop(process).await?;
        }
        Ok(())
    }
}

async fn stop(mut process: Child) -> Result<()> {
    if let Some(pid) = process.id() {
        Command::new("kill").arg(pid.to_string()).status().await.context("kill cannot be run")?;
    }
    if timeout(STOP_TIMEOUT, process.wait()).await.is_err() {
        process.kill().await?;
    }
    Ok(())
}

/// The program of this workspace.
#[derive(Clone, Debug)]
pub struct Orlop {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Orlop {
    /// Uses the given program, or builds it.
    pub async fn find(given: Option<&Path>) -> Result<Self> {
        if let Some(program) = given {
            return Ok(Self { program: program.to_owned(), arguments: Vec::new() });
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo).args(["build", "--release", "--package", "orlop"]).status().await;
        ensure!(
            built.context("cannot run cargo; give the server with --orlop PATH")?.success(),
            "no server was built"
        );
        // The target folder is the one of this program, in any profile.
        let bench = std::env::current_exe()?;
        let target =
            bench.parent().and_then(Path::parent).context("this program lies in no target folder")?;
        Ok(Self { program: target.join("release").join("orlop"), arguments: Vec::new() })
    }

    /// The same program with these additional arguments.
    pub fn with(&self, arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self { program: self.program.clone(), arguments: arguments.into_iter().collect() }
    }

    /// The path of the program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Starts it with a data folder and waits for its first response.
    pub async fn start(&self, folder: &Path, postgres: Option<&str>) -> Result<Server> {
        self.start_at(0, folder, postgres).await
    }

    /// Like [`Orlop::start`] on a given port, for restarts.
    pub async fn start_at(&self, port: u16, folder: &Path, postgres: Option<&str>) -> Result<Server> {
        std::fs::create_dir_all(folder)?;
        let log = std::fs::File::create(folder.join("bench.log"))?;
        let begin = Instant::now();
        let mut command = Command::new(&self.program);
        command.arg("serve").arg("--data").arg(folder).args(["--listen", &format!("127.0.0.1:{port}")]);
        command.args(&self.arguments);
        if let Some(url) = postgres {
            command.args(["--postgres", url]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        let mut process =
            command.spawn().with_context(|| format!("{} cannot be run", self.program.display()))?;
        let stdout = process.stdout.take().context("the server has no standard output")?;
        let ready = timeout(START_TIMEOUT, BufReader::new(stdout).lines().next_line()).await??;
        if ready.is_none() {
            let log = std::fs::read_to_string(folder.join("bench.log")).unwrap_or_default();
            bail!("the server did not start: {}", log.lines().last().unwrap_or("it said nothing"));
        }
        let kubeconfig =
            std::fs::read_to_string(folder.join("kubeconfig")).context("the server wrote no kubeconfig")?;
        let endpoint = Endpoint::from_kubeconfig(&kubeconfig)?;
        Client::connect(&endpoint, 1).await?.connection().get(FIRST_QUESTION).await?;
        Ok(Server::new(endpoint, begin.elapsed(), vec![process]))
    }
}

/// Polls until the server responds.
pub async fn until_answered(endpoint: &Endpoint, process: &mut Child) -> Result<()> {
    let begin = Instant::now();
    loop {
        let asked = async {
            let client = Client::connect(endpoint, 1).await?;
            client.connection().get("/readyz").await?;
            client.connection().get(FIRST_QUESTION).await
        };
        let Err(error) = asked.await else { return Ok(()) };
        if let Some(status) = process.try_wait()? {
            bail!("the server ended: {status}");
        }
        ensure!(begin.elapsed() < START_TIMEOUT, "the server was not ready in time: {error:#}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
