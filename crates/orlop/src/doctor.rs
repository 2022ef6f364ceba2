//! `orlop doctor`: checks a database and the files of a server, and prints a remedy for each finding.

use std::{
    ffi::OsString,
    fmt::Write,
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::Result;
use clap::Args;
use process::{args::DataArgs, pki};
use store::doctor::{self, Finding, Report};

use crate::{backup::archive::DATABASE, postgres::PostgresArgs};

/// A running server renews certificates with less remaining lifetime than this.
const SOON: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Arguments of `orlop doctor`.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    data: DataArgs,

    #[command(flatten)]
    postgres: PostgresArgs,
}

/// Runs all checks, and prints their results; success if there is no finding.
pub(crate) async fn run(
    args: DoctorArgs,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<ExitCode> {
    let is_given = args.data.is_given();
    let mut report = match args.postgres.given(&environment)? {
        Some(given) => {
            given.warnings.iter().for_each(|warning| eprintln!("orlop: warning: {warning}"));
            let mut report = doctor::postgres(&given.address.url, given.address.passfile.as_deref()).await?;
            if is_given {
                of_files(&args.data.folder(environment)?, SystemTime::now(), &mut report);
            }
            report
        }
        None => {
            let data = args.data.folder(environment)?;
            let database = data.join(DATABASE);
            let mut report = tokio::task::spawn_blocking(move || doctor::sqlite(&database)).await??;
            of_files(&data, SystemTime::now(), &mut report);
            report
        }
    };
    crate::print(&shown(&mut report));
    Ok(if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn shown(report: &mut Report) -> String {
    let mut text = String::new();
    for check in &report.checks {
        let findings: Vec<_> = report.findings.iter().filter(|finding| finding.check == *check).collect();
        if findings.is_empty() {
            let _ = writeln!(text, "ok      {check}");
        }
        for Finding { problem, remedy, .. } in findings {
            let _ = writeln!(text, "FAILED  {check}\n        found: {problem}\n        do:    {remedy}");
        }
    }
    let _ = match report.findings.len() {
        0 => writeln!(text, "{} checks, nothing found", report.checks.len()),
        found => writeln!(text, "{} checks, {found} failed", report.checks.len()),
    };
    text
}

/// Checks the modes of private files and the expiry of certificates.
fn of_files(data: &Path, now: SystemTime, report: &mut Report) {
    let private = [
        DATABASE,
        "orlop.db-wal",
        "orlop.db.lock",
        "kubeconfig",
        "pki/ca.key",
        "pki/sa.key",
        "pki/server.key",
        "pki/admin.key",
    ];
    let open = private.into_iter().filter_map(|name| {
        let mode = fs::metadata(data.join(name)).ok()?.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then(|| format!("{name} has mode {mode:04o}"))
    });
    note(
        report,
        "private files are readable by their owner alone",
        "run chmod 600 on them, or start the server",
        open.collect(),
    );
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let soon = i64::try_from((now + SOON).as_secs()).unwrap_or(i64::MAX);
    let ending = ["ca.crt", "server.crt", "admin.crt"].into_iter().filter_map(|name| {
        let text = fs::read_to_string(data.join("pki").join(name)).ok()?;
        match pki::expires_at(&text) {
            None => Some(format!("pki/{name} is no certificate")),
            Some(end) if end < soon => Some(format!("pki/{name} ends {end} seconds after 1970 (UTC)")),
            Some(_) => None,
        }
    });
    note(
        report,
        "certificates are valid for another 30 days",
        "start the server: it renews them",
        ending.collect(),
    );
}

fn note(report: &mut Report, check: &'static str, remedy: &'static str, found: Vec<String>) {
    report.checks.push(check);
    if !found.is_empty() {
        report.findings.push(Finding { check, problem: found.join("; "), remedy });
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn open_files_and_ending_certificates_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        pki::Pki::ensure(&data.join("pki"), "localhost", SystemTime::now()).unwrap();
        let checked = |now| {
            let mut report = Report::default();
            of_files(data, now, &mut report);
            shown(&mut report)
        };
        assert!(checked(SystemTime::now()).ends_with("2 checks, nothing found\n"));
        let later = checked(SystemTime::now() + Duration::from_secs(360 * 24 * 60 * 60));
        assert!(later.contains("pki/server.crt ends") && !later.contains("pki/ca.crt ends"), "{later}");
        fs::set_permissions(data.join("pki/ca.key"), Permissions::from_mode(0o640)).unwrap();
        let open = checked(SystemTime::now());
        assert!(open.contains("pki/ca.key has mode 0640") && open.contains("chmod 600"), "{open}");
        assert!(open.ends_with("2 checks, 1 failed\n"), "{open}");
    }
}
