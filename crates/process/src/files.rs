//! Atomic file replacement and private file modes.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tempfile::{Builder, NamedTempFile};

/// The read permission of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only the owner: keys, and files that contain them.
    Private,
    /// All users of the machine.
    Public,
}

/// Creates a folder and its parents with mode 0700. An existing folder is not changed.
///
/// # Errors
/// When the operating system refuses.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Logs a warning if other users of the machine can list or enter a folder. Its private files stay protected
/// by their own modes; files that the operator adds may not be.
pub fn warn_if_open(folder: &Path) {
    let Ok(found) = fs::metadata(folder) else { return };
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let mode = format!("{mode:04o}");
        tracing::warn!(path = %folder.display(), mode, "the data directory is open to other users; restrict it with chmod 700");
    }
}

/// Removes the permissions of group and others from a file. A missing file is skipped. A file of another
/// user, such as a mounted Secret, stays as it is with a warning.
pub fn restrict(path: &Path) {
    let Ok(found) = fs::metadata(path) else { return };
    let mode = found.permissions().mode();
    if mode & 0o077 == 0 {
        return;
    }
    if let Err(error) = fs::set_permissions(path, Permissions::from_mode(mode & 0o700)) {
        tracing::warn!(path = %path.display(), %error, "cannot restrict the mode of a private file; other users can read it");
    }
}

/// Replaces the content of `path` atomically: readers see the old file or the new one, also after a power
/// failure.
///
/// # Errors
/// When the folder is missing or not writable, or the disk is full; the old file is then untouched.
pub fn write_durably(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    let mut draft = Draft::beside(path, access)?;
    draft.file().write_all(bytes)?;
    draft.commit()
}

/// A file that is written beside its target: [`Draft::commit`] renames it into place, a drop removes it.
pub struct Draft {
    file: NamedTempFile,
    path: PathBuf,
}

impl Draft {
    /// Creates an empty file in the folder of `path`.
    ///
    /// # Errors
    /// When the folder is missing or not writable.
    pub fn beside(path: &Path, access: Access) -> io::Result<Self> {
        Ok(Self { file: new_beside(path, access)?, path: path.to_owned() })
    }

    /// The file to write to.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Syncs the file and renames it into place, atomically and durably.
    ///
    /// # Errors
    /// When the disk is full or the target is a folder; the old file is then untouched.
    pub fn commit(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        // The rename is a change of the folder, which has to be synced as well.
        File::open(folder(&self.path))?.sync_all()
    }
}

/// Creates a new file with mode 0600.
///
/// # Errors
/// When the file exists, or the folder is missing or not writable.
pub fn create_private(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Like [`write_durably`], without waiting for the disk: a power failure may lose both versions. For files
/// that can be regenerated.
///
/// # Errors
/// When the folder is missing or not writable, or the disk is full; the old file is then untouched.
pub fn replace(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    write_beside(path, bytes, access)?.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn write_beside(path: &Path, bytes: &[u8], access: Access) -> io::Result<NamedTempFile> {
    let mut file = new_beside(path, access)?;
    file.write_all(bytes)?;
    Ok(file)
}

fn new_beside(path: &Path, access: Access) -> io::Result<NamedTempFile> {
    let mode = match access {
        Access::Private => 0o600,
        Access::Public => 0o644,
    };
    let permissions = Permissions::from_mode(mode);
    Builder::new().prefix(".new-").permissions(permissions).tempfile_in(folder(path))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    type Write = fn(&Path, &[u8], Access) -> io::Result<()>;

    const BOTH: [Write; 2] = [write_durably, replace];

    #[test]
    fn a_file_is_replaced_with_its_mode_and_nothing_else_is_left() {
        for write in BOTH {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("key");
            write(&path, b"old", Access::Public).unwrap();
            write(&path, b"new", Access::Private).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            assert_eq!(mode(&path), 0o600);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_failed_write_leaves_the_folder_clean() {
        for write in BOTH {
            let folder = tempfile::tempdir().unwrap();
            let occupied = folder.path().join("occupied");
            fs::create_dir_all(occupied.join("child")).unwrap();
            write(&occupied, b"new", Access::Public).unwrap_err();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_file_with_wider_rights_is_restricted_to_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        restrict(&path);
        for (wide, narrow) in [(0o666, 0o600), (0o440, 0o400), (0o600, 0o600)] {
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(wide)).unwrap();
            restrict(&path);
            assert_eq!(mode(&path), narrow);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_private_folder_is_made_with_its_parents() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        create_private_folder(&path).unwrap();
        create_private_folder(&path).unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o700, 0o700));
    }
}
