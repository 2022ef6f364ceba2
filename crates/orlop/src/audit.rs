//! The audit log, as the command line says it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, anyhow, bail};
use apiserver::audit::{Audit, Log, Mode, Rotation};
use clap::Args;
use kinds::audit::Policy;

const LOGGED: &str = "What is written down";
const FORMATS: [&str; 2] = ["legacy", "json"];

/// What the API server takes about the audit log, by the names that kube-apiserver has for it.
#[derive(Args, Debug)]
pub(crate) struct AuditArgs {
    /// Write down who asks for what, as the policy in this file says: a Policy of audit.k8s.io/v1
    #[arg(long, value_name = "FILE", requires = "audit_log_path", help_heading = LOGGED)]
    pub(crate) audit_policy_file: Option<PathBuf>,

    /// Write it into this file, or to the standard output: -
    #[arg(long, value_name = "FILE", requires = "audit_policy_file", help_heading = LOGGED)]
    pub(crate) audit_log_path: Option<PathBuf>,

    /// Write it in this form, of which there is one: json
    #[arg(long, value_name = "FORM", default_value = "json", help_heading = LOGGED)]
    pub(crate) audit_log_format: String,

    /// Let responses wait until their events are written: blocking; also fail requests that cannot be logged: blocking-strict; or
    /// let no response wait: batch
    #[arg(long, value_name = "MODE", default_value = "blocking", help_heading = LOGGED)]
    pub(crate) audit_log_mode: String,

    /// Begin another file after so many megabytes, 0 for 100
    #[arg(long, value_name = "MEGABYTES", default_value_t = 0, help_heading = LOGGED)]
    pub(crate) audit_log_maxsize: u64,

    /// Keep so many old files, 0 for all
    #[arg(long, value_name = "FILES", default_value_t = 0, help_heading = LOGGED)]
    pub(crate) audit_log_maxbackup: usize,

    /// Keep old files for so many days, 0 for ever
    #[arg(long, value_name = "DAYS", default_value_t = 0, help_heading = LOGGED)]
    pub(crate) audit_log_maxage: u32,

    /// Compress old files with gzip
    #[arg(long, help_heading = LOGGED)]
    pub(crate) audit_log_compress: bool,
}

/// An audit log that is asked for: what goes into it, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Auditing {
    policy: Policy,
    path: PathBuf,
    rotation: Rotation,
    mode: Mode,
}

impl AuditArgs {
    /// The log, if both what and where is said.
    pub(crate) fn auditing(&self) -> Result<Option<Auditing>> {
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
        Ok(Some(Auditing::new(file, path, rotation)?.with_mode(mode)))
    }
}

/// What is wrong with a form of the log: those that Kubernetes knows are one more than there are here.
pub(crate) fn wrong_format(format: &str) -> Option<String> {
    match format {
        "json" => None,
        "legacy" => Some("--audit-log-format legacy is not there: use json".to_owned()),
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

impl Auditing {
    /// Reads the policy, in whose errors are the words of kube-apiserver.
    pub(crate) fn new(file: &Path, path: &Path, rotation: Rotation) -> Result<Self> {
        let shown = file.display();
        let text = fs::read(file).map_err(|error| {
            anyhow!("loading audit policy file: failed to read file path \"{shown}\": {error}")
        })?;
        let policy = Policy::read(&text)
            .map_err(|problem| anyhow!("loading audit policy file: {problem}: from file {shown}"))?;
        Ok(Self { policy, path: path.to_owned(), rotation, mode: Mode::default() })
    }

    /// The same log in another mode.
    pub(crate) fn with_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Opens the log. Whoever stops the server flushes it.
    pub(crate) fn open(&self) -> Result<(Audit, Arc<Log>)> {
        self.policy.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let log = Log::open(&self.path, self.rotation)
            .with_context(|| format!("cannot write the audit log {}", self.path.display()))?;
        let log = Arc::new(log.with_mode(self.mode));
        Ok((Audit::new(self.policy.clone(), Arc::clone(&log)), log))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_told_in_the_words_of_kubernetes() {
        let read = |file: &Path| {
            let read = Auditing::new(file, Path::new("-"), Rotation::default());
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
