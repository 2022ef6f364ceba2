//! The public CEL conformance cases: an npm package, stored below `target`.

use std::{fs, path::Path};

use crate::{clients::run, steps::root};

/// Pinned: the cases of a new version have to be reviewed.
const PACKAGE: &str = "@bufbuild/cel-spec@0.6.1";
/// Converts the cases, a JavaScript value, to JSON.
const SCRIPT: &str = "const { tests } = require('./package/dist/cjs/testdata/conformance.js');
require('fs').writeFileSync('conformance.json', JSON.stringify(tests));";

/// Downloads the cases unless they exist; returns the problem if that fails.
pub fn prepare() -> Option<String> {
    let problem = fetch(&root().join("target/cel-spec")).err()?;
    Some(format!("conformance cases of the expression language: {problem}"))
}

fn fetch(folder: &Path) -> Result<(), String> {
    if folder.join("conformance.json").is_file() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    run(folder, "npm", &["pack", "--silent", PACKAGE])?;
    let files = fs::read_dir(folder).map_err(|error| error.to_string())?.flatten().map(|entry| entry.path());
    let package = files.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "tgz"));
    let package = package.ok_or("the package was not downloaded")?;
    run(folder, "tar", &["-xzf", &package.to_string_lossy()])?;
    run(folder, "node", &["-e", SCRIPT])
}
