//! `cargo xtask schema`: runs the package `schema-gen`, which other tasks need not build.

use crate::steps::cargo;

pub fn run(arguments: &[&str]) -> Result<(), String> {
    let command = [&["run", "--quiet", "--package", "schema-gen", "--"], arguments].concat();
    if cargo(&command, &[])? { Ok(()) } else { Err("schema-gen failed".to_owned()) }
}
