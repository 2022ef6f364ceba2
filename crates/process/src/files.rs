//! Files that are either as they were or as they shall be, whatever happens while they are written.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tempfile::{Builder, NamedTempFile};

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its owner only: keys, and what contains them.
    Private,
    /// Everybody on the machine.
    Public,
}

/// Makes a folder, and those above it, for its owner only. A folder that exists stays as it is.
///
/// # Errors
/// When the operating system refuses.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Logs a warning where other users of the machine can list or enter a folder. The files in it are private all the same; what a
/// person puts beside them may not be.
pub fn warn_if_open(folder: &Path) {
    let Ok(found) = fs::metadata(folder) else { return };
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let mode = format!("{mode:04o}");
        tracing::warn!(path = %folder.display(), mode, "the data directory is open to other users; restrict it with chmod 700");
    }
}

/// Takes the rights of group and others away from a file that has any. One that is missing is left to whoever makes it; one that
/// belongs to another user (a mounted secret, for example) stays as it is, which the log says.
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

/// Puts `bytes` where `path` is, in one step: a reader sees the old file or the new one, also after a power cut.
///
/// # Errors
/// When the folder is missing or not writable, or the disk is full; the old file is then untouched.
pub fn write_durably(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    let mut draft = Draft::beside(path, access)?;
    draft.file().write_all(bytes)?;
    draft.commit()
}

/// A file that is written beside its place: in place once it is committed, and gone if it never is.
pub struct Draft {
    file: NamedTempFile,
    path: PathBuf,
}

impl Draft {
    /// An empty file in the folder of `path`.
    ///
    /// # Errors
    /// When the folder is missing or not writable.
    pub fn beside(path: &Path, access: Access) -> io::Result<Self> {
        Ok(Self { file: new_beside(path, access)?, path: path.to_owned() })
    }

    /// The file, to write to.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Puts the file in its place, in one step that a power cut does not undo.
    ///
    /// # Errors
    /// When the disk is full or the place is a folder; what was there is then untouched.
    pub fn commit(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        // The new name is in the folder, so the folder must reach the disk too.
        File::open(folder(&self.path))?.sync_all()
    }
}

/// Makes a file that only its owner can read, and that was not there before.
///
/// # Errors
/// When it is there, or the folder is missing or not writable.
pub fn create_private(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// The same, but a power cut may leave neither: for what is made again from something else when it is missing or damaged. It does
/// not wait for the disk.
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
