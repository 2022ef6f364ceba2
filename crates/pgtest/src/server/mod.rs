//! The server process: create, start, stop in several ways, start again.

mod copies;

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use crate::{Error, account::Account, binaries::Binaries, caretaker::Caretaker};

/// The time limit for a server to accept connections.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Another process may take a free port between its selection and the server's bind.
const PORT_ATTEMPTS: usize = 5;

/// The number of log lines that an error shows.
const LOG_LINES: usize = 20;

/// The log lines that report readiness: of a primary, and of a standby.
const READY: [&str; 2] = [
    "database system is ready to accept connections",
    "database system is ready to accept read-only connections",
];

/// The way to stop a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Closes connections, then shuts down in order.
    Fast,
    /// Every process quits at once; the next start recovers from the write-ahead log.
    Immediate,
    /// SIGKILL to the main process; the others end when they notice.
    Kill,
}

/// A running private PostgreSQL server.
#[derive(Debug)]
pub struct PgServer {
    // Field order is drop order: the caretaker stops the server, then the process is waited for.
    caretaker: Caretaker,
    running: Option<Running>,
    binaries: Binaries,
    account: Account,
    settings: Vec<String>,
    port: u16,
    databases: AtomicU32,
}

impl PgServer {
    /// Creates a server with PostgreSQL's default settings and waits until it accepts connections.
    ///
    /// # Errors
    /// When PostgreSQL is not installed (the message names the package) or does not start.
    pub fn start() -> Result<Self, Error> {
        Self::start_with(&[])
    }

    /// Like [`PgServer::start`], with settings of `postgresql.conf`, each as `name=value`.
    ///
    /// # Errors
    /// As [`PgServer::start`].
    pub fn start_with(settings: &[&str]) -> Result<Self, Error> {
        let mut server = Self::without_data()?;
        server.settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        server.init()?;
        server.launch_on_a_free_port()?;
        Ok(server)
    }

    /// The connection URL of the default database, for `tokio_postgres::connect`.
    #[must_use]
    pub fn url(&self) -> String {
        self.database_url("postgres")
    }

