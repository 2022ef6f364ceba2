//! Documents name the tests that guard their statements: every invariant and every mitigation has one, and it
//! exists.

use std::fs;

use crate::sources::{report, root};

fn read(document: &str) -> String {
    fs::read_to_string(root().join(document)).unwrap_or_else(|error| panic!("{document}: {error}"))
}

/// The spans of a text that name a test, such as `crates/store/src/plan/tests.rs::a_test`.
fn guards(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).filter(|span| span.contains(".rs::")).collect()
}

/// The folder of the engines' suite: its cases become tests by the list in its `mod.rs`.
const SUITE: &str = "crates/store/src/conformance/";

fn exists(guard: &str) -> bool {
    let (file, test) = guard.split_once("::").expect("a guard names a file and a test");
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap_or_default();
    match file.strip_prefix(SUITE).and_then(|module| module.strip_suffix(".rs")) {
        Some(module) => {
            is_case(&read(&format!("{SUITE}mod.rs")), module, test) && has_function(&read(file), test)
        }
        None => has_test(&read(file), test),
    }
}

fn has_function(text: &str, name: &str) -> bool {
    text.contains(&format!("fn {name}("))
}

/// Whether a function with this name is a test: the lines above it up to the end of other code have the attribute.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_it = |line: &&str| has_function(line, name) && !line.starts_with("//");
    let Some(place) = lines.iter().position(is_it) else { return false };
    let above =
        lines[..place].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("///"));
    above.into_iter().any(|line| *line == "#[test]" || line.starts_with("#[tokio::test"))
}

/// Whether the list of the engines' suite names a function of a module.
fn is_case(list: &str, module: &str, name: &str) -> bool {
    let opening = format!("{module}: [");
    let entries = list.lines().skip_while(|line| line.trim() != opening).skip(1);
    let mut entries = entries.take_while(|line| line.trim() != "]");
    entries.any(|line| line.trim().trim_end_matches(',') == name)
}

#[test]
fn a_function_that_is_no_test_guards_nothing() {
    let text = "/// A helper.\nfn helper() {}\n\n#[test]\nfn plain() {}\n\n#[tokio::test(flavor = \"multi_thread\")]\n\
                #[expect(clippy::unwrap_used)]\nasync fn in_async() {}\n// fn gone() {}\n    #[test]\n    fn inner() {}\n";
    let found = ["helper", "plain", "in_async", "gone", "inner", "absent"].map(|name| has_test(text, name));
    assert_eq!(found, [false, true, true, false, true, false]);
    let list = "cases! {\n    lists: [\n        one,\n    ]\n    watches: [\n        two,\n    ]\n}";
    let found =
        [("lists", "one"), ("lists", "two"), ("none", "one")].map(|(of, name)| is_case(list, of, name));
    assert_eq!(found, [true, false, false]);
}

/// The statements of a document that need a guard: the items of ARCHITECTURE's invariants, the rows of the mitigations.
fn statements(document: &str) -> Vec<String> {
    let text = read(document);
    let section = |title: &str| {
        let (_, rest) = text.split_once(title).unwrap_or_else(|| panic!("{document} has no section {title}"));
        rest.split("\n## ").next().unwrap_or(rest).to_owned()
    };
    if document == "ARCHITECTURE.md" {
        let items = section("\n## Invariants\n");
        return items.split("\n- ").skip(1).map(str::to_owned).collect();
    }
    let rows = section("\n## Mitigations\n");
    let is_row =
        |line: &&str| line.starts_with("| ") && !line.starts_with("| finding") && !line.starts_with("|---");
    rows.lines().filter(is_row).map(str::to_owned).collect()
}

#[test]
fn every_invariant_and_every_mitigation_names_a_test_that_exists() {
    let mut offences = Vec::new();
    for document in ["ARCHITECTURE.md", "docs/security.md"] {
        for statement in statements(document) {
            let guards = guards(&statement);
            if guards.is_empty() {
                offences.push(format!("{document}: no test guards: {}", statement.trim()));
            }
            let missing = guards.into_iter().filter(|guard| !exists(guard));
            offences.extend(missing.map(|guard| format!("{document}: {guard} does not exist")));
        }
    }
    report("these statements are not guarded", &offences);
}
