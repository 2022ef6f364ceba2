//! Steps of a task: cargo commands that all run, are timed, and are summarized at the end.

use std::{
    fmt,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

/// One cargo command.
pub struct Step {
    pub name: &'static str,
    pub arguments: &'static [&'static str],
}

/// Runs every step, even after a failure, so that one run shows all problems.
pub fn run_all(steps: &[Step], environment: &[(&str, &str)]) -> Result<(), String> {
    let mut results = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        println!("\n== {} ({} of {}): cargo {}", step.name, index + 1, steps.len(), step.arguments.join(" "));
        let start = Instant::now();
        let passed = cargo(step.arguments, environment)?;
        let result = Outcome { name: step.name, passed, took: start.elapsed() };
        println!("== {result}");
        results.push(result);
    }
    println!("\nSummary");
    for result in &results {
        println!("  {result}");
    }
    match results.iter().filter(|result| !result.passed).map(|result| result.name).collect::<Vec<_>>()[..] {
        [] => Ok(()),
        ref failed => Err(format!("failed: {}", failed.join(", "))),
    }
}

struct Outcome {
    name: &'static str,
    passed: bool,
    took: Duration,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.passed { "ok" } else { "FAILED" };
        write!(f, "{:<8} {verdict:<6} {:>7.1} s", self.name, self.took.as_secs_f64())
    }
}

/// The folder of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate is a folder of the workspace")
}

/// Runs cargo in the workspace with these environment variables; false if it failed.
pub fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<bool, String> {
    // Cargo sets `CARGO` for its children; the cargo of a toolchain is not always on PATH.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status =
        Command::new(cargo).args(arguments).envs(environment.iter().copied()).current_dir(root()).status();
    status.map(|status| status.success()).map_err(|error| format!("cargo cannot be run: {error}"))
}
