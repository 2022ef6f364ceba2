//! Log rotation: names, compression and deletion of rotated files.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::{SignedDuration, Timestamp};

use super::file::Rotation;

/// The timestamp in the names of rotated files.
const TIME: &str = "%Y-%m-%dT%H-%M-%S";
const COMPRESSED: &str = ".gz";

/// The rotated files of a log.
#[derive(Clone)]
pub(super) struct RotatedFiles {
    /// The current file.
    path: PathBuf,
    rotation: Rotation,
}

impl RotatedFiles {
    pub fn new(path: &Path, rotation: Rotation) -> Self {
        Self { path: path.to_owned(), rotation }
    }

    /// An unused name for the current file.
    pub fn name(&self, now: Timestamp) -> PathBuf {
        let name = |at: Timestamp| {
            let time = format!("{}.{:03}", at.strftime(TIME), at.subsec_millisecond());
            self.path.with_file_name(format!("{}{time}{}", self.stem(), self.extension()))
        };
        let times = (0..).map(|later| now.checked_add(SignedDuration::from_millis(later)).unwrap_or(now));
        let mut names = times.map(name);
        names.find(|name| !name.exists() && !compressed(name).exists()).unwrap_or_else(|| name(now))
    }

    /// Deletes and compresses rotated files. A later call completes unfinished work.
    pub fn clean_up(&self, now: Timestamp) -> io::Result<()> {
        let days = SignedDuration::from_hours(24 * i64::from(self.rotation.days));
        let oldest = now.checked_sub(days).unwrap_or(now);
        let mut old = self.files()?;
        old.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        for (position, (time, path)) in old.into_iter().enumerate() {
            let is_too_many = self.rotation.files > 0 && position >= self.rotation.files;
            let is_too_old = self.rotation.days > 0 && time < oldest;
            if is_too_many || is_too_old {
                fs::remove_file(&path)?;
            } else if self.rotation.compress && !path.to_string_lossy().ends_with(COMPRESSED) {
                compress(&path)?;
            }
        }
        Ok(())
    }

    /// All rotated files with their timestamps.
    fn files(&self) -> io::Result<Vec<(Timestamp, PathBuf)>> {
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

    /// The prefix of their names.
    fn stem(&self) -> String {
        let stem = self.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        format!("{}-", stem.unwrap_or_default())
    }

    /// The suffix of their names.
    fn extension(&self) -> String {
        self.path.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default()
    }
}

fn compressed(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(COMPRESSED);
    name.into()
}

/// Compresses a file. Overwrites a partial result of an interrupted run.
fn compress(path: &Path) -> io::Result<()> {
    let out =
        OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(compressed(path))?;
    let mut out = GzEncoder::new(out, Compression::default());
    io::copy(&mut fs::File::open(path)?, &mut out)?;
    out.finish()?.sync_all()?;
    fs::remove_file(path)
}
