//! `cargo xtask schema`: runs the generator, a package of its own so that no other task has to build what it needs.

use crate::steps::cargo;

pub fn run(arguments: &[&str]) -> Result<(), String> {
    let command = [&["run", "--quiet", "--package", "schema-gen", "--"], arguments].concat();
    if cargo(&command, &[])? { Ok(()) } else { Err("the schema table could not be made".to_owned()) }
}
