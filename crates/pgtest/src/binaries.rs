//! Locates PostgreSQL's programs: on PATH, or in Debian's folder, which is not on PATH.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::Error;

const DEBIAN: &str = "/usr/lib/postgresql";

/// The folder with `initdb`, `postgres`, `pg_ctl` and `createdb`.
#[derive(Clone, Debug)]
pub(crate) struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    pub(crate) fn find() -> Result<Self, Error> {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).chain(debian_folders());
        folders.into_iter().find(|folder| is_complete(folder)).map(|folder| Self { folder }).ok_or_else(|| {
            Error(format!(
                "PostgreSQL's server programs are neither on PATH nor below {DEBIAN}: run `cargo xtask test`, \
                 which installs them, or `apt-get install postgresql`"
            ))
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }
}

fn is_complete(folder: &Path) -> bool {
    ["initdb", "postgres", "pg_ctl", "createdb"].iter().all(|program| folder.join(program).is_file())
}

/// Debian's folders, one per major version, newest first.
fn debian_folders() -> Vec<PathBuf> {
    let mut versions: Vec<u32> = fs::read_dir(DEBIAN)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    versions.iter().map(|version| Path::new(DEBIAN).join(version.to_string()).join("bin")).collect()
}
