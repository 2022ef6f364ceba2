//! Files that `cargo xtask test` provides to tests, and the record of each test that did not run because one is missing.
//!
//! A test that needs such a file asks [`provided`]. A missing file fails the test in strict mode (`CI=true` or `ORLOP_TEST_STRICT`); else
//! the test is recorded below `target/not-run`, where `cargo xtask test` counts and lists it: no test passes silently.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

/// The folder below `target` with one file per test that did not run.
const NOT_RUN: &str = "not-run";
/// The end of the record of a test that needs something which no run provides by itself.
const OPTIONAL: &str = "(optional)";

/// The path of a file below `target`, or `None` after the calling test was recorded as not run.
///
/// # Panics
/// In strict mode, if the file is missing.
#[must_use]
pub fn provided(file: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test on an unnamed thread");
    look_up(&target, file, test, is_strict()).unwrap_or_else(|message| panic!("{message}"))
}

/// The path that an environment variable has, or `None` after the calling test was recorded as not run. The variable is optional: it names
/// what no run provides by itself, such as the programs of a Kubernetes release, and a strict run does not fail without it.
///
/// # Panics
/// When the test cannot be recorded.
#[must_use]
pub fn named_by(variable: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test on an unnamed thread");
    path_in(std::env::var_os(variable), &target, variable, test).unwrap_or_else(|message| panic!("{message}"))
}

/// Whether something that is missing fails a test: `CI=true` or `ORLOP_TEST_STRICT`.
#[must_use]
pub fn is_strict() -> bool {
    let is_set = |name| {
        std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
    };
    is_set("CI") || is_set("ORLOP_TEST_STRICT")
}

fn look_up(target: &Path, file: &str, test: &str, is_strict: bool) -> Result<Option<PathBuf>, String> {
    let path = target.join(file);
    if path.is_file() {
        return Ok(Some(path));
    }
    if is_strict {
        return Err(format!("{test} needs target/{file}, which `cargo xtask test` provides"));
    }
    record(target, &format!("target/{file}"), test)
        .map_err(|error| format!("cannot record that {test} did not run: {error}"))?;
    Ok(None)
}

fn path_in(
    value: Option<OsString>,
    target: &Path,
    variable: &str,
    test: &str,
) -> Result<Option<PathBuf>, String> {
    if let Some(path) = value.filter(|path| !path.is_empty()) {
        return Ok(Some(path.into()));
    }
    record(target, &format!("${variable} {OPTIONAL}"), test)
        .map_err(|error| format!("cannot record that {test} did not run: {error}"))?;
    Ok(None)
}

fn record(target: &Path, needs: &str, test: &str) -> io::Result<()> {
    let folder = target.join(NOT_RUN);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(test.replace("::", ".")), format!("{needs}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provided_file_is_found() {
        let target = tempfile::tempdir().unwrap();
        fs::write(target.path().join("kubectl"), "").unwrap();
        for is_strict in [false, true] {
            let found = look_up(target.path(), "kubectl", "suite::kubectl", is_strict).unwrap();
            assert_eq!(found, Some(target.path().join("kubectl")));
        }
        assert!(!target.path().join(NOT_RUN).exists());
    }

    #[test]
    fn a_test_without_its_file_is_recorded_as_not_run() {
        let target = tempfile::tempdir().unwrap();
        assert_eq!(look_up(target.path(), "go/helm", "suite::helm", false).unwrap(), None);
        let record = target.path().join(NOT_RUN).join("suite.helm");
        assert_eq!(fs::read_to_string(record).unwrap(), "target/go/helm\n");
    }

    #[test]
    fn a_missing_file_fails_a_strict_run() {
        let target = tempfile::tempdir().unwrap();
        let message = look_up(target.path(), "go/helm", "suite::helm", true).unwrap_err();
        assert!(message.contains("suite::helm needs target/go/helm"), "{message}");
    }

    #[test]
    fn the_path_in_a_variable_is_returned_and_nothing_is_recorded() {
        let target = tempfile::tempdir().unwrap();
        let found = path_in(Some("/k8s/bin".into()), target.path(), "FRAMEWORK_ASSETS", "suite::framework");
        assert_eq!(found.unwrap(), Some(PathBuf::from("/k8s/bin")));
        assert!(!target.path().join(NOT_RUN).exists());
    }

    #[test]
    fn a_test_without_its_variable_is_recorded_as_optional() {
        for value in [None, Some(OsString::new())] {
            let target = tempfile::tempdir().unwrap();
            let found = path_in(value, target.path(), "FRAMEWORK_ASSETS", "suite::framework");
            assert_eq!(found.unwrap(), None);
            // `cargo xtask test` reads this form, see its tests in xtask/src/not_run.rs.
            let record = fs::read_to_string(target.path().join(NOT_RUN).join("suite.framework")).unwrap();
            assert_eq!(record, "$FRAMEWORK_ASSETS (optional)\n");
        }
    }

    #[test]
    fn a_test_that_cannot_be_recorded_fails() {
        let target = tempfile::tempdir().unwrap();
        fs::write(target.path().join(NOT_RUN), "no folder").unwrap();
        let message = path_in(None, target.path(), "FRAMEWORK_ASSETS", "suite::framework").unwrap_err();
        assert!(message.starts_with("cannot record that suite::framework did not run: "), "{message}");
    }
}
