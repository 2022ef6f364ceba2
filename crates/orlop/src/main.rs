//! The binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    orlop::run(orlop::ROLES)
}
