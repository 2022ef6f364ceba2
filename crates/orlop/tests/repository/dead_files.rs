//! No file without a module declaration: it would be read, edited, and never compiled.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::sources::{Source, report, rust_files};

/// Whether cargo takes a file as the root of a crate by its path alone.
fn is_root(path: &Path) -> bool {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let parts: Vec<_> = parts.iter().map(|part| &**part).collect();
    match parts[..] {
        [.., "src", "lib.rs" | "main.rs"] => true,
        [.., "src", "bin", _] => true,
        [.., "tests" | "benches" | "examples", _] => !parts.contains(&"src"),
        [.., "tests" | "benches" | "examples", _, "main.rs"] => !parts.contains(&"src"),
        [.., _, "build.rs"] => !parts.contains(&"src"),
        _ => false,
    }
}

/// The files that a file declares as its modules.
fn declared(source: &Source) -> Vec<PathBuf> {
    let folder = source.path.parent().unwrap_or(Path::new(""));
    let stem = source.path.file_stem().unwrap_or_default();
    let is_mod = is_root(&source.path) || stem == "mod";
    let base = if is_mod { folder.to_owned() } else { folder.join(stem) };
    let mut files = Vec::new();
    let mut path_attribute = None;
    for line in source.text.lines().map(str::trim) {
        if let Some(path) =
            between(line, "#[path = \"", "\"]").or_else(|| between(line, "include!(\"", "\")"))
        {
            path_attribute = Some(folder.join(path));
            files.extend(path_attribute.clone());
        }
        let Some(name) = module_name(line) else { continue };
        if path_attribute.take().is_none() {
            files.push(base.join(format!("{name}.rs")));
            files.push(base.join(name).join("mod.rs"));
        }
    }
    files
}

/// The name in `mod name;`, whatever its visibility.
fn module_name(line: &str) -> Option<&str> {
    let declaration = line.strip_suffix(';')?;
    let (visibility, name) = declaration.split_once("mod ").unwrap_or(("-", ""));
    let is_visibility = visibility.is_empty() || visibility.starts_with("pub");
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_visibility && is_name).then_some(name)
}

fn between<'a>(line: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(before)?;
    rest.split_once(after).map(|(inner, _)| inner)
}

#[test]
fn every_file_is_part_of_a_crate() {
    let sources = rust_files();
    let mut alive: BTreeSet<&Path> =
        sources.iter().map(|s| s.path.as_path()).filter(|p| is_root(p)).collect();
    loop {
        let reached: BTreeSet<_> = sources
            .iter()
            .filter(|source| alive.contains(source.path.as_path()))
            .flat_map(declared)
            .collect();
        let before = alive.len();
        alive.extend(sources.iter().map(|s| s.path.as_path()).filter(|path| reached.contains(*path)));
        if alive.len() == before {
            break;
        }
    }
    let dead = sources.iter().filter(|source| !alive.contains(source.path.as_path()));
    let dead: Vec<_> = dead.map(|source| source.path.display().to_string()).collect();
    report("no module declares these files: declare or delete them", &dead);
}

#[test]
fn declarations_are_recognised() {
    assert_eq!(module_name("mod verbs;"), Some("verbs"));
    assert_eq!(module_name("pub(crate) mod verbs;"), Some("verbs"));
    assert_eq!(module_name("// mod verbs;"), None);
    assert_eq!(module_name("mod verbs {"), None);
    assert_eq!(module_name("let mod_count = 1;"), None);
}
