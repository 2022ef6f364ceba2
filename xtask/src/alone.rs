//! `cargo xtask alone`: checks that every crate compiles on its own, with the features that its own manifest asks for.
//!
//! A build of the whole workspace unifies features: a crate may use one that only another crate switches on.

use std::{fs, path::Path};

use crate::steps::{cargo, root};

pub fn run() -> Result<(), String> {
    let mut failed = Vec::new();
    for name in packages()? {
        if !cargo(&["check", "--quiet", "--package", &name], &[])? {
            failed.push(name);
        }
    }
    match failed[..] {
        [] => Ok(()),
        _ => Err(format!("do not compile on their own: {}", failed.join(", "))),
    }
}

/// The names in the manifests of `crates/*`, sorted.
fn packages() -> Result<Vec<String>, String> {
    let folder = root().join("crates");
    let entries = fs::read_dir(&folder).map_err(|error| format!("cannot list crates: {error}"))?;
    let mut names = entries
        .flatten()
        .map(|entry| name(&entry.path().join("Cargo.toml")))
        .collect::<Result<Vec<_>, _>>()?;
    names.sort();
    Ok(names)
}

fn name(manifest: &Path) -> Result<String, String> {
    let text = fs::read_to_string(manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    name.map(str::to_owned).ok_or_else(|| format!("{} has no name", manifest.display()))
}
