//! The audit flags.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, anyhow, bail};
use apiserver::audit::{Mode, Rotation};
use clap::Args;
use kinds::audit::Policy;
use server::AuditConfig;

/// The help heading of these flags.
const HEADING: &str = "Audit log";
const FORMATS: [&str; 2] = ["legacy", "json"];

/// The audit flags, by kube-apiserver's names.
#[derive(Args, Debug)]
pub(crate) struct AuditArgs {
    /// Audit requests by the policy in this file, an audit.k8s.io/v1 Policy
    #[arg(long, value_name = "FILE", requires = "audit_log_path", help_heading = HEADING)]
    pub(crate) audit_policy_file: Option<PathBuf>,

    /// Write audit events to this file; - for standard output
    #[arg(long, value_name = "FILE", requires = "audit_policy_file", help_heading = HEADING)]
    pub(crate) audit_log_path: Option<PathBuf>,

    /// Format of audit events: json
    #[arg(long, value_name = "FORM", default_value = "json", help_heading = HEADING)]
    pub(crate) audit_log_format: String,

    /// When events are written: before the response (blocking), before it and failing requests that cannot be logged
    /// (blocking-strict), or in the background (batch)
    #[arg(long, value_name = "MODE", default_value = "blocking", help_heading = HEADING)]
    pub(crate) audit_log_mode: String,

    /// Rotate the file at this size in megabytes; 0 for 100
    #[arg(long, value_name = "MEGABYTES", default_value_t = 0, help_heading = HEADING)]
    pub(crate) audit_log_maxsize: u64,

    /// Number of rotated files to keep; 0 for all
    #[arg(long, value_name = "FILES", default_value_t = 0, help_heading = HEADING)]
    pub(crate) audit_log_maxbackup: usize,

    /// Days to keep rotated files; 0 for ever
    #[arg(long, value_name = "DAYS", default_value_t = 0, help_heading = HEADING)]
    pub(crate) audit_log_maxage: u32,

    /// Compress rotated files with gzip
    #[arg(long, help_heading = HEADING)]
    pub(crate) audit_log_compress: bool,
}

impl AuditArgs {
    /// The audit log, if both policy and file are given.
    pub(crate) fn config(&self) -> Result<Option<AuditConfig>> {
        let (Some(file), Some(path)) = (&self.audit_policy_file, &self.audit_log_path) else {
            return Ok(None);
        };
        if let Some(problem) = wrong_format(&self.audit_log_format) {
            bail!(problem);
        }
        if let Some(problem) = wrong_mode(&self.audit_log_mode) {
            bail!(problem);
        }
        let mode = Mode::from_name(&self.audit_log_mode).unwrap_or_default();
        let rotation = Rotation {
            megabytes: self.audit_log_maxsize,
            files: self.audit_log_maxbackup,
            days: self.audit_log_maxage,
            compress: self.audit_log_compress,
        };
        Ok(Some(audit_config(file, path, rotation, mode)?))
    }
}

/// The problem with a log format. Kubernetes also has `legacy`, which is not supported.
pub(crate) fn wrong_format(format: &str) -> Option<String> {
    match format {
        "json" => None,
        "legacy" => Some("--audit-log-format=legacy is not supported: use json".to_owned()),
        other => {
            let known = FORMATS.join(",");
            Some(format!("invalid audit log format {other}, allowed formats are {known:?}"))
        }
    }
}

/// The problem with a mode that Kubernetes does not have, in its words.
pub(crate) fn wrong_mode(mode: &str) -> Option<String> {
    let known = Mode::NAMES.join(",");
    let is_known = Mode::from_name(mode).is_some();
    (!is_known).then(|| format!("invalid audit log mode {mode}, allowed modes are {known:?}"))
}

/// Reads the policy file, with kube-apiserver's error messages.
pub(crate) fn audit_config(file: &Path, path: &Path, rotation: Rotation, mode: Mode) -> Result<AuditConfig> {
    let shown = file.display();
    let text = fs::read(file).map_err(|error| {
        anyhow!("loading audit policy file: failed to read file path \"{shown}\": {error}")
    })?;
    let policy = Policy::read(&text)
        .map_err(|problem| anyhow!("loading audit policy file: {problem}: from file {shown}"))?;
    Ok(AuditConfig { policy, path: path.to_owned(), rotation, mode })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_policy_file_is_reported_in_kubernetes_words() {
        let read = |file: &Path| {
            let read = audit_config(file, Path::new("-"), Rotation::default(), Mode::default());
            read.unwrap_err().to_string()
        };
        assert!(
            read(Path::new("/nonexistent/p"))
                .starts_with("loading audit policy file: failed to read file path \"/nonexistent/p\": ")
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "{apiVersion: audit.k8s.io/v1, kind: Policy}").unwrap();
        let expected = "loading audit policy file: loaded illegal policy with 0 rules: from file ";
        assert_eq!(read(file.path()), format!("{expected}{}", file.path().display()));
        assert!(wrong_format("xml").unwrap().ends_with("allowed formats are \"legacy,json\""));
    }
}
