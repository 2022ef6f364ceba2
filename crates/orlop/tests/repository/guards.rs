//! Documents name the tests that guard what they say: every invariant and every mitigation has one, and it exists.

use std::fs;

use crate::sources::{report, root};

fn read(document: &str) -> String {
    fs::read_to_string(root().join(document)).unwrap_or_else(|error| panic!("{document}: {error}"))
}

/// The spans of a text that name a test, such as `crates/store/src/plan/tests.rs::a_test`.
fn guards(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).filter(|span| span.contains(".rs::")).collect()
}

fn exists(guard: &str) -> bool {
    let (file, test) = guard.split_once("::").expect("a guard names a file and a test");
    let text = fs::read_to_string(root().join(file)).unwrap_or_default();
    text.contains(&format!("fn {test}("))
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
