//! Tasks of this repository that need more than one cargo command: `cargo xtask --help` lists them.

mod advisories;
mod alone;
mod attack;
mod clients;
mod conformance;
mod dist;
mod not_run;
mod oracle;
mod schema;
mod steps;
mod test;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
Tasks of this repository

Usage: cargo xtask COMMAND

Commands:
  test                Runs all checks of CI: installs missing tools if permitted (PostgreSQL's server programs,
                      kubectl, Python, Node, Go), then runs rustfmt, clippy with warnings denied, and every
                      test. Lists the tests that could not run because a tool is missing, and says whether
                      dependencies were checked for advisories
  test --no-install   Prints the command that installs missing tools instead of running it
  test --strict       Fails if a test could not run; CI=true implies it
  alone               Checks that every crate compiles on its own
  schema              Generates the table of the built-in types (crates/kinds/schema) from the dependencies
  schema --check      Fails if the table is not up to date
  dist                Builds the binary to publish, target/dist/orlop, with the functions that a start runs side by
                      side, which saves memory. Needs valgrind
  oracle record [FILTER] --assets DIR
                      Starts the kube-apiserver and etcd of DIR, plays the scripts of fixtures/oracle whose name
                      contains FILTER, and records the answers
  oracle record [FILTER] --server URL --token TOKEN
                      The same with a running server
  attack [NAME]       Builds a release and attacks it on loopback: slow heads and bodies, stalled readers, floods of
                      watches, resets and CONTINUATION frames, 10,000 idle connections, large objects. Prints the
                      server's memory and the latency of a healthy client; NAME selects attacks by name
  help                Prints this text

Examples:
  cargo xtask test                    before you submit a change
  cargo test -p store                 while you work on one crate
  cargo test -p orlop --test suite    tests that start the real program";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["test", ref flags @ ..] => test::Options::parse(flags).and_then(test::run),
        ["alone"] => alone::run(),
        ["schema"] => schema::run(&[]),
        ["schema", "--check"] => schema::run(&["--check"]),
        ["dist"] => dist::run(),
        ["attack"] => attack::run(&[]),
        ["attack", only] => attack::run(&["--only", only]),
        ["oracle", ref rest @ ..] => oracle::run(rest),
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err(format!("unknown command `{}`\n\n{HELP}", arguments.join(" "))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
