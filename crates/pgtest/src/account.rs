//! The account that the server runs as: PostgreSQL refuses to run as root, and CI machines often are root.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

use crate::Error;

/// Unprivileged accounts for a server that root starts, in order of preference. Every Unix has the second.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// The account of the server processes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Account {
    /// The account that runs the tests.
    Own,
    /// An unprivileged account, because the tests run as root.
    Other { uid: u32, gid: u32 },
}

impl Account {
    /// Detects root by the owner of a file that this process creates.
    pub(crate) fn of_tests() -> Result<Self, Error> {
        let owner = tempfile::tempfile().and_then(|file| file.metadata());
        let owner = owner.map_err(|error| Error::because("a temporary file", error))?.uid();
        if owner != 0 {
            return Ok(Self::Own);
        }
        let users =
            fs::read_to_string("/etc/passwd").map_err(|error| Error::because("/etc/passwd", error))?;
        CANDIDATES.iter().find_map(|name| find(&users, name)).ok_or_else(|| {
            Error(
                "PostgreSQL does not run as root and there is no user postgres or nobody: add one".to_owned(),
            )
        })
    }

    /// Gives the folder to this account.
    pub(crate) fn take(self, folder: &Path) -> Result<(), Error> {
        match self {
            Self::Own => Ok(()),
            Self::Other { uid, gid } => chown(folder, Some(uid), Some(gid))
                .map_err(|error| Error::because("cannot give the temporary folder away", error)),
        }
    }

    /// Lets this account own a folder and everything in it.
    pub(crate) fn take_all(self, folder: &Path) -> Result<(), Error> {
        let Self::Other { uid, gid } = self else { return Ok(()) };
        let given = Command::new("chown").arg("-R").arg(format!("{uid}:{gid}")).arg(folder).status();
        match given {
            Ok(status) if status.success() => Ok(()),
            other => Err(Error::because("cannot give a folder away", format_args!("{other:?}"))),
        }
    }

    /// A command that runs as this account, in a folder that it can read and without `PG*` environment
    /// variables.
    pub(crate) fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // A process group of its own keeps Ctrl-C in a terminal from stopping the server before the test has
        // ended.
        command.current_dir("/").process_group(0);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        if let Self::Other { uid, gid } = self {
            command.uid(uid).gid(gid);
        }
        command
    }
}

fn find(users: &str, name: &str) -> Option<Account> {
    users.lines().find_map(|line| {
        let fields: Vec<_> = line.split(':').collect();
        match fields[..] {
            [user, _, uid, gid, ..] if user == name => {
                Some(Account::Other { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
            }
            _ => None,
        }
    })
}
