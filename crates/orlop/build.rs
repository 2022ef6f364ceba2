//! Lays the functions that a start runs side by side, where `ORLOP_LAYOUT` names a list of them: `cargo xtask dist` records one
//! (docs/adr/0018-link-order-of-startup-functions.md).

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

/// The path of the list: a pattern of symbol names in each line.
const LAYOUT: &str = "ORLOP_LAYOUT";

fn main() {
    println!("cargo::rerun-if-env-changed={LAYOUT}");
    let Some(list) = env::var_os(LAYOUT).map(PathBuf::from) else { return };
    println!("cargo::rerun-if-changed={}", list.display());
    let functions = fs::read_to_string(&list).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    let script = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("layout.ld");
    fs::write(&script, linker_script(&functions)).expect("OUT_DIR can be written to");
    println!("cargo::rustc-link-arg-bin=orlop=-Wl,-T,{}", script.display());
}

/// A linker script that puts these functions in front. Every function has a section of its own, which bears its name. Functions that
/// the compiler considers unlikely are many and small, and run now and then: they follow. All others keep their place.
fn linker_script(functions: &str) -> String {
    let mut script = "SECTIONS { .text.start : { *(\n".to_owned();
    for function in functions.lines() {
        // Copies of one function have a number behind the name.
        writeln!(script, ".text.{function} .text.{function}.*").expect("a String takes everything");
    }
    script.push_str(") *(.text.unlikely.*) } } INSERT BEFORE .text;\n");
    script
}
