//! The source files of the repository.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folder of the workspace.
pub fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(Path::parent).expect("this crate is in crates/ of the workspace").to_owned()
}

/// A file of the repository: its path from the root, and its text.
pub struct Source {
    pub path: PathBuf,
    pub text: String,
}

/// Every Rust file of the workspace.
pub fn rust_files() -> Vec<Source> {
    let mut files = Vec::new();
    for folder in ["crates", "examples", "xtask"] {
        collect(&root().join(folder), &mut files);
    }
    files.sort();
    let sources = files.into_iter().map(|file| Source {
        text: fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())),
        path: file.strip_prefix(root()).expect("it was found below the root").to_owned(),
    });
    sources.collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Fails with all offences at once, one per line, under a sentence with the rule.
pub fn report(rule: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{rule}:\n  {}", offences.join("\n  "));
}
