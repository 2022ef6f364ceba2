//! Start-up time to the first response, and idle memory.

use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::{Engine, POSTGRES, Programs, SQLITE};
use crate::figure::{Figure, Goal, Unit, show};
use crate::machine;
use crate::raw::tls::{RawServer, start_and_end};
use crate::report::{KUBERNETES, Outcome};
use crate::stats::Latencies;

/// The time after which a server has finished its background work.
const SETTLE: Duration = Duration::from_secs(1);

/// Starts with a new data folder.
pub async fn fresh(programs: &Programs, engine: Engine, times: usize) -> Result<Outcome> {
    let mut latencies = Latencies::default();
    for _ in 0..times {
        let running = programs.start(engine).await?;
        latencies.push(running.server.start);
        running.stop().await?;
    }
    described(&latencies, engine).await
}

/// Starts with an existing data folder.
pub async fn again(programs: &Programs, engine: Engine, times: usize) -> Result<Outcome> {
    let folder = TempDir::new()?;
    let database = match &programs.postgres {
        Some(postgres) if engine == POSTGRES => Some(postgres.create().await?),
        _ => None,
    };
    let url = database.as_ref().map(|database| database.url.as_str());
    let port = free_port()?;
    let mut latencies = Latencies::default();
    for time in 0..=times {
        let server = if engine == KUBERNETES {
            programs.kubernetes.as_ref().context("--kubernetes was not given")?.start(folder.path()).await?
        } else {
            programs.orlop()?.start_at(port, folder.path(), url).await?
        };
        if time > 0 {
            latencies.push(server.start);
        }
        server.stop().await?;
    }
    if let Some(database) = database {
        database.drop().await?;
    }
    described(&latencies, engine).await
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

async fn described(latencies: &Latencies, engine: Engine) -> Result<Outcome> {
    let detail = format!("slowest {}", show(latencies.percentile(100), Unit::Time));
    let outcome = Outcome::of(Figure::time(latencies.median()).with(detail));
    let outcome = outcome
        .beside(Figure::time(at_least(latencies.len()).await?), "an empty process and a raw TLS answer");
    Ok(outcome.goal(if engine == SQLITE { Goal::Below(0.02) } else { Goal::None }))
}

/// The lower bound: a process start, a connection, a handshake and a response.
async fn at_least(times: usize) -> Result<f64> {
    let raw = RawServer::start().await?;
    let mut answers = Latencies::default();
    for _ in 0..times {
        let started = std::time::Instant::now();
        super::Client::connect(&raw.endpoint, 1).await?.connection().get("/bytes/1000").await?;
        answers.push(started.elapsed());
    }
    let processes: Latencies = start_and_end(times).await?.into_iter().collect();
    Ok(answers.median() + processes.median())
}

/// Idle memory.
pub async fn idle(programs: &Programs, engine: Engine) -> Result<Outcome> {
    let running = programs.start(engine).await?;
    tokio::time::sleep(SETTLE).await;
    let mut sum = 0.0;
    for pid in running.server.pids() {
        sum += machine::resident(pid)?;
    }
    running.stop().await?;
    // The PostgreSQL client, with one connection per reader, may use more.
    Ok(Outcome::of(Figure::bytes(sum)).goal(Goal::Below(if engine == SQLITE { 20e6 } else { 30e6 })))
}

/// The size of the files to install.
pub fn size(programs: &Programs, engine: Engine) -> Result<Outcome> {
    let bytes = match &programs.kubernetes {
        Some(kubernetes) if engine == KUBERNETES => {
            let sizes = kubernetes.programs().map(|program| machine::file_size(&program));
            sizes.into_iter().sum::<Result<f64>>()?
        }
        _ => machine::file_size(programs.orlop()?.program())?,
    };
    Ok(Outcome::of(Figure::bytes(bytes)).goal(Goal::Below(30e6)))
}
