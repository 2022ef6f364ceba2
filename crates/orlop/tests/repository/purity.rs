//! Pure crates: no async, no files, no sockets, no processes, no threads, no environment, no clock.

use crate::sources::{Source, report, rust_files};

/// The crates without I/O. Their tests may read files.
const PURE: [&str; 7] = ["cel", "kinds", "lexical", "model", "quantity", "quota", "x509"];

/// Texts that only code with effects has; the addresses of `std::net` are values.
const EFFECTS: [&str; 16] = [
    "std::fs",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "ToSocketAddrs",
    "std::process",
    "std::thread",
    "std::env",
    "std::os::",
    "stdin()",
    "stdout()",
    "stderr()",
    "println!",
    "async ",
    ".await",
    "::now()",
];

/// The program text of a file: without tests, which are at its end, and without comments.
fn program(source: &Source) -> impl Iterator<Item = &str> {
    let before_tests = source.text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(&source.text);
    before_tests.lines().map(|line| line.split("//").next().unwrap_or(line))
}

fn is_program_of_pure_crate(source: &Source) -> bool {
    let parts: Vec<String> = source.path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let is_pure = parts[0] == "crates" && PURE.contains(&&*parts[1]) && parts[2] == "src";
    let is_test = |part: &String| {
        matches!(part.trim_end_matches(".rs"), "tests" | "recorded") || part.ends_with("_tests.rs")
    };
    is_pure && !parts.iter().any(is_test)
}

#[test]
fn pure_crates_have_no_async_and_no_input_or_output() {
    let sources = rust_files();
    let of_pure_crates: Vec<&Source> =
        sources.iter().filter(|source| is_program_of_pure_crate(source)).collect();
    for name in PURE {
        let is_there = |source: &&Source| source.path.starts_with(format!("crates/{name}/src"));
        assert!(of_pure_crates.iter().any(is_there), "{name} is a crate");
    }
    let mut offences = Vec::new();
    for source in of_pure_crates {
        for effect in EFFECTS {
            if program(source).any(|line| line.contains(effect)) {
                offences.push(format!("{}: {effect}", source.path.display()));
            }
        }
    }
    report("these files of pure crates have effects", &offences);
}
