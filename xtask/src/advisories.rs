//! Checks the dependencies for advisories, if the advisory database is reachable.

use std::{
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{steps::cargo, tools::is_on_path};

/// The database that cargo-deny fetches.
const DATABASE: &str = "https://github.com/rustsec/advisory-db";

/// Time limit of the connection to the database.
const PATIENCE: Duration = Duration::from_secs(20);

/// Result of the check for advisories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advisories {
    /// No dependency has one.
    None,
    /// A dependency has one.
    Some,
    /// The database cannot be reached, so nothing is known.
    Unreachable,
    /// The database can be reached, but the tool is not installed.
    NoTool,
}

impl Advisories {
    /// Compares the dependencies with the database.
    pub fn check() -> Result<Self, String> {
        if !is_reachable() {
            return Ok(Self::Unreachable);
        }
        if !is_on_path("cargo-deny") {
            return Ok(Self::NoTool);
        }
        if !cargo(&["deny", "fetch", "db"], &[])? {
            return Ok(Self::Unreachable);
        }
        let is_clean = cargo(&["deny", "--offline", "check", "advisories"], &[])?;
        Ok(if is_clean { Self::None } else { Self::Some })
    }

    /// The line of the summary.
    pub fn line(self) -> &'static str {
        match self {
            Self::None => "Advisories: checked, no dependency has one",
            Self::Some => "Advisories: a dependency has one, see above",
            Self::Unreachable => "Advisories: not checked, their database cannot be reached",
            Self::NoTool => {
                "Advisories: not checked, cargo-deny is missing (cargo install --locked cargo-deny)"
            }
        }
    }

    /// Fails for an advisory, and in strict mode for the missing tool; an unreachable database is no failure.
    pub fn verdict(self, is_strict: bool) -> Result<(), String> {
        match self {
            Self::Some => Err("a dependency has an advisory".to_owned()),
            Self::NoTool if is_strict => Err("a strict run checks advisories where it can".to_owned()),
            Self::None | Self::Unreachable | Self::NoTool => Ok(()),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the exit of another process cannot be waited for with a limit of time"
)]
fn is_reachable() -> bool {
    let mut git = Command::new("git");
    git.args(["ls-remote", "--exit-code", DATABASE, "HEAD"]).env("GIT_TERMINAL_PROMPT", "0");
    let started = git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut process) = started else { return false };
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        match process.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => thread::sleep(Duration::from_millis(50)),
            Err(_) => return false,
        }
    }
    let _ = process.kill();
    let _ = process.wait();
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_advisory_fails_a_run_and_a_strict_one_needs_the_tool() {
        use Advisories::{NoTool, None, Some, Unreachable};
        for (advisories, fails, fails_strictly) in
            [(None, false, false), (Some, true, true), (Unreachable, false, false), (NoTool, false, true)]
        {
            let verdicts = [false, true].map(|is_strict| advisories.verdict(is_strict).is_err());
            assert_eq!(verdicts, [fails, fails_strictly], "{advisories:?}");
            assert_eq!(advisories.line().contains("not checked"), matches!(advisories, Unreachable | NoTool));
        }
    }
}
