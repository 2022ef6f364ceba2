//! The file of `--admission-control-config-file`.

use std::fs;
use std::path::Path;

use anyhow::{Result, anyhow};
use apiserver::admission::Switches;
use kinds::admission::configuration::AdmissionConfiguration;

/// Reads the file for the plugins that are on; without a file the default configuration. Relative paths in it start at its folder.
pub(crate) fn read_configuration(path: Option<&Path>, plugins: &Switches) -> Result<AdmissionConfiguration> {
    let Some(path) = path else { return Ok(AdmissionConfiguration::default()) };
    let failed = |problem: String| anyhow!("failed to apply admission: {problem}");
    let file = fs::read(path).map_err(|error| {
        failed(format!(
            "failed to read plugin config: unable to read admission control configuration from {path:?} [{error}]"
        ))
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let load = |name: &str| {
        let path = folder.join(name);
        fs::read(&path).map_err(|error| {
            format!("Couldn't open admission plugin configuration {}: {error}", path.display())
        })
    };
    AdmissionConfiguration::read(&file, &|name| plugins.is_on(name), &load).map_err(failed)
}
