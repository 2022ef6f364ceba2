//! The API, measured over TLS by a client process: Orlop and Kubernetes.

mod client;
mod crds;
mod deletions;
mod endpoint;
mod kubernetes;
mod lists;
mod pods;
mod requests;
mod server;
mod startup;
mod watches;

use anyhow::{Context, Result};
use tempfile::TempDir;

pub use self::client::Client;
pub use self::endpoint::{Credentials, Endpoint};
use self::kubernetes::Kubernetes;
pub use self::server::{Orlop, Server};
use crate::database::{PostgresDatabase, PostgresServer};
use crate::figure::sized;
use crate::raw::tls::RawServer;
use crate::report::{Engine, KUBERNETES, Report, progress};

const SQLITE: Engine = Engine { name: "SQLite file", busy: "bench, orlop" };
const POSTGRES: Engine = Engine { name: "PostgreSQL", busy: "bench, orlop, PostgreSQL" };

const START_FRESH: &str = "api start to first answer, fresh folder";
const START_AGAIN: &str = "api start to first answer, existing folder";
const IDLE: &str = "api idle memory";
const BINARY: &str = "api size of the program";
const CREATE_ONE: &str = "api create, 1 client";
const GET_ONE: &str = "api get, 1 client";
const CREATE_MANY: &str = "api create, 64 in flight";
const GET_MANY: &str = "api get, 64 in flight";
const PAGES: &str = "api list of {n}, pages of 500";
const WHOLE: &str = "api list of {n}, whole";
const FIRST: &str = "api list of {n}, first byte";
const GROWTH: &str = "api list of {n}, memory that the server needs for it";
const MEMORY: &str = "api memory per idle watcher";
const LAG: &str = "api watch lag, p99";
const LAG_ACROSS: &str = "api watch lag across two servers, p99";
const FAN_OUT: &str = "api watch fan-out to 1,000 watchers";

/// Runs all selected measures on every server.
pub async fn run(report: &mut Report) {
    let wanted: Vec<_> = [SQLITE, POSTGRES, KUBERNETES]
        .into_iter()
        .filter(|&engine| engine != KUBERNETES || report.args.kubernetes.is_some())
        .filter(|&engine| all_measures(report).iter().any(|measure| report.wants(measure, engine)))
        .collect();
    let mut programs = Programs { orlop: None, kubernetes: None, postgres: None };
    for engine in wanted {
        progress(&format!("the API on {}", engine.name));
        match programs.prepare(report, engine).await {
            Ok(()) => on_engine(report, engine, &programs).await,
            Err(error) => report.section("api", engine, Err(error)),
        }
    }
}

fn all_measures(report: &Report) -> Vec<String> {
    let single = [
        START_FRESH,
        START_AGAIN,
        IDLE,
        BINARY,
        CREATE_ONE,
        GET_ONE,
        CREATE_MANY,
        GET_MANY,
        MEMORY,
        LAG,
        LAG_ACROSS,
        FAN_OUT,
    ];
    let mut names: Vec<String> = single.map(str::to_owned).to_vec();
    for count in report.sizes.api_lists {
        names.extend([PAGES, WHOLE, FIRST, GROWTH].map(|name| sized(name, count)));
    }
    names.extend(pods::measures(report.sizes));
    names.extend(crds::measures(report.sizes));
    names.extend(deletions::measures(report.sizes));
    names
}

/// The programs that servers are started from.
struct Programs {
    orlop: Option<Orlop>,
    kubernetes: Option<Kubernetes>,
    postgres: Option<PostgresServer>,
}

/// A server with its data folder and database.
struct Running {
    server: Server,
    database: Option<PostgresDatabase>,
    _folder: TempDir,
}

impl Programs {
    async fn prepare(&mut self, report: &Report, engine: Engine) -> Result<()> {
        match engine {
            KUBERNETES => self.kubernetes = report.args.kubernetes.as_deref().map(Kubernetes::new),
            _ if self.orlop.is_none() => self.orlop = Some(Orlop::find(report.args.orlop.as_deref()).await?),
            _ => {}
        }
        if engine == POSTGRES {
            self.postgres = Some(PostgresServer::start(report.args.postgres.as_deref())?);
        }
        Ok(())
    }

    fn orlop(&self) -> Result<&Orlop> {
        self.orlop.as_ref().context("the server program was not found")
    }

    /// Starts an empty server.
    async fn start(&self, engine: Engine) -> Result<Running> {
        let folder = TempDir::new()?;
        if engine == KUBERNETES {
            let kubernetes = self.kubernetes.as_ref().context("--kubernetes was not given")?;
            let server = kubernetes.start(folder.path()).await?;
            return Ok(Running { server, database: None, _folder: folder });
        }
        let database = match &self.postgres {
            Some(postgres) if engine == POSTGRES => Some(postgres.create().await?),
            _ => None,
        };
        let url = database.as_ref().map(|database| database.url.as_str());
        let server = self.orlop()?.start(folder.path(), url).await?;
        Ok(Running { server, database, _folder: folder })
    }
}

