//! Tasks of this repository that need more than one cargo command: `cargo xtask --help` lists them.

mod alone;
mod attack;
mod clients;
mod conformance;
mod layout;
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
  test                Everything that a change must pass, as CI runs it: installs what the tests need if it may
                      (PostgreSQL's server programs, kubectl, Python, Node, Go), then checks the format, runs
                      clippy with warnings denied, and runs every test. Lists the tests that could not run
                      because a tool is missing
  test --no-install   The same, but only says what is missing instead of installing it
  test --strict       Fails if a test could not run; CI=true implies it
  alone               Checks that every crate compiles on its own
  schema              Writes the table of the built-in types (crates/model/schema) from what the dependencies say
  schema --check      Only says whether the table is what the dependencies say
  layout              Builds a release, and writes down (crates/orlop/layout.txt) which functions it runs until it is
                      idle: the next release has them side by side, which saves memory. Needs valgrind
  oracle record [FILTER] --assets DIR
                      Starts the kube-apiserver and etcd of DIR, plays the scripts of fixtures/oracle whose name
                      contains FILTER, and writes down the answers
  oracle record [FILTER] --server URL --token TOKEN
                      The same with a server that runs already
  attack [NAME]       Builds a release and attacks it on loopback: slow heads and bodies, readers that stall, floods of
                      watches, resets and CONTINUATION frames, 10,000 idle connections, large objects. Prints the
                      server's memory and what a healthy client feels; NAME selects attacks by their names
  help                This text

Examples:
  cargo xtask test                    before you hand in a change
  cargo test -p store                 while you work on one crate
  cargo test -p orlop --test suite    the tests that start the real program";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["test", ref flags @ ..] => test::Options::parse(flags).and_then(test::run),
        ["alone"] => alone::run(),
        ["schema"] => schema::run(&[]),
        ["schema", "--check"] => schema::run(&["--check"]),
        ["layout"] => layout::run(),
        ["attack"] => attack::run(&[]),
        ["attack", only] => attack::run(&["--only", only]),
        ["oracle", ref rest @ ..] => oracle::run(rest),
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err(format!("`{}` is no task\n\n{HELP}", arguments.join(" "))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
