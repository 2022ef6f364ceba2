//! The module graph of the API server: the pairs of top modules that import each other. The list may only
//! shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::sources::{report, rust_files};

/// Pairs of top modules of `apiserver` that import each other. Take a pair out when its cycle is gone; never add one.
const MUTUAL: &[(&str, &str)] = &[
    ("admission", "api"),
    ("admission", "registry"),
    ("admission", "verbs"),
    ("api", "auth"),
    ("api", "bootstrap"),
    ("api", "crds"),
    ("api", "flow_control"),
    ("api", "openapi"),
    ("api", "pipeline"),
    ("api", "identity_lease"),
    ("api", "server"),
    ("api", "verbs"),
    ("audit", "pipeline"),
    ("audit", "verbs"),
    ("auth", "bootstrap"),
    ("auth", "verbs"),
    ("bootstrap", "flow_control"),
    ("bootstrap", "pipeline"),
    ("bootstrap", "identity_lease"),
    ("built_in", "verbs"),
    ("crds", "registry"),
    ("crds", "verbs"),
    ("discovery", "endpoints"),
    ("registry", "reviews"),
    ("render", "verbs"),
    ("reviews", "verbs"),
];

/// The modules of the crate that a source names after `crate::`, one by one or in braces.
fn imported(text: &str) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    for rest in text.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            Some(list) => modules.extend(first_segments(list)),
            None => modules.extend(name(rest)),
        }
    }
    modules
}

/// The first segment of each path of a list in braces, up to its closing brace.
fn first_segments(list: &str) -> Vec<String> {
    let mut depth = 1;
    let mut is_start = true;
    let mut names = Vec::new();
    for (i, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => is_start = true,
            _ if character.is_whitespace() => {}
            _ if is_start => {
                names.extend(name(&list[i..]));
                is_start = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// The identifier at the beginning of a text, if it is a module's and not a type's.
fn name(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let name = &text[..end];
    name.starts_with(|c: char| c.is_lowercase()).then(|| name.to_owned())
}

/// The imports of each top module of the API server, tests aside.
fn graph() -> BTreeMap<String, BTreeSet<String>> {
    let folder = Path::new("crates/apiserver/src");
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in rust_files() {
        let Ok(path) = source.path.strip_prefix(folder) else { continue };
        let is_test =
            path.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs")));
        let top = path.components().next().map(|part| Path::new(&part).with_extension(""));
        let Some(top) = top.filter(|top| !is_test && top != Path::new("lib")) else { continue };
        let code = source.text.split("#[cfg(test)]").next().unwrap_or_default();
        graph.entry(top.display().to_string()).or_default().extend(imported(code));
    }
    graph
}

#[test]
fn the_modules_of_the_api_server_have_no_new_cycle() {
    let graph = graph();
    let imports = |a: &str, b: &str| graph.get(a).is_some_and(|imported| imported.contains(b));
    let found: BTreeSet<(&str, &str)> = graph
        .keys()
        .flat_map(|a| graph.keys().map(move |b| (a.as_str(), b.as_str())))
        .filter(|(a, b)| a < b && imports(a, b) && imports(b, a))
        .collect();
    let listed: BTreeSet<(&str, &str)> = MUTUAL.iter().copied().collect();
    let new = found.difference(&listed).map(|(a, b)| format!("(\"{a}\", \"{b}\"), import each other"));
    let gone =
        listed.difference(&found).map(|(a, b)| format!("(\"{a}\", \"{b}\"), no longer do: take it out"));
    report(
        "top modules of apiserver import each other only where listed",
        &new.chain(gone).collect::<Vec<_>>(),
    );
}

#[test]
fn imports_are_recognised() {
    for (text, modules) in [
        ("use crate::api::ApiServer;", &["api"][..]),
        ("use crate::{audit::{ID, Trail}, body, Limits};", &["audit", "body"]),
        ("let x = crate::verbs::dispatch(); crate::Limits::default()", &["verbs"]),
        ("use super::body;", &[]),
    ] {
        assert_eq!(imported(text), modules.iter().map(|module| (*module).to_owned()).collect(), "{text}");
    }
}