    /// Creates an empty database and returns its URL.
    ///
    /// # Errors
    /// When the server is not running.
    pub fn create_database(&self) -> Result<String, Error> {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let mut createdb = self.account.command(&self.binaries.path("createdb"));
        createdb.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string(), &name]);
        finish(&mut createdb)?;
        Ok(self.database_url(&name))
    }

    /// The port of the server on 127.0.0.1; it stays the same across restarts.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of PostgreSQL's programs, `pg_dump` and `pg_restore` among them.
    #[must_use]
    pub fn programs(&self) -> &Path {
        self.binaries.folder()
    }

    /// Stops the server and waits until none of its processes is left. The data stays.
    ///
    /// # Errors
    /// When the server cannot be stopped.
    pub fn stop(&mut self, how: Stop) -> Result<(), Error> {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        let mode = match how {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
            Stop::Kill => {
                running.process.kill().map_err(|error| Error::because("cannot kill the server", error))?;
                running.wait();
                return Ok(());
            }
        };
        let mut pg_ctl = self.account.command(&self.binaries.path("pg_ctl"));
        finish(pg_ctl.arg("stop").arg("-D").arg(self.data()).args(["-m", mode, "-s"]))?;
        running.wait();
        Ok(())
    }

    /// Starts a stopped server again, on the same port and data, and waits until it accepts connections.
    ///
    /// # Errors
    /// When it does not start.
    pub fn resume(&mut self) -> Result<(), Error> {
        if self.running.is_none() {
            self.running = Some(self.launch(self.port)?);
        }
        Ok(())
    }

    /// [`PgServer::stop`], then [`PgServer::resume`].
    ///
    /// # Errors
    /// As those.
    pub fn restart(&mut self, how: Stop) -> Result<(), Error> {
        self.stop(how)?;
        self.resume()
    }

    /// A server with default settings that does not run.
    fn without_data() -> Result<Self, Error> {
        let binaries = Binaries::find()?;
        let account = Account::of_tests()?;
        let caretaker = Caretaker::of(&Caretaker::folder_for(account)?, account, &binaries)?;
        let (settings, databases) = (Vec::new(), AtomicU32::new(0));
        Ok(Self { caretaker, running: None, binaries, account, settings, port: 0, databases })
    }

    fn data(&self) -> PathBuf {
        self.caretaker.folder().join("data")
    }

    fn database_url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    fn init(&self) -> Result<(), Error> {
        let mut initdb = self.account.command(&self.binaries.path("initdb"));
        initdb.args([
            "--no-sync",
            "--no-instructions",
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
        ]);
        initdb.args(["--locale=C.UTF-8", "--lc-messages=C", "--locale-provider=icu", "--icu-locale=en-US"]);
        finish(initdb.arg("-D").arg(self.data()))
    }

    fn launch_on_a_free_port(&mut self) -> Result<(), Error> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            self.port = free_port()?;
            match self.launch(self.port) {
                Err(error) if attempts < PORT_ATTEMPTS && error.0.contains("could not bind") => {}
                Err(error) => return Err(error),
                Ok(running) => {
                    self.running = Some(running);
                    return Ok(());
                }
            }
        }
    }

    fn launch(&self, port: u16) -> Result<Running, Error> {
        let mut postgres = self.account.command(&self.binaries.path("postgres"));
        postgres.arg("-D").arg(self.data()).arg("-p").arg(port.to_string());
        for setting in ["listen_addresses=127.0.0.1", "unix_socket_directories="] {
            postgres.args(["-c", setting]);
        }
        for setting in &self.settings {
            postgres.args(["-c", setting]);
        }
        Running::start(postgres)
    }
}

/// The server's main process and the thread that reads its log.
#[derive(Debug)]
struct Running {
    process: Child,
    reader: Option<thread::JoinHandle<()>>,
}

impl Running {
    fn start(mut postgres: Command) -> Result<Self, Error> {
        let mut process = postgres
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Error::because("cannot start postgres", error))?;
        let log = process.stderr.take().expect("stderr was asked to be a pipe");
        let (sender, ready) = mpsc::sync_channel(1);
        let reader = Some(thread::spawn(move || read_log(log, &sender)));
        let running = Self { process, reader };
        match ready.recv_timeout(START_TIMEOUT) {
            Ok(Ok(())) => Ok(running),
            Ok(Err(log)) => Err(Error::because("PostgreSQL did not start", log)),
            Err(_) => Err(Error(format!("PostgreSQL was not ready after {START_TIMEOUT:?}"))),
        }
    }

    /// Waits until every server process has ended: each of them holds the write end of the log's pipe.
    fn wait(&mut self) {
        let _ = self.process.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        self.wait();
    }
}

/// Reports once that the server is ready, or its last log lines if it ends before, and reads on until the
/// end: a server whose log is not read would block.
fn read_log(log: impl Read, report: &mpsc::SyncSender<Result<(), String>>) {
    let mut tail = VecDeque::new();
    for line in BufReader::new(log).lines().map_while(Result::ok) {
        if READY.iter().any(|ready| line.contains(ready)) {
            let _ = report.try_send(Ok(()));
        }
        if tail.len() == LOG_LINES {
            tail.pop_front();
        }
        tail.push_back(line);
    }
    let _ = report.try_send(Err(Vec::from(tail).join("\n")));
}

fn finish(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| Error::because(&program, error))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(Error::because(
        &program,
        format_args!("{}: {}", output.status, String::from_utf8_lossy(&text).trim()),
    ))
}

fn free_port() -> Result<u16, Error> {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    Ok(address.map_err(|error| Error::because("no free port on 127.0.0.1", error))?.port())
}
