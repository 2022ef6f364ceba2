//! `cargo xtask test`: the one entry point for developers and CI.

use crate::{
    clients, conformance,
    steps::{Step, run_all},
    tools::{self, Missing},
};

/// What every change must pass, the quickest first.
const STEPS: [Step; 4] = [
    Step { name: "format", arguments: &["fmt", "--all", "--check"] },
    Step { name: "clippy", arguments: &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"] },
    Step { name: "schema", arguments: &["run", "--quiet", "--package", "schema-gen", "--", "--check"] },
    Step { name: "tests", arguments: &["test", "--workspace", "--no-fail-fast"] },
];

pub fn run(missing: Missing) -> Result<(), String> {
    tools::ensure(missing)?;
    clients::prepare();
    conformance::prepare();
    run_all(&STEPS)
}
