//! The format of a backup: a tar archive with the database, the keys, and a manifest with their checksums.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    path::Path,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail, ensure};
use ring::digest::{self, SHA256};
use serde::{Deserialize, Serialize};

/// The version of the format.
const FORMAT: u32 = 1;

/// The manifest. It is the last member, because it contains the checksums of the others.
const MANIFEST: &str = "manifest.json";

/// The member with all objects.
pub(crate) const DATABASE: &str = "orlop.db";

/// The size limit of keys, certificates, kubeconfigs and manifests.
const MAX_SMALL: u64 = 1 << 20;

/// The limit of members.
const MAX_MEMBERS: usize = 100;

/// The manifest of an archive.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Manifest {
    format: u32,
    /// The version of the program that created it.
    pub(crate) orlop: String,
    /// Seconds since 1970 (UTC).
    pub(crate) created: u64,
    pub(crate) database: Contents,
    members: Vec<Member>,
}

/// The state of the database.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Contents {
    /// The version of its tables.
    pub(crate) schema: u32,
    /// Its newest revision.
    pub(crate) revision: u64,
    /// Its compaction mark.
    pub(crate) compacted: u64,
}

#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
struct Member {
    path: String,
    bytes: u64,
    sha256: String,
}

impl Manifest {
    /// Whether the archive has the keys of the server.
    pub(crate) fn has_keys(&self) -> bool {
        self.members.iter().any(|member| member.path == "pki/ca.key")
    }
}

/// Writes an archive, member by member.
pub(crate) struct Writer<W: Write> {
    tar: tar::Builder<BufWriter<W>>,
    members: Vec<Member>,
    now: u64,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(out: W, now: SystemTime) -> Self {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        Self { tar: tar::Builder::new(BufWriter::new(out)), members: Vec::new(), now }
    }

    /// Adds a member of exactly this many bytes.
    pub(crate) fn add(&mut self, path: &str, bytes: u64, content: impl Read) -> Result<()> {
        let mut hashing = Hashing::new(content);
        self.append(path, bytes, &mut hashing)?;
        let (read, sha256) = hashing.finish();
        ensure!(read == bytes, "{path} has {read} bytes and should have {bytes}: the copy is not complete");
        self.members.push(Member { path: path.to_owned(), bytes, sha256 });
        Ok(())
    }

    fn append(&mut self, path: &str, bytes: u64, content: impl Read) -> Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes);
        header.set_mode(0o600);
        header.set_mtime(self.now);
        self.tar.append_data(&mut header, path, content).with_context(|| format!("cannot archive {path}"))
    }

    /// Adds the manifest, and flushes the file.
    pub(crate) fn finish(mut self, database: Contents) -> Result<Manifest> {
        let manifest = Manifest {
            format: FORMAT,
            orlop: env!("CARGO_PKG_VERSION").to_owned(),
            created: self.now,
            database,
            members: std::mem::take(&mut self.members),
        };
        let text = serde_json::to_vec_pretty(&manifest)?;
        self.append(MANIFEST, text.len() as u64, &text[..])?;
        self.tar.into_inner()?.flush()?;
        Ok(manifest)
    }
}

/// Unpacks an archive into an empty folder, and verifies each member against the manifest. Never writes outside of the folder,
/// whatever paths the archive contains.
pub(crate) fn unpack(archive: &Path, folder: &Path) -> Result<Manifest> {
    let shown = archive.display();
    let file = File::open(archive).with_context(|| format!("cannot read {shown}"))?;
    let unreadable = || format!("{shown} is no readable backup of Orlop");
    let mut members = Vec::new();
    let mut manifest = None;
    for entry in tar::Archive::new(BufReader::new(file)).entries().with_context(unreadable)? {
        let mut entry = entry.with_context(unreadable)?;
        let path = entry.path().with_context(unreadable)?.to_str().unwrap_or_default().to_owned();
        ensure!(entry.header().entry_type().is_file(), "{shown}: {path:?} is no plain file");
        ensure!(members.len() < MAX_MEMBERS, "{shown} has too many members");
        ensure!(path == DATABASE || entry.size() <= MAX_SMALL, "{shown}: {path:?} is too large");
        if path == MANIFEST {
            let mut text = Vec::new();
            entry.read_to_end(&mut text).with_context(unreadable)?;
            manifest = Some(serde_json::from_slice::<Manifest>(&text).with_context(unreadable)?);
            continue;
        }
        ensure!(is_ours(&path), "{shown}: {path:?} is no part of a backup");
        members.push(lay(entry, &path, folder).with_context(|| format!("cannot unpack {path} of {shown}"))?);
    }
    let Some(manifest) = manifest else {
        bail!("{shown} has no {MANIFEST}: it is no backup, or not all of one")
    };
    ensure!(
        manifest.format == FORMAT,
        "{shown} has format {} and this program knows only {FORMAT}: use the newer program that wrote it",
        manifest.format
    );
    members.sort_by(|a, b| a.path.cmp(&b.path));
    let mut expected: Vec<_> = manifest.members.iter().collect();
    expected.sort_by(|a, b| a.path.cmp(&b.path));
    ensure!(
        members.iter().eq(expected),
        "{shown} is damaged: its members do not have the checksums of its manifest; use another backup"
    );
    ensure!(members.iter().any(|member| member.path == DATABASE), "{shown} has no database");
    Ok(manifest)
}

