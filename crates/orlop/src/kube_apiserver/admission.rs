//! Admission as flags configure it: the file of the plugins, and policies that change objects.

use std::fs;
use std::path::Path;

use anyhow::{Result, anyhow};
use apiserver::admission::Switches;
use model::admission::configuration::AdmissionConfiguration;

use crate::go_flags::Given;

/// The API of policies that change objects.
pub(super) const MUTATING_POLICIES: (&str, &str) = ("admissionregistration.k8s.io", "v1beta1");
const GATE: &str = "MutatingAdmissionPolicy";
const APIS: [&str; 3] = ["admissionregistration.k8s.io/v1beta1", "api/all", "api/beta"];

/// What the file of `--admission-control-config-file` says; files that it names are found beside it.
pub(super) fn configuration(given: &Given, plugins: &Switches) -> Result<AdmissionConfiguration> {
    let Some(path) = given.text("admission-control-config-file").filter(|path| !path.is_empty()) else {
        return Ok(AdmissionConfiguration::default());
    };
    let failed = |problem: String| anyhow!("failed to apply admission: {problem}");
    let file = fs::read(path).map_err(|error| {
        failed(format!(
            "failed to read plugin config: unable to read admission control configuration from {path:?} [{error}]"
        ))
    })?;
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let load = |name: &str| {
        let path = folder.join(name);
        fs::read(&path).map_err(|error| {
            format!("Couldn't open admission plugin configuration {}: {error}", path.display())
        })
    };
    AdmissionConfiguration::read(&file, &|name| plugins.is_on(name), &load).map_err(failed)
}

/// Whether policies that change objects are asked for: by their gate and by their API, for neither does anything alone.
pub(super) fn has_mutating_policies(given: &Given) -> bool {
    let is_true = |value: &str| matches!(value.to_ascii_lowercase().as_str(), "" | "true" | "t" | "1");
    let is_set = |flag: &str, is_key: &dyn Fn(&str) -> bool| {
        given.pairs(flag).iter().any(|(key, value)| is_key(key) && is_true(value))
    };
    is_set("feature-gates", &is_gate) && is_set("runtime-config", &|key| APIS.contains(&key))
}

/// Whether a gate is that of policies that change objects.
pub(super) fn is_gate(key: &str) -> bool {
    key.strip_prefix("kube:").unwrap_or(key) == GATE
}

/// Whether a key of `--runtime-config` is their API.
pub(super) fn is_api(key: &str) -> bool {
    key == APIS[0]
}
