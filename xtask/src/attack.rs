//! `cargo xtask attack`: runs the attacks of the package `bench`, which other tasks need not build.

use crate::steps::cargo;

pub fn run(arguments: &[&str]) -> Result<(), String> {
    let command = [&["run", "--release", "--package", "bench", "--", "--attack"], arguments].concat();
    if cargo(&command, &[])? { Ok(()) } else { Err("an attack missed its goals or could not run".to_owned()) }
}