/// Whether a server has a file of this name.
fn is_ours(path: &str) -> bool {
    let is_name = |name: &str| {
        !name.starts_with('.')
            && !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    matches!(path, DATABASE | "kubeconfig") || path.strip_prefix("pki/").is_some_and(is_name)
}

fn lay(content: impl Read, path: &str, folder: &Path) -> Result<Member> {
    let place = folder.join(path);
    if let Some(parent) = place.parent() {
        process::files::create_private_folder(parent)?;
    }
    let mut hashing = Hashing::new(content);
    let mut file = process::files::create_private(&place)?;
    io::copy(&mut hashing, &mut file)?;
    file.sync_all()?;
    let (bytes, sha256) = hashing.finish();
    Ok(Member { path: path.to_owned(), bytes, sha256 })
}

/// A reader that counts and hashes.
struct Hashing<R> {
    inner: R,
    bytes: u64,
    context: digest::Context,
}

impl<R> Hashing<R> {
    fn new(inner: R) -> Self {
        Self { inner, bytes: 0, context: digest::Context::new(&SHA256) }
    }

    fn finish(self) -> (u64, String) {
        let hash = self.context.finish();
        let hex = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        (self.bytes, hex)
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        self.context.update(&out[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const CONTENTS: Contents = Contents { schema: 1, revision: 7, compacted: 3 };

    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, SystemTime::UNIX_EPOCH + Duration::from_secs(5));
        for (path, content) in members {
            writer.add(path, content.len() as u64, *content).unwrap();
        }
        writer.finish(CONTENTS).unwrap();
        out
    }

    fn unpacked(archive: &[u8]) -> (tempfile::TempDir, Result<Manifest>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("backup.tar");
        fs::write(&file, archive).unwrap();
        let manifest = unpack(&file, &folder.path().join("data"));
        (folder, manifest)
    }

    #[test]
    fn what_was_archived_is_laid_out_again() {
        let archive = archive(&[(DATABASE, b"rows"), ("pki/ca.key", b"secret"), ("kubeconfig", b"k")]);
        let (folder, manifest) = unpacked(&archive);
        let manifest = manifest.unwrap();
        assert_eq!((manifest.database, manifest.created, manifest.has_keys()), (CONTENTS, 5, true));
        for (path, content) in [(DATABASE, "rows"), ("pki/ca.key", "secret"), ("kubeconfig", "k")] {
            assert_eq!(fs::read_to_string(folder.path().join("data").join(path)).unwrap(), content);
        }
    }

    #[test]
    fn a_damaged_archive_is_refused() {
        let whole = archive(&[(DATABASE, &[7; 5000])]);
        let mut flipped = whole.clone();
        flipped[1000] ^= 1;
        let mut cut = whole.clone();
        cut.truncate(3000);
        let without_manifest = whole[..512 + 5120].to_vec();
        for (what, bytes) in [
            ("flipped", flipped),
            ("cut", cut),
            ("without its manifest", without_manifest),
            ("empty", vec![]),
        ] {
            assert!(unpacked(&bytes).1.is_err(), "{what}");
        }
        assert!(unpacked(&archive(&[("kubeconfig", b"k")])).1.is_err(), "without a database");
        assert!(Writer::new(Vec::new(), SystemTime::now()).add(DATABASE, 5, &b"four"[..]).is_err());
    }

    #[test]
    fn names_that_no_backup_has_are_refused() {
        for path in ["pki/../x", "pki/a/b", "other", "pki/.hidden", "pki/"] {
            assert!(!is_ours(path), "{path}");
        }
        let mut out = Vec::new();
        let mut tar = tar::Builder::new(&mut out);
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, DATABASE, "/etc/passwd").unwrap();
        drop(tar);
        assert!(format!("{:#}", unpacked(&out).1.unwrap_err()).contains("no plain file"));
    }
}
