//! Benchmark of the store and the API, relative to the machine's own limits and to Kubernetes.

mod admission_level;
mod api_level;
mod args;
mod attack;
mod database;
mod figure;
mod machine;
mod model_level;
mod objects;
mod raw;
mod report;
mod stats;
mod store_level;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;
use crate::report::{Report, progress};

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    if args.attack {
        return match attack::run(&args).await {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("bench: {error:#}");
                ExitCode::FAILURE
            }
        };
    }
    let mut report = Report::new(args);
    let load = machine::load();
    progress(&machine::description());
    model_level::run(&mut report).await;
    admission_level::run(&mut report).await;
    store_level::run(&mut report).await;
    api_level::run(&mut report).await;
    println!("{}. Load average {load} before, {} after.\n", machine::description(), machine::load());
    println!("{}", report.table());
    if report.is_broken() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
