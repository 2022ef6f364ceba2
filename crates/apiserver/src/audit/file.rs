//! The file of the log, and what becomes of it when it is full: it gets a name with the time, and a new one begins.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::{SignedDuration, Timestamp};

/// Bytes of a file for which no other limit is given, as many as kube-apiserver takes.
const DEFAULT_MEGABYTES: u64 = 100;
const MEGABYTE: u64 = 1 << 20;
/// The time in the names of old files.
const TIME: &str = "%Y-%m-%dT%H-%M-%S";
const COMPRESSED: &str = ".gz";

/// When a file is full, and which old ones stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// Megabytes of a file; 0 for 100.
    pub megabytes: u64,
    /// Days that old files stay; 0 for ever.
    pub days: u32,
    /// How many old files stay; 0 for all.
    pub files: usize,
    /// Whether old files are compressed.
    pub compress: bool,
}

/// A file that is written to its end.
pub(super) struct File {
    path: PathBuf,
    rotation: Rotation,
    file: fs::File,
    length: u64,
}

impl File {
    pub fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = at_the_end(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), rotation, file, length })
    }

    /// Writes lines, each whole into one file.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let most = MEGABYTE
            * match self.rotation.megabytes {
                0 => DEFAULT_MEGABYTES,
                megabytes => megabytes,
            };
        let mut rest = lines;
        while !rest.is_empty() {
            let room = usize::try_from(most.saturating_sub(self.length)).unwrap_or(usize::MAX);
            let fitting = fitting(rest, room);
            if fitting == 0 && self.length > 0 {
                self.rotate()?;
                continue;
            }
            // A line that is longer than a file may be has one for itself.
            let end = if fitting > 0 { fitting } else { first_line(rest) };
            self.file.write_all(&rest[..end])?;
            self.length += end as u64;
            rest = &rest[end..];
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let now = Timestamp::now();
        let time = format!("{}.{:03}", now.strftime(TIME), now.subsec_millisecond());
        let old = self.path.with_file_name(format!("{}{time}{}", self.stem(), self.extension()));
        fs::rename(&self.path, &old)?;
        self.file = at_the_end(&self.path)?;
        self.length = 0;
        // What is left undone here is done the next time.
        if let Err(error) = self.tidy(now) {
            tracing::warn!(%error, "old files of the audit log cannot be tidied up");
        }
        Ok(())
    }

    /// Removes and compresses old files.
    fn tidy(&self, now: Timestamp) -> io::Result<()> {
        let days = SignedDuration::from_hours(24 * i64::from(self.rotation.days));
        let oldest = now.checked_sub(days).unwrap_or(now);
        let mut old = self.old_files()?;
        old.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        for (place, (time, path)) in old.into_iter().enumerate() {
            let is_too_many = self.rotation.files > 0 && place >= self.rotation.files;
            let is_too_old = self.rotation.days > 0 && time < oldest;
            if is_too_many || is_too_old {
                fs::remove_file(&path)?;
            } else if self.rotation.compress && !is_compressed(&path) {
                compress(&path)?;
            }
        }
        Ok(())
    }

    /// The old files of this log, with the time at which they were full.
    fn old_files(&self) -> io::Result<Vec<(Timestamp, PathBuf)>> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut found = Vec::new();
        for entry in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
            let path = entry?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let plain = name.strip_suffix(COMPRESSED).unwrap_or(&name);
            let time = plain.strip_prefix(&self.stem()).and_then(|rest| rest.strip_suffix(&self.extension()));
            let time = time.and_then(|time| jiff::civil::DateTime::strptime(format!("{TIME}%.f"), time).ok());
            let time = time.and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC).ok());
            found.extend(time.map(|time| (time.timestamp(), path)));
        }
        Ok(found)
    }

    /// What the names of old files begin with.
    fn stem(&self) -> String {
        let stem = self.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        format!("{}-", stem.unwrap_or_default())
    }

    /// What they end with.
    fn extension(&self) -> String {
        self.path.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default()
    }
}

fn at_the_end(path: &Path) -> io::Result<fs::File> {
    // What it says of requests is for nobody else.
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// How many bytes of whole lines fit.
fn fitting(lines: &[u8], room: usize) -> usize {
    let most = &lines[..room.min(lines.len())];
    most.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn first_line(lines: &[u8]) -> usize {
    lines.iter().position(|byte| *byte == b'\n').map_or(lines.len(), |at| at + 1)
}

fn is_compressed(path: &Path) -> bool {
    path.to_string_lossy().ends_with(COMPRESSED)
}

fn compress(path: &Path) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(COMPRESSED);
    let mut out = GzEncoder::new(at_the_end(Path::new(&name))?, Compression::default());
    io::copy(&mut fs::File::open(path)?, &mut out)?;
    out.finish()?.sync_all()?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    /// A folder that goes with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("audit-{}", uuid::Uuid::new_v4()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<String> =
                names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn line(letter: u8) -> Vec<u8> {
        let mut line = vec![letter; 700 << 10];
        line.push(b'\n');
        line
    }

    #[test]
    fn a_full_file_is_put_aside_and_no_line_is_cut() {
        let folder = Folder::new();
        let rotation = Rotation { megabytes: 1, files: 1, compress: true, ..Rotation::default() };
        let mut file = File::open(&folder.0.join("audit.log"), rotation).unwrap();
        file.write(&[line(b'a'), line(b'b')].concat()).unwrap();
        let names = folder.names();
        assert!(names[0].starts_with("audit-20") && names[0].ends_with(".log.gz"), "{names:?}");
        let mut text = Vec::new();
        GzDecoder::new(fs::File::open(folder.0.join(&names[0])).unwrap()).read_to_end(&mut text).unwrap();
        assert!(text == line(b'a'));
        drop(file);
        let mut file = File::open(&folder.0.join("audit.log"), rotation).unwrap();
        file.write(&line(b'c')).unwrap();
        assert_eq!(folder.names().len(), 2, "{:?}", folder.names());
        assert!(fs::read(folder.0.join("audit.log")).unwrap() == line(b'c'));
        file.write(&[line(b'd'), vec![b'e'; 2 << 20], line(b'f')].concat()).unwrap();
        assert!(fs::read(folder.0.join("audit.log")).unwrap().ends_with(b"f\n"));
    }

    #[test]
    fn what_is_too_old_goes_and_what_is_not_ours_stays() {
        let folder = Folder::new();
        let others =
            ["audit-2000-01-01T00-00-00.000.txt", "audit-x.log", "other-2000-01-01T00-00-00.000.log"];
        for name in ["audit-2000-01-01T00-00-00.000.log", "audit-2000-01-02T00-00-00.000.log.gz"]
            .iter()
            .chain(&others)
        {
            fs::write(folder.0.join(name), "x").unwrap();
        }
        let rotation = Rotation { days: 1, ..Rotation::default() };
        File::open(&folder.0.join("audit.log"), rotation).unwrap().tidy(Timestamp::now()).unwrap();
        assert_eq!(
            folder.names(),
            [&others[..], &["audit.log"]]
                .concat()
                .into_iter()
                .map(str::to_owned)
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
        );
    }
}
