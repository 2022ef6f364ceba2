//! Runs the benchmark in short form, so that it keeps working: all store measures that need neither disk nor
//! server.

use std::process::Command;

#[test]
fn every_measure_of_the_store_in_memory_gives_a_row() {
    let output = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["--quick", "--only", "^store.*SQLite memory"])
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{table}\n{}", String::from_utf8_lossy(&output.stderr));
    let rows = table.lines().filter(|line| line.starts_with("| store")).count();
    assert_eq!(rows, 16, "{table}");
}

#[test]
fn every_measure_in_process_gives_a_row() {
    let output = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["--quick", "--only", "^(model|rbac|admission)"])
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{table}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(table.lines().filter(|line| line.contains("| in process |")).count(), 7, "{table}");
}

#[test]
fn a_pattern_that_names_nothing_is_a_failure() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_bench")).args(["--only", "nothing like this"]).output().unwrap();
    assert!(!output.status.success());
}
