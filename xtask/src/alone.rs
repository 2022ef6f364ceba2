//! `cargo xtask alone`: checks that every crate compiles on its own, with the features that its own manifest asks for.
//!
//! A build of the whole workspace unifies features, so a crate could use a feature that only another crate
//! enables.

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

/// The names in the manifests of the workspace, sorted: of `crates/*`, of the examples that have one, and of this program.
fn packages() -> Result<Vec<String>, String> {
    let mut manifests = vec![root().join("xtask/Cargo.toml")];
    for folder in ["crates", "examples"] {
        let entries =
            fs::read_dir(root().join(folder)).map_err(|error| format!("cannot list {folder}: {error}"))?;
        manifests.extend(entries.flatten().map(|entry| entry.path().join("Cargo.toml")));
    }
    manifests.retain(|manifest| manifest.is_file());
    let mut names = manifests.iter().map(|manifest| name(manifest)).collect::<Result<Vec<_>, _>>()?;
    names.sort();
    Ok(names)
}

fn name(manifest: &Path) -> Result<String, String> {
    let text = fs::read_to_string(manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    name.map(str::to_owned).ok_or_else(|| format!("{} has no name", manifest.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_of_the_workspace_is_checked() {
        let packages = packages().unwrap();
        for name in ["store", "example-scores", "xtask"] {
            assert!(packages.iter().any(|package| package == name), "{name} in {packages:?}");
        }
    }
}
