//! `cargo xtask test`: the one entry point for developers and CI.

use crate::{
    advisories::Advisories,
    clients, conformance, not_run,
    steps::{Step, cargo, run_all},
    tools::{self, Missing},
};

/// The checks that every change must pass, the quickest first.
const STEPS: [Step; 5] = [
    Step { name: "format", arguments: &["fmt", "--all", "--check"] },
    Step { name: "clippy", arguments: &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"] },
    Step { name: "alone", arguments: &["run", "--quiet", "--package", "xtask", "--", "alone"] },
    Step { name: "schema", arguments: &["run", "--quiet", "--package", "schema-gen", "--", "--check"] },
    Step { name: "tests", arguments: &["test", "--workspace", "--no-fail-fast", "--config", RUNNER] },
];

/// Runs each test binary under a time limit, so that a test that hangs fails the run: libtest has printed its name by then.
const RUNNER: &str = "target.'cfg(unix)'.runner = ['timeout', '--foreground', '--kill-after=10', '1500']";

/// The command line of `cargo xtask test`.
#[derive(Clone, Copy)]
pub struct Options {
    pub missing: Missing,
    /// Fails the run if a test cannot run because a tool is missing.
    pub is_strict: bool,
}

impl Options {
    /// Reads the flags; CI is strict by itself.
    pub fn parse(flags: &[&str]) -> Result<Self, String> {
        let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        let mut options = Self { missing: Missing::Install, is_strict: is_ci };
        for flag in flags {
            match *flag {
                "--no-install" => options.missing = Missing::Say,
                "--strict" => options.is_strict = true,
                unknown => return Err(format!("`{unknown}` is no flag of `cargo xtask test`")),
            }
        }
        Ok(options)
    }
}

pub fn run(options: Options) -> Result<(), String> {
    tools::ensure(options.missing)?;
    not_run::clear()?;
    let problems = clients::prepare().into_iter().chain(conformance::prepare()).chain(packages());
    let problems: Vec<String> = problems.collect();
    let environment: &[(&str, &str)] = if options.is_strict { &[("ORLOP_TEST_STRICT", "1")] } else { &[] };
    let result = run_all(&STEPS, environment);
    let advisories = Advisories::check();
    let complete = not_run::report(&problems, options.is_strict);
    let advisories = advisories?;
    println!("{}", advisories.line());
    complete.and(result).and(advisories.verdict(options.is_strict))
}

/// Fetches the packages of all platforms, whose licences are checked; returns the problem if that fails.
fn packages() -> Option<String> {
    let is_complete = cargo(&["fetch", "--locked", "--quiet"], &[]).unwrap_or(false);
    (!is_complete).then(|| "packages of other platforms: cargo fetch does not succeed".to_owned())
}
