//! `orlop` with the product: `cargo run -p example-teams --example orlop_with_teams -- up`.

use std::process::ExitCode;

fn main() -> ExitCode {
    orlop::run(&[example_teams::TEAMS_ROLE])
}
