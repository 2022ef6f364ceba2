//! A child process that cleans up after a server, however the test process ends.
//!
//! It waits for end-of-file on its standard input, which comes when the [`Caretaker`] is dropped and also
//! when the test process is killed. `Drop` alone does not run after SIGKILL, nor for a `static`.

use std::{
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use crate::{Error, account::Account, binaries::Binaries};

const SCRIPT: &str = r#"cat >/dev/null; "$1" stop -D "$2/data" -m immediate -s; rm -rf "$2""#;

#[derive(Debug)]
pub(crate) struct Caretaker {
    process: Child,
    folder: PathBuf,
}

impl Caretaker {
    /// Creates an empty temporary folder that the account owns.
    pub(crate) fn folder_for(account: Account) -> Result<PathBuf, Error> {
        let folder = tempfile::Builder::new()
            .prefix("pgtest-")
            .tempdir()
            .map_err(|error| Error::because("cannot make a temporary folder", error))?;
        account.take(folder.path())?;
        Ok(folder.keep())
    }

    /// Starts the process. It runs as the server's account, so it cannot stop processes or remove files of
    /// other accounts.
    pub(crate) fn of(folder: &Path, account: Account, binaries: &Binaries) -> Result<Self, Error> {
        let process = account
            .command(Path::new("/bin/sh"))
            .args(["-c", SCRIPT, "caretaker"])
            .arg(binaries.path("pg_ctl"))
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| Error::because("cannot start /bin/sh", error))?;
        Ok(Self { process, folder: folder.to_owned() })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Caretaker {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let cleaned = self.process.wait().is_ok_and(|status| status.success());
        if !cleaned {
            eprintln!("pgtest could not remove {}", self.folder.display());
        }
    }
}
