//! `cargo xtask oracle`: runs the recorder, the package `oracle`, which other tasks need not build.

use crate::steps::cargo;

pub fn run(arguments: &[&str]) -> Result<(), String> {
    let command = [&["run", "--quiet", "--package", "oracle", "--"], arguments].concat();
    if cargo(&command, &[])? { Ok(()) } else { Err("some scripts could not be recorded".to_owned()) }
}