impl Programs {
    /// Starts kube-controller-manager. Returns false if the program is missing.
    fn start_controllers(&self, running: &mut Running) -> Result<bool> {
        let kubernetes = self.kubernetes.as_ref().context("--kubernetes was not given")?;
        let started =
            kubernetes.start_controllers(running._folder.path(), &running.server.endpoint.address)?;
        let is_there = started.is_some();
        started.into_iter().for_each(|process| running.server.add(process));
        Ok(is_there)
    }
}

impl Running {
    async fn stop(self) -> Result<()> {
        self.server.stop().await?;
        match self.database {
            Some(database) => database.drop().await,
            None => Ok(()),
        }
    }
}

async fn on_engine(report: &mut Report, engine: Engine, programs: &Programs) {
    starting(report, engine, programs).await;
    let done = requesting(report, engine, programs).await;
    report.section("api requests", engine, done);
    // The cost of an encoding does not depend on the engine.
    if engine != POSTGRES {
        let done = pods::run(report, engine, programs).await;
        report.section("api pods", engine, done);
    }
    // Kubernetes would need minutes and gigabytes for this.
    if engine == SQLITE {
        let done = crds::run(report, engine, programs).await;
        report.section("api CRDs", engine, done);
    }
    let done = deletions::run(report, engine, programs).await;
    report.section("api deletions", engine, done);
    let done = watching(report, engine, programs).await;
    report.section("api watches", engine, done);
    let done = listing(report, engine, programs).await;
    report.section("api lists", engine, done);
}

async fn starting(report: &mut Report, engine: Engine, programs: &Programs) {
    let times = if engine == KUBERNETES { 1 } else { report.sizes.starts };
    report.measure(START_FRESH, engine, startup::fresh(programs, engine, times)).await;
    report.measure(START_AGAIN, engine, startup::again(programs, engine, times)).await;
    report.measure(IDLE, engine, startup::idle(programs, engine)).await;
    if engine != POSTGRES {
        report.measure(BINARY, engine, async { startup::size(programs, engine) }).await;
    }
}

async fn requesting(report: &mut Report, engine: Engine, programs: &Programs) -> Result<()> {
    if !report.wants_any(&[CREATE_ONE, GET_ONE, CREATE_MANY, GET_MANY], engine) {
        return Ok(());
    }
    let sizes = report.sizes;
    let raw = RawServer::start().await?;
    let running = programs.start(engine).await?;
    requests::create_namespace(&running.server).await?;
    let bench = requests::Bench::new(&running.server, &raw, requests::CONFIG_MAPS).await?;
    report.measure(CREATE_ONE, engine, bench.create_one(sizes)).await;
    report.measure(GET_ONE, engine, bench.get_one(sizes)).await;
    report.measure(CREATE_MANY, engine, bench.create_many(sizes)).await;
    report.measure(GET_MANY, engine, bench.get_many(sizes)).await;
    running.stop().await
}

async fn watching(report: &mut Report, engine: Engine, programs: &Programs) -> Result<()> {
    if !report.wants_any(&[MEMORY, LAG, LAG_ACROSS, FAN_OUT], engine) {
        return Ok(());
    }
    let sizes = report.sizes;
    let raw = RawServer::start().await?;
    let running = programs.start(engine).await?;
    let server = &running.server;
    requests::create_namespace(server).await?;
    report.measure(MEMORY, engine, watches::memory(server, sizes)).await;
    report.measure(LAG, engine, watches::lag(server, server, sizes)).await;
    if let Some(database) = running.database.as_ref().filter(|_| report.wants(LAG_ACROSS, engine)) {
        let folder = TempDir::new()?;
        let second = programs.orlop()?.start(folder.path(), Some(&database.url)).await?;
        report.measure(LAG_ACROSS, engine, watches::lag(server, &second, sizes)).await;
        second.stop().await?;
    }
    report.measure(FAN_OUT, engine, watches::fan_out(server, &raw, sizes)).await;
    running.stop().await
}

async fn listing(report: &mut Report, engine: Engine, programs: &Programs) -> Result<()> {
    let sizes = report.sizes;
    let names = |count| [PAGES, WHOLE, FIRST, GROWTH].map(|name| sized(name, count));
    let wanted = |count: &usize| names(*count).iter().any(|name| report.wants(name, engine));
    let Some(most) = sizes.api_lists.into_iter().rfind(wanted) else { return Ok(()) };
    let raw = RawServer::start().await?;
    let running = programs.start(engine).await?;
    requests::create_namespace(&running.server).await?;
    let mut bench = lists::Bench::new(&running.server, &raw, requests::CONFIG_MAPS, 0).await?;
    for count in sizes.api_lists.into_iter().filter(|&count| count <= most) {
        progress(&format!("         creating {count} objects on {}", engine.name));
        bench.fill(count).await?;
        let [pages, whole, first, growth] = names(count);
        report.measure(&pages, engine, bench.pages(sizes)).await;
        report.measure(&whole, engine, bench.whole(sizes)).await;
        report.measure(&first, engine, bench.first_byte(sizes)).await;
        report.measure(&growth, engine, bench.growth()).await;
    }
    running.stop().await
}
