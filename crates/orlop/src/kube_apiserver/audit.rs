//! The audit flags.

use std::path::Path;

use anyhow::Result;
use apiserver::audit::{Mode, Rotation};
use server::AuditConfig;

use crate::audit::{audit_config, wrong_format, wrong_mode};
use crate::go_flags::Given;

const VERSION: &str = "audit.k8s.io/v1";

fn path(given: &Given) -> Option<&str> {
    given.text("audit-log-path").filter(|path| !path.is_empty())
}

/// The problems of the flags, in Kubernetes' words. Without a file the other flags are not checked.
pub(super) fn problems(given: &Given) -> Vec<String> {
    let mut problems = Vec::new();
    if path(given).is_none() {
        return problems;
    }
    problems.extend(given.text("audit-log-mode").and_then(wrong_mode));
    if given.text("audit-log-version").is_some_and(|version| version != VERSION) {
        problems.push(format!("invalid group version, allowed versions are [{VERSION:?}]"));
    }
    problems.extend(given.text("audit-log-format").and_then(wrong_format));
    for name in ["audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize"] {
        if let Some(number) = given.number(name).filter(|number| *number < 0) {
            problems.push(format!("--{name} {number} can't be a negative number"));
        }
    }
    problems
}

/// The audit log, if both policy and file are given. Adds warnings for the operator.
pub(super) fn config(given: &Given, warnings: &mut Vec<String>) -> Result<Option<AuditConfig>> {
    let policy = given.text("audit-policy-file").filter(|file| !file.is_empty());
    let (path, policy) = match (path(given), policy) {
        (Some(path), Some(policy)) => (path, policy),
        (Some(_), None) => {
            warnings
                .push("No audit policy file provided, no events will be recorded for log backend".to_owned());
            return Ok(None);
        }
        (None, Some(_)) => {
            warnings.push("--audit-policy-file has no effect without --audit-log-path".to_owned());
            return Ok(None);
        }
        (None, None) => return Ok(None),
    };
    let number = |name: &str| given.number(name).unwrap_or_default();
    let rotation = Rotation {
        megabytes: u64::try_from(number("audit-log-maxsize")).unwrap_or_default(),
        files: usize::try_from(number("audit-log-maxbackup")).unwrap_or_default(),
        days: u32::try_from(number("audit-log-maxage")).unwrap_or(u32::MAX),
        compress: given.switch("audit-log-compress").unwrap_or_default(),
    };
    let mode = given.text("audit-log-mode").and_then(Mode::from_name).unwrap_or_default();
    Ok(Some(audit_config(Path::new(policy), Path::new(path), rotation, mode)?))
}
