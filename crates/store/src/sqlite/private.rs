//! File modes: the database and every file beside it are accessible to the owner alone.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

/// Files that SQLite makes beside a database.
pub const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Creates the database file if it is missing, with mode 0600 from the start whatever the umask is, and
/// removes the permissions of group and others from files that an older version or a copy left wider. It has
/// to run before SQLite opens the database: SQLite gives the write-ahead log the mode of the database, and
/// closing another descriptor of the file would drop SQLite's locks.
pub fn prepare(database: &Path) -> io::Result<()> {
    if !database.exists() {
        open(database)?;
    }
    restrict(database);
    for suffix in BESIDE {
        restrict(&beside(database, suffix));
    }
    Ok(())
}

/// Opens a file for writing, created with mode 0600 if it is missing.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    options.mode(0o600);
    options.open(path)
}

/// The path of a file beside the database.
pub fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Removes the permissions of group and others. A file of another owner stays as it is, with a log message.
pub fn restrict(path: &Path) {
    let Ok(found) = fs::metadata(path) else { return };
    let Some(narrow) = narrowed(&found.permissions()) else { return };
    match fs::set_permissions(path, narrow) {
        Ok(()) => {
            tracing::warn!(path = %path.display(), "the file was open to other users; its mode is now 0600")
        }
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot restrict the mode of a database file; other users can read it");
        }
    }
}

/// The same permissions for the owner and none for others, if others have any.
#[cfg(unix)]
fn narrowed(permissions: &Permissions) -> Option<Permissions> {
    let mode = permissions.mode();
    (mode & 0o077 != 0).then(|| Permissions::from_mode(mode & 0o700))
}

#[cfg(not(unix))]
fn narrowed(_: &Permissions) -> Option<Permissions> {
    None
}
