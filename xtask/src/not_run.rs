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
            line(&file.file_name().to_string_lossy(), &needs)
        })
        .collect();
    tests.sort();
    println!("\nNot run: {} tests", tests.len());
    tests.iter().for_each(|test| println!("  {test}"));
    problems.iter().for_each(|problem| println!("  missing: {problem}"));
    if is_strict && !is_complete(&tests, problems) {
        return Err("a strict run needs every tool: see the list above".to_owned());
    }
    Ok(())
}

/// The line of a test, by the name and the content of its record.
fn line(file_name: &str, needs: &str) -> String {
    format!("{} needs {}", file_name.replace('.', "::"), needs.trim())
}

/// Whether every test ran that could have run.
fn is_complete(tests: &[String], problems: &[String]) -> bool {
    problems.is_empty() && tests.iter().all(|test| test.ends_with(OPTIONAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as crate `test-tools` writes it, see its tests.
    fn optional() -> String {
        line("framework.reference", "$FRAMEWORK_ASSETS (optional)\n")
    }

    #[test]
    fn a_line_has_the_name_of_the_test_and_its_need() {
        assert_eq!(
            line("suite.helm.installs", "target/go/helm\n"),
            "suite::helm::installs needs target/go/helm"
        );
        assert_eq!(optional(), "framework::reference needs $FRAMEWORK_ASSETS (optional)");
    }

    #[test]
    fn a_run_is_complete_without_optional_tests_only() {
        let required = || line("suite.helm", "target/go/helm\n");
        assert!(is_complete(&[], &[]));
        assert!(is_complete(&[optional()], &[]));
        assert!(!is_complete(&[required()], &[]));
        assert!(!is_complete(&[optional(), required()], &[]));
        assert!(!is_complete(&[optional()], &["go".to_owned()]));
    }
}
