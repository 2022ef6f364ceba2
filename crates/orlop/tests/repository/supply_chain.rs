//! Dependencies: licences, sources, duplicates and banned crates, by the rules of `deny.toml`.

use std::{collections::BTreeMap, fs, process::Command};

use serde_json::Value;

use crate::sources::{report, root};

/// The quoted strings of a list in `deny.toml`, one line each.
fn rules(list: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("deny.toml")).expect("deny.toml is there");
    let opening = format!("{list} = [");
    let lines = text.lines().skip_while(|line| *line != opening).skip(1).take_while(|line| *line != "]");
    let first = lines.filter_map(|line| line.split('"').nth(1).map(str::to_owned));
    let rules: Vec<String> = first.collect();
    assert!(!rules.is_empty(), "deny.toml has no list `{list}`");
    rules
}

/// A package of the lock file.
struct Locked {
    name: String,
    version: String,
    source: Option<String>,
    has_checksum: bool,
}

fn locked() -> Vec<Locked> {
    let text = fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock is there");
    let packages = text.split("[[package]]").skip(1);
    let value = |package: &str, key: &str| {
        let prefix = format!("{key} = \"");
        package.lines().find_map(|line| Some(line.strip_prefix(&prefix)?.trim_end_matches('"').to_owned()))
    };
    let read = |package: &str| Locked {
        name: value(package, "name").expect("a package has a name"),
        version: value(package, "version").expect("a package has a version"),
        source: value(package, "source"),
        has_checksum: value(package, "checksum").is_some(),
    };
    packages.map(read).collect()
}

/// The registry of crates.io, as the lock file has it, whatever mirror the packages came from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Packages with another source than the registry, or without a checksum. Those of the workspace have no source.
fn foreign(packages: &[Locked]) -> Vec<String> {
    let is_foreign = |package: &&Locked| {
        package.source.as_ref().is_some_and(|source| source != REGISTRY || !package.has_checksum)
    };
    packages.iter().filter(is_foreign).map(|package| package.name.clone()).collect()
}

#[test]
fn every_dependency_comes_from_the_registry_with_a_checksum() {
    let packages = locked();
    assert!(packages.iter().any(|package| package.source.is_some()), "there are dependencies");
    report("these packages come from elsewhere, or have no checksum", &foreign(&packages));
}

#[test]
fn another_registry_is_foreign_also_where_it_is_the_only_one() {
    let package = |source: Option<&str>, has_checksum| Locked {
        name: format!("{source:?}"),
        version: "1.0.0".to_owned(),
        source: source.map(str::to_owned),
        has_checksum,
    };
    assert_eq!(foreign(&[package(Some(REGISTRY), true), package(None, false)]), Vec::<String>::new());
    let others = ["registry+https://example.com/index", "git+https://example.com/a.git#1"];
    let others = others.map(|source| package(Some(source), true));
    assert_eq!(foreign(&others).len(), 2);
    assert_eq!(foreign(&[package(Some(REGISTRY), false)]).len(), 1);
}

#[test]
fn only_listed_crates_are_there_in_two_versions() {
    let mut versions = BTreeMap::<String, Vec<String>>::new();
    for package in locked() {
        versions.entry(package.name).or_default().push(package.version);
    }
    let skipped = rules("skip");
    let mut offences = Vec::new();
    for (name, versions) in &versions {
        let is_new = |version: &&String| !skipped.contains(&format!("{name}@{version}"));
        if versions.iter().filter(is_new).count() > 1 {
            offences.push(format!("{name} {}", versions.join(", ")));
        }
    }
    let is_stale = |rule: &&String| {
        let (name, version) = rule.split_once('@').expect("a skipped crate names its version");
        versions.get(name).is_none_or(|known| known.len() < 2 || !known.iter().any(|one| one == version))
    };
    let stale =
        skipped.iter().filter(is_stale).map(|rule| format!("{rule} is no duplicate: take it off the list"));
    offences.extend(stale);
    report("these crates are there twice without an entry in deny.toml", &offences);
}

#[test]
fn no_banned_crate_is_a_dependency() {
    let banned = rules("deny");
    let packages = locked();
    let found = packages.iter().filter(|package| banned.contains(&package.name));
    report("deny.toml bans these crates", &found.map(|package| package.name.clone()).collect::<Vec<_>>());
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let allowed = rules("allow");
    let mut offences = Vec::new();
    for package in metadata()["packages"].as_array().expect("cargo metadata lists packages") {
        let licence = package["license"].as_str().unwrap_or("none");
        if !is_allowed(licence, &allowed) {
            offences.push(format!("{}: {licence}", package["name"]));
        }
    }
    report("deny.toml does not allow these licences", &offences);
}

/// The packages of all platforms. Outside of strict runs those of other platforms need not be downloaded; `cargo xtask test` does it,
/// or lists them as missing.
fn metadata() -> Value {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let known = known(&[]);
    let known = if test_tools::is_strict() {
        known
    } else {
        known.or_else(|_| self::known(&["--filter-platform", &platform]))
    };
    known.unwrap_or_else(|problem| panic!("{problem}"))
}

fn known(flags: &[&str]) -> Result<Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut metadata = Command::new(cargo);
    metadata.args(["metadata", "--format-version", "1", "--offline"]).args(flags).current_dir(root());
    let output = metadata.output().expect("cargo can be run");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON"))
}

/// Whether an SPDX expression can be met with allowed licences. AND binds tighter than OR; an old form has a slash for OR.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.replace('/', " OR ");
    let expression = expression.trim();
    if let Some((left, right)) = split(expression, " OR ") {
        return is_allowed(left, allowed) || is_allowed(right, allowed);
    }
    if let Some((left, right)) = split(expression, " AND ") {
        return is_allowed(left, allowed) && is_allowed(right, allowed);
    }
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => is_allowed(inner, allowed),
        None => allowed.iter().any(|licence| licence == expression),
    }
}

/// Splits at the first operator outside of parentheses.
fn split<'a>(expression: &'a str, operator: &str) -> Option<(&'a str, &'a str)> {
    let is_outside = |place: usize| {
        let before = &expression[..place];
        before.matches('(').count() == before.matches(')').count()
    };
    let (place, _) = expression.match_indices(operator).find(|(place, _)| is_outside(*place))?;
    Some((&expression[..place], &expression[place + operator.len()..]))
}

#[test]
fn licence_expressions_are_evaluated() {
    let allowed = ["MIT".to_owned(), "Unicode-3.0".to_owned()];
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("(GPL-3.0 OR Apache-2.0) AND Unicode-3.0", false),
        ("GPL-3.0 OR MIT AND Unicode-3.0", true),
        ("none", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}
