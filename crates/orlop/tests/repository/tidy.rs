//! The form of files: first line, length, forbidden texts; and paths and crates in documents that exist.

use std::fs;

use crate::sources::{Source, report, root, rust_files};

/// Longer than this, a file has more than one subject.
const MAX_LINES: usize = 500;

/// Files that may be longer, up to [`HARD_MAX_LINES`], each with its reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// The limit for exceptions.
const HARD_MAX_LINES: usize = 800;

/// The names of all files that break a rule.
fn offenders(breaks: impl Fn(&Source) -> bool) -> Vec<String> {
    rust_files()
        .iter()
        .filter(|source| breaks(source))
        .map(|source| source.path.display().to_string())
        .collect()
}

#[test]
fn every_file_begins_with_a_module_doc() {
    let offences = offenders(|source| !source.text.starts_with("//! "));
    report("line one of these files is no module doc", &offences);
}

#[test]
fn files_are_short() {
    let offences = offenders(|source| {
        let is_exception = LONG_FILES.iter().any(|(path, _)| source.path.ends_with(path));
        source.text.lines().count() > if is_exception { HARD_MAX_LINES } else { MAX_LINES }
    });
    report(&format!("these files have more than {MAX_LINES} lines: split them by subject"), &offences);
}

#[test]
fn exceptions_are_needed() {
    for (path, reason) in LONG_FILES {
        let text = fs::read_to_string(root().join(path)).unwrap_or_default();
        assert!(text.lines().count() > MAX_LINES, "{path} ({reason}) is no long file: take it off the list");
    }
}

#[test]
fn open_tasks_have_an_issue() {
    // Written in two parts, so that this file does not find itself.
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    let is_loose = |line: &str| {
        marks.iter().any(|mark| {
            let rest = line.split_once(mark).map(|(_, rest)| rest);
            rest.is_some_and(|rest| !rest.starts_with("(#"))
        })
    };
    let offences = offenders(|source| source.text.lines().any(is_loose));
    report("these files have something left to do and no issue for it, as in (#12)", &offences);
}

#[test]
fn no_test_is_switched_off() {
    let mark = concat!("#[ig", "nore");
    report("these files switch tests off", &offenders(|source| source.text.contains(mark)));
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let marks = [concat!("/ro", "ot/"), concat!("/ho", "me/me/wor", "k"), concat!("/wo", "rk/")];
    let offences = offenders(|source| marks.iter().any(|mark| source.text.contains(mark)));
    report("these files name a path of one machine", &offences);
}

#[test]
fn no_static_is_mutable_and_no_task_is_detached() {
    let is_static = |line: &str| line.starts_with("static ") || line.starts_with("pub(crate) static ");
    let changing = ["Mutex<", "RwLock<", "Atomic", "OnceLock<", "RefCell<"];
    let is_mutable = |line: &str| is_static(line) && changing.iter().any(|of| line.contains(of));
    let spawn = concat!("tokio::sp", "awn(");
    let breaks = |source: &Source| {
        let is_program = source.path.components().any(|part| part.as_os_str() == "src");
        let mut lines = source.text.lines().map(str::trim_start);
        is_program && lines.any(|line| is_mutable(line) || line.contains(spawn))
    };
    report("these files have mutable global state or a detached task", &offenders(breaks));
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let lints = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest is there");
    assert!(lints.contains("unsafe_code = \"forbid\""), "the workspace does not forbid unsafe code");
    let mut without = Vec::new();
    for folder in ["crates", "examples"] {
        for entry in fs::read_dir(root().join(folder)).expect("the folder is there") {
            let manifest = entry.expect("the folder can be read").path().join("Cargo.toml");
            let text = fs::read_to_string(&manifest).unwrap_or_default();
            if manifest.exists() && !text.contains("[lints]\nworkspace = true") {
                without.push(manifest.display().to_string());
            }
        }
    }
    report("these manifests do not take the lints of the workspace", &without);
}

/// Code spans of a document, without those of fenced blocks.
fn code_spans(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn paths_that_documents_name_exist() {
    let mut offences = Vec::new();
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"] {
        let text =
            fs::read_to_string(root().join(document)).unwrap_or_else(|error| panic!("{document}: {error}"));
        // A test is named behind the path of its file.
        let files = code_spans(&text).into_iter().map(|span| span.split("::").next().unwrap_or(span));
        for span in files {
            let first = span.split('/').next().unwrap_or_default();
            let is_path = span.contains('/')
                && ["crates", "examples", "xtask", "docs", ".ci", ".cargo"].contains(&first);
            if (is_path || span.ends_with(".md")) && !root().join(span).exists() {
                offences.push(format!("{document}: {span}"));
            }
        }
    }
    report("these documents name missing paths", &offences);
}

#[test]
fn every_crate_is_in_the_code_map() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is there");
    let mut absent = Vec::new();
    for folder in ["crates", "examples"] {
        for entry in fs::read_dir(root().join(folder)).expect("the folder is there") {
            let path =
                format!("{folder}/{}", entry.expect("the folder can be read").file_name().to_string_lossy());
            if ![format!("`{path}`"), format!("`{path}/")].iter().any(|span| map.contains(span)) {
                absent.push(path);
            }
        }
    }
    report("ARCHITECTURE.md does not name these crates", &absent);
}
