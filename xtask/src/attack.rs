//! `cargo xtask attack`: runs the benchmark's attacks, a package of its own so that no other task has to build what it needs.

use crate::steps::cargo;

pub fn run(arguments: &[&str]) -> Result<(), String> {
    let command = [&["run", "--release", "--package", "bench", "--", "--attack"], arguments].concat();
    if cargo(&command, &[])? {
        Ok(())
    } else {
        Err("an attack missed its goals, or could not be run".to_owned())
    }
}
