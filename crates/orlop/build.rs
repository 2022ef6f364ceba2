//! Lays the functions that every start runs side by side in a release (docs/adr/0018-functions-of-the-start-lie-together.md).

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

/// The functions, one pattern a line; `cargo xtask layout` writes it.
const FUNCTIONS: &str = "layout.txt";

fn main() {
    println!("cargo::rerun-if-changed={FUNCTIONS}");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if !is("PROFILE", "release") || !is("CARGO_CFG_TARGET_OS", "linux") {
        return;
    }
    let functions = fs::read_to_string(FUNCTIONS).expect("the list is beside this file");
    let script = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("layout.ld");
    fs::write(&script, linker_script(&functions)).expect("OUT_DIR can be written to");
    println!("cargo::rustc-link-arg-bin=orlop=-Wl,-T,{}", script.display());
}

/// Every function has a section of its own, which bears its name. Those that the compiler takes for unlikely are many, small and run
/// now and then: they lie behind. What has none of the names stays where it would be.
fn linker_script(functions: &str) -> String {
    let mut script = "SECTIONS { .text.start : { *(\n".to_owned();
    for function in functions.lines() {
        // Copies of one function have a number behind the name.
        writeln!(script, ".text.{function} .text.{function}.*").expect("a String takes everything");
    }
    script.push_str(") *(.text.unlikely.*) } } INSERT BEFORE .text;\n");
    script
}
