//! The file of the audit log. A full file is renamed with a timestamp, and a new one begins.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::rotation::RotatedFiles;

/// The default size limit, as in kube-apiserver.
const DEFAULT_MEGABYTES: u64 = 100;
const MEGABYTE: u64 = 1 << 20;

/// The rotation of log files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// Size limit in megabytes; 0 means 100.
    pub megabytes: u64,
    /// Days to keep rotated files; 0 means for ever.
    pub days: u32,
    /// Number of rotated files to keep; 0 means all.
    pub files: usize,
    /// Whether rotated files are compressed.
    pub compress: bool,
}

/// A log file in append mode.
pub(super) struct File {
    path: PathBuf,
    megabytes: u64,
    old: RotatedFiles,
    file: fs::File,
    length: u64,
    has_rotated: bool,
}

impl File {
    pub fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let file = at_the_end(path)?;
        let length = file.metadata()?.len();
        let (path, old) = (path.to_owned(), RotatedFiles::new(path, rotation));
        // Files of the last run may need cleanup.
        Ok(Self { path, megabytes: rotation.megabytes, old, file, length, has_rotated: true })
    }

    /// Writes lines, none of them split between two files.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let megabytes = if self.megabytes == 0 { DEFAULT_MEGABYTES } else { self.megabytes };
        let most = MEGABYTE.saturating_mul(megabytes);
        let mut rest = lines;
        while !rest.is_empty() {
            let room = usize::try_from(most.saturating_sub(self.length)).unwrap_or(usize::MAX);
            let fitting = fitting(rest, room);
            if fitting == 0 && self.length > 0 {
                self.rotate()?;
                continue;
            }
            // A line above the size limit gets a file of its own.
            let end = if fitting > 0 { fitting } else { first_line(rest) };
            self.file.write_all(&rest[..end])?;
            self.length += end as u64;
            rest = &rest[end..];
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        fs::rename(&self.path, self.old.name(Timestamp::now()))?;
        self.file = at_the_end(&self.path)?;
        (self.length, self.has_rotated) = (0, true);
        Ok(())
    }

    /// The rotated files, if a cleanup is due.
    pub fn pending_cleanup(&mut self) -> Option<RotatedFiles> {
        std::mem::take(&mut self.has_rotated).then(|| self.old.clone())
    }
}

fn at_the_end(path: &Path) -> io::Result<fs::File> {
    // The log may hold sensitive data.
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// The number of bytes of whole lines that fit.
fn fitting(lines: &[u8], room: usize) -> usize {
    let most = &lines[..room.min(lines.len())];
    most.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn first_line(lines: &[u8]) -> usize {
    lines.iter().position(|byte| *byte == b'\n').map_or(lines.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn line(letter: u8) -> Vec<u8> {
        let mut line = vec![letter; 700 << 10];
        line.push(b'\n');
        line
    }

    #[test]
    fn a_full_file_is_rotated_and_no_line_is_split() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let rotation = Rotation { megabytes: 1, files: 1, compress: true, ..Rotation::default() };
        let mut file = File::open(&path, rotation).unwrap();
        assert!(file.pending_cleanup().is_some() && file.pending_cleanup().is_none());
        file.write(&[line(b'a'), line(b'b')].concat()).unwrap();
        file.pending_cleanup().unwrap().clean_up(Timestamp::now()).unwrap();
        let found = names(folder.path());
        assert!(found[0].starts_with("audit-20") && found[0].ends_with(".log.gz"), "{found:?}");
        let mut text = Vec::new();
        let packed = fs::File::open(folder.path().join(&found[0])).unwrap();
        GzDecoder::new(packed).read_to_end(&mut text).unwrap();
        assert!(text == line(b'a'));
        drop(file);
        let mut file = File::open(&path, rotation).unwrap();
        file.write(&line(b'c')).unwrap();
        file.pending_cleanup().unwrap().clean_up(Timestamp::now()).unwrap();
        assert_eq!(names(folder.path()).len(), 2, "the older one is gone");
        assert!(fs::read(&path).unwrap() == line(b'c'));
        file.write(&[line(b'd'), vec![b'e'; 2 << 20], line(b'f')].concat()).unwrap();
        assert!(fs::read(&path).unwrap().ends_with(b"f\n"));
        assert_eq!(names(folder.path()).len(), 4, "no old file takes the place of another");
    }

    #[test]
    fn expired_files_are_deleted_and_foreign_files_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let others = [
            "audit-2000-01-01T00-00-00.000.txt",
            "audit-x.log",
            "audit.log",
            "other-2000-01-01T00-00-00.000.log",
        ];
        let own = ["audit-2000-01-01T00-00-00.000.log", "audit-2000-01-02T00-00-00.000.log.gz"];
        for name in own.iter().chain(&others) {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let rotation = Rotation { days: 1, ..Rotation::default() };
        RotatedFiles::new(&folder.path().join("audit.log"), rotation).clean_up(Timestamp::now()).unwrap();
        assert_eq!(names(folder.path()), others);
    }
}
