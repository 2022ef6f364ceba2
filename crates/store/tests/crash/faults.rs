//! Disk faults that strike while a store is open, and are lifted again.
//!
//! Each runs in a process of its own: with private mounts, which end with it, or with limits that are its
//! own.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::again;

const FAULT: &str = "ORLOP_CRASH_FAULT";
const FOLDER: &str = "ORLOP_CRASH_FOLDER";

/// Ways to get private mounts: as root, or as the root of a user namespace.
const PRIVATE_MOUNTS: [&[&str]; 2] =
    [&["unshare", "--mount"], &["unshare", "--user", "--map-root-user", "--mount"]];

/// Drops root's capabilities that override permissions.
const WITHOUT_OVERRIDE: &[&str] = &[
    "setpriv",
    "--bounding-set=-dac_override,-dac_read_search",
    "--inh-caps=-dac_override,-dac_read_search",
];

/// Kinds of disk faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A small file system has no room left.
    Full,
    /// The files take no more writes, as on a file system that the kernel made read-only. (It refuses to
    /// remount one read-only by hand while a file on it is open for writing.)
    Frozen,
    /// Files may not grow: a limit that every user can set for their own process.
    Limited,
}

impl Fault {
    const ALL: [Self; 3] = [Self::Full, Self::Frozen, Self::Limited];

    /// The reason that the store has to report.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Full => "the disk is full",
            Self::Frozen => "the disk takes no writes",
            Self::Limited => "writing the database file failed",
        }
    }

    /// The fault and the folder of this process, if a test started it for a fault.
    pub fn received() -> Option<(Self, PathBuf)> {
        let name = std::env::var(FAULT).ok()?;
        let fault = Self::ALL.into_iter().find(|fault| format!("{fault:?}") == name).expect("it is known");
        Some((fault, std::env::var_os(FOLDER).expect("there is a folder too").into()))
    }

    /// Runs `test` again where the fault can strike; or with a limit on file sizes, if this user may do no
    /// better.
    pub fn run(self, test: &str) {
        let folder = tempfile::tempdir().expect("there is a place for temporary files");
        let _thawed = Thawed(folder.path());
        let (fault, wrapper) = match self {
            Self::Full => private_mounts().map(|wrapper| (self, wrapper)),
            Self::Frozen => can_freeze(folder.path()).then_some((self, &[] as &[&str])),
            Self::Limited => None,
        }
        .unwrap_or((Self::Limited, &["env", "--ignore-signal=XFSZ"]));
        println!("{self:?} is tried as {fault:?}");
        run_again(wrapper, test, fault, folder.path());
    }

    /// Prepares a folder for it.
    pub fn prepare(self, folder: &Path) -> Option<Mount> {
        (self == Self::Full).then(|| Mount::tmpfs(folder))
    }

    /// Makes the fault happen.
    pub fn strike(self, folder: &Path) {
        match self {
            Self::Full => fill(&folder.join("ballast")),
            Self::Frozen => files(folder).for_each(|file| assert!(chattr("+i", &file), "{file:?}")),
            // The file of the database is longer already.
            Self::Limited => limit("4096:"),
        }
    }

    /// Lifts the fault.
    pub fn lift(self, folder: &Path) {
        match self {
            Self::Full => fs::remove_file(folder.join("ballast")).expect("the ballast is there"),
            Self::Frozen => files(folder).for_each(|file| assert!(chattr("-i", &file), "{file:?}")),
            Self::Limited => limit("unlimited:"),
        }
    }
}

/// Runs `test` again where files can be made read-only: by a mount ([`Fault::Full`] selects it), else by
/// their permissions.
pub fn run_bound(test: &str) {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let wrapper = private_mounts();
    let fault = if wrapper.is_some() { Fault::Full } else { Fault::Limited };
    let bound = || if works(WITHOUT_OVERRIDE, &["true"]) { WITHOUT_OVERRIDE } else { &[] };
    run_again(wrapper.unwrap_or_else(bound), test, fault, folder.path());
}

