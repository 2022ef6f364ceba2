//! `cargo xtask oracle`: runs the recorder, a package of its own so that no other task has to build what it needs.

use crate::steps::cargo;

pub fn run(arguments: &[&str]) -> Result<(), String> {
    let command = [&["run", "--quiet", "--package", "oracle", "--"], arguments].concat();
    if cargo(&command, &[])? { Ok(()) } else { Err("not everything could be recorded".to_owned()) }
}
