//! Fixture files: `fixtures/oracle/AREA/NAME.yaml` and, beside it, `NAME.answers.yaml`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::script::Script;

/// The files of a script.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// `AREA/NAME`.
    pub name: String,
    /// The path of the script.
    pub script: PathBuf,
    /// The path of the recorded answers.
    pub answers: PathBuf,
}

/// The prefix of areas whose scripts need controllers.
pub(crate) const CONTROLLERS: &str = "controllers-";

const ANSWERS: &str = ".answers.yaml";

impl Fixture {
    /// Reads the script; also returns its text.
    ///
    /// # Errors
    /// The problem, worded for the author of the script.
    pub fn read(&self) -> Result<(Script, String), String> {
        let named = |problem: &dyn std::fmt::Display| format!("{}: {problem}", self.name);
        let source = fs::read_to_string(&self.script).map_err(|error| named(&error))?;
        let script = Script::parse(&source).map_err(|problem| named(&problem))?;
        if script.controllers != self.name.starts_with(CONTROLLERS) {
            return Err(named(&format!("`controllers: true` and an area {CONTROLLERS}* require each other")));
        }
        Ok((script, source))
    }
}

/// The folder of all fixtures.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/oracle")
}

/// The list of intended differences.
pub fn allow_list() -> PathBuf {
    folder().join("allowed.yaml")
}

/// All scripts whose name contains the filter, sorted by name.
///
/// # Errors
/// When a folder cannot be read.
pub fn fixtures(filter: &str) -> io::Result<Vec<Fixture>> {
    let mut found = Vec::new();
    for area in fs::read_dir(folder())? {
        let area = area?.path();
        if !area.is_dir() {
            continue;
        }
        for file in fs::read_dir(&area)? {
            let script = file?.path();
            let text =
                |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
            let file_name = text(script.file_name());
            if file_name.ends_with(ANSWERS) || !file_name.ends_with(".yaml") {
                continue;
            }
            let stem = text(script.file_stem());
            let name = format!("{}/{stem}", text(area.file_name()));
            if name.contains(filter) {
                found.push(Fixture { name, answers: area.join(format!("{stem}{ANSWERS}")), script });
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}
