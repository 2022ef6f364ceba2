//! `cargo xtask test`: the one entry point for developers and CI.

use crate::{
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
    Step { name: "tests", arguments: &["test", "--workspace", "--no-fail-fast"] },
];

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
    let problems: Vec<String> = clients::prepare().into_iter().chain(conformance::prepare()).collect();
    let environment: &[(&str, &str)] = if options.is_strict { &[("ORLOP_TEST_STRICT", "1")] } else { &[] };
    let result = run_all(&STEPS, environment);
    let advisories = advisories();
    not_run::report(&problems, options.is_strict)?;
    result.and(advisories)
}

/// Compares the dependencies with the advisory database, where cargo-deny is installed and the database can be fetched.
fn advisories() -> Result<(), String> {
    if !tools::is_on_path("cargo-deny") {
        println!("\nAdvisories not checked: cargo-deny is not installed (cargo install --locked cargo-deny)");
        return Ok(());
    }
    if !cargo(&["deny", "fetch", "db"], &[])? {
        println!("\nAdvisories not checked: the advisory database cannot be fetched");
        return Ok(());
    }
    match cargo(&["deny", "--offline", "check", "advisories"], &[])? {
        true => Ok(()),
        false => Err("a dependency has an advisory".to_owned()),
    }
}
