//! Tests that could not run because a tool is missing: each leaves a file below `target/not-run` (crate `test-tools`).

use std::{fs, io, path::PathBuf};

use crate::steps::root;

fn folder() -> PathBuf {
    root().join("target/not-run")
}

/// Removes the records of an earlier run.
pub fn clear() -> Result<(), String> {
    match fs::remove_dir_all(folder()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("cannot clear target/not-run: {error}"))
        }
        _ => Ok(()),
    }
}

/// The end of the record of a test that needs something which no run provides by itself (crate `test-tools`).
const OPTIONAL: &str = "(optional)";

/// Lists the tests that did not run and the missing tools; fails in strict mode if there are any that could have run.
pub fn report(problems: &[String], is_strict: bool) -> Result<(), String> {
    let files = fs::read_dir(folder()).into_iter().flatten().flatten();
    let mut tests: Vec<String> = files
        .map(|file| {
            let needs = fs::read_to_string(file.path()).unwrap_or_default();
            format!("{} needs {}", file.file_name().to_string_lossy().replace('.', "::"), needs.trim())
        })
        .collect();
    tests.sort();
    println!("\nNot run: {} tests", tests.len());
    tests.iter().for_each(|test| println!("  {test}"));
    problems.iter().for_each(|problem| println!("  missing: {problem}"));
    let is_complete = tests.iter().all(|test| test.ends_with(OPTIONAL)) && problems.is_empty();
    if is_strict && !is_complete {
        return Err("a strict run needs every tool: see the list above".to_owned());
    }
    Ok(())
}