fn run_again(wrapper: &[&str], test: &str, fault: Fault, folder: &Path) {
    let mut command = again(wrapper, test);
    let output = command.env(FAULT, format!("{fault:?}")).env(FOLDER, folder).output().expect("it starts");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{}: {}", output.status, said.concat());
    assert!(said[0].contains("1 passed"), "the test has another name: {}", said.concat());
}

/// Thaws whatever is left frozen in a folder, so that it can be removed.
struct Thawed<'a>(&'a Path);

impl Drop for Thawed<'_> {
    fn drop(&mut self) {
        files(self.0).for_each(|file| {
            // There may be nothing to thaw, or no permission to.
            let _ = chattr("-i", &file);
        });
    }
}

/// A file system of a few megabytes over a folder, for the life of this value.
pub struct Mount(PathBuf);

impl Mount {
    /// Mounts it.
    pub fn tmpfs(folder: &Path) -> Self {
        let mounted =
            succeeds(Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(folder));
        assert!(mounted, "a process with private mounts may mount");
        Self(folder.to_owned())
    }

    /// Changes between `ro` and `rw`. Nothing on it may be open for writing.
    pub fn remount(&self, access: &str) {
        let options = format!("remount,bind,{access}");
        assert!(succeeds(Command::new("mount").args(["-o", &options]).arg(&self.0)), "{access}");
    }

    /// Makes one file on it read-only, by a mount of its own.
    pub fn freeze(&self, file: &Path) {
        assert!(succeeds(Command::new("mount").arg("--bind").args([file, file])), "{file:?}");
        assert!(succeeds(Command::new("mount").args(["-o", "remount,bind,ro"]).arg(file)), "{file:?}");
    }

    /// Undoes [`Mount::freeze`].
    pub fn thaw(&self, file: &Path) {
        assert!(succeeds(Command::new("umount").arg(file)), "{file:?}");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let unmounted = succeeds(Command::new("umount").arg(&self.0));
        // After a failed assertion files may still be open; the mount then ends with the process.
        assert!(unmounted || std::thread::panicking(), "the mount is still in use");
    }
}

fn private_mounts() -> Option<&'static [&'static str]> {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let folder = folder.path().to_str().expect("a temporary folder has a plain name");
    PRIVATE_MOUNTS.into_iter().find(|wrapper| works(wrapper, &["mount", "-t", "tmpfs", "tmpfs", folder]))
}

fn works(wrapper: &[&str], command: &[&str]) -> bool {
    succeeds(Command::new(wrapper[0]).args(&wrapper[1..]).args(command))
}

/// Whether a file that is open can be made to take no more writes.
fn can_freeze(folder: &Path) -> bool {
    let path = folder.join("probe");
    let mut file = File::create(&path).expect("the folder is ours");
    let frozen = chattr("+i", &path) && file.write_all(b"x").is_err();
    chattr("-i", &path);
    fs::remove_file(&path).expect("the probe is ours");
    frozen
}

fn chattr(change: &str, file: &Path) -> bool {
    succeeds(Command::new("chattr").arg(change).arg(file))
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

fn limit(size: &str) {
    let own = std::process::id().to_string();
    let limited = succeeds(Command::new("prlimit").args(["--pid", &own, &format!("--fsize={size}")]));
    assert!(limited, "a process may limit itself");
}

/// Writes a file until there is no room for a single byte.
fn fill(ballast: &Path) {
    let mut file = OpenOptions::new().create_new(true).append(true).open(ballast).expect("there is room yet");
    for length in [65_536, 4096, 1] {
        let piece = vec![0; length];
        loop {
            match file.write(&piece) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("the ballast: {error}"),
            }
        }
    }
}

fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    entries.map(|entry| entry.expect("the folder is readable").path())
}
