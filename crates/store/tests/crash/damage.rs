//! Databases that cannot be opened, or hold damaged pages: each gives a message with a remedy, or an error,
//! never a panic.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use store::{Error, FileOptions, Sqlite, Store};

use crate::faults::{Fault, Mount};
use crate::objects::{Dice, all, create, everything, file, key, open};

/// The size of a page of the database.
const PAGE: u64 = 4096;

fn path_of(number: u64) -> String {
    format!("n{}/o{number}", number % 3)
}

/// A closed database of some objects.
pub async fn make(folder: &Path) -> FileOptions {
    let options = file(folder);
    let store = open(&options).await.expect("the folder is ours");
    for number in 0..60 {
        store.write(vec![create(&path_of(number), number)]).await.expect("the disk is well");
    }
    store.close().await;
    assert!(!folder.join("state.db-wal").exists(), "closing folds the write-ahead log back");
    options
}

/// The message with which a database is refused.
pub fn refusal(options: &FileOptions, what: &str) -> String {
    let reason = match Sqlite::open(options).err() {
        Some(Error::Open { reason }) => reason,
        other => panic!("{what}: {other:?} is no refusal to open"),
    };
    let name = options.path.to_str().expect("a temporary folder has a plain name");
    assert!(reason.starts_with(name) && !reason.contains('\n'), "no sentence about the file: {reason}");
    reason
}

fn is_refused(options: &FileOptions, what: &str, advice: &str) {
    let reason = refusal(options, what);
    assert!(reason.contains(advice), "{what}: {reason:?} does not say {advice:?}");
}

/// Files that are no database of this program.
pub fn foreign_files() {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let options = file(folder.path());
    let mut dice = Dice(5);
    let garbage: Vec<u8> = (0..20_000).map(|_| dice.roll(256) as u8).collect();
    let headed = [b"SQLite format 3\0", &garbage[..]].concat();
    let text = b"apiVersion: v1\n".repeat(1000);
    for (what, content) in [("garbage", garbage), ("garbage with a header", headed), ("text", text)] {
        fs::write(&options.path, content).expect("the folder is ours");
        is_refused(&options, what, "restore it from a backup");
    }
    fs::remove_file(&options.path).expect("it is there");
    fs::create_dir(&options.path).expect("the folder is ours");
    is_refused(&options, "a folder", "cannot be used");
    is_refused(&file(&folder.path().join("none")), "no folder", "its folder has to exist");
}

/// Databases of another program or of a newer version of this one.
pub async fn other_programs() {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let options = make(folder.path()).await;
    let database = Connection::open(&options.path).expect("it is a database");
    database.pragma_update(None, "user_version", 999).expect("it is writable");
    drop(database);
    is_refused(&options, "a newer version", "use the newer program that wrote it");
    for leftover in files_of(&options) {
        fs::remove_file(leftover).expect("the folder is ours");
    }
    let database = Connection::open(&options.path).expect("it is made");
    database.execute_batch("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)").expect("it is writable");
    drop(database);
    is_refused(&options, "another program", "choose another file");
    let database = Connection::open(&options.path).expect("it is still a database");
    let rows = database.query_row("SELECT count(*) FROM theirs", [], |row| row.get::<_, i64>(0));
    assert_eq!(rows, Ok(1), "their data is left alone");
}

fn files_of(options: &FileOptions) -> Vec<PathBuf> {
    let folder = options.path.parent().expect("it is in a folder");
    let entries = fs::read_dir(folder).expect("the folder is there");
    entries.map(|entry| entry.expect("the folder is readable").path()).collect()
}

/// Databases that lost their end.
pub async fn truncated_files() {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let options = make(folder.path()).await;
    let whole = fs::read(&options.path).expect("it is readable");
    let pages = whole.len() as u64 / PAGE;
    assert!(pages > 20, "it has {pages} pages");
    for length in [2, 50, 100, 600, PAGE, PAGE + 1, pages / 2 * PAGE, (pages - 1) * PAGE] {
        let length = usize::try_from(length).expect("a small number");
        fs::write(&options.path, &whole[..length]).expect("the folder is ours");
        is_refused(&options, &format!("{length} bytes"), "restore it from a backup");
    }
    fs::write(&options.path, &whole).expect("the folder is ours");
    let store = open(&options).await.expect("it is whole again");
    assert_eq!(store.list(&all()).await.expect("it is readable").items.len(), 60);
    store.close().await;
}

/// Databases that lost everything but their write-ahead log, which SQLite would discard.
pub async fn lost_files() {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let options = file(folder.path());
    let store = open(&options).await.expect("the folder is ours");
    store.write(vec![create("n/o", 1)]).await.expect("the disk is well");
    let log = folder.path().join("state.db-wal");
    let content = fs::read(&log).expect("what is not yet folded back is in the log");
    store.close().await;
    for empty in [false, true] {
        fs::remove_file(&options.path).expect("it is there");
        fs::write(&log, &content).expect("the folder is ours");
        if empty {
            fs::write(&options.path, []).expect("the folder is ours");
        }
        is_refused(&options, "a log alone", "restore both from a backup");
        assert_eq!(fs::read(&log).expect("it is there"), content, "the log is left alone");
        fs::write(&options.path, []).expect("the folder is ours");
    }
    fs::remove_file(&log).expect("it is there");
    open(&options).await.expect("an empty file is a new database").close().await;
}

/// Databases with one damaged page, for each of their pages: every answer is right, or an error.
pub async fn damaged_pages() {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let options = make(folder.path()).await;
    let whole = fs::read(&options.path).expect("it is readable");
    let mut dice = Dice(9);
    let (mut refused, mut noticed) = (0, 0);
    for page in 0..whole.len() as u64 / PAGE {
        fs::write(&options.path, &whole).expect("the folder is ours");
        // The part that could not be folded back into the damaged file before.
        let _ = fs::remove_file(folder.path().join("state.db-wal"));
        let garbage: Vec<u8> = (0..PAGE).map(|_| dice.roll(256) as u8).collect();
        let mut database = OpenOptions::new().write(true).open(&options.path).expect("it is ours");
        database.seek(SeekFrom::Start(page * PAGE)).expect("it is as long");
        database.write_all(&garbage).expect("it is ours");
        drop(database);
        match open(&options).await {
            Ok(store) => {
                noticed += usize::from(use_damaged(&store).await);
                store.close().await;
            }
            Err(Error::Open { .. }) => refused += 1,
            Err(error) => assert!(is_damage(&error), "page {page}: {error}"),
        }
    }
    assert!(refused > 0 && noticed > 20, "{refused} refused, {noticed} noticed");
}

/// Makes every kind of call. Returns whether one reported damage.
async fn use_damaged(store: &Store) -> bool {
    let mut errors = Vec::new();
    errors.extend(store.list(&all()).await.err());
    for number in 0..60 {
        errors.extend(store.get(&key(&path_of(number)), None).await.err());
    }
    if let Ok(mut watch) = store.watch(everything(), model::Revision(1)).await {
        errors.extend(watch.next().await.err());
    }
    errors.extend(store.write(vec![create("new/one", 1000)]).await.err());
    errors.extend(store.compact(model::Revision(30)).await.err());
    for error in &errors {
        assert!(is_damage(error), "{error}");
    }
    !errors.is_empty()
}

fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. })
}

/// A folder or file that becomes read-only, and writable again.
pub async fn read_only(fault: Fault, folder: &Path) {
    if fault == Fault::Full {
        read_only_by_mount(folder).await;
    } else {
        read_only_by_permissions(folder).await;
    }
}

async fn read_only_by_mount(folder: &Path) {
    let mount = Mount::tmpfs(folder);
    let options = make(folder).await;
    mount.remount("ro");
    is_refused(&options, "a read-only file system", "its folder has to exist and to be writable");
    mount.remount("rw");
    mount.freeze(&options.path);
    is_refused(&options, "a read-only file", "the database file is read-only");
    mount.thaw(&options.path);
    open(&options).await.expect("it is writable again").close().await;
}

async fn read_only_by_permissions(folder: &Path) {
    let options = make(folder).await;
    let allow = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    fs::remove_file(folder.join("state.db.lock")).expect("it is there");
    allow(folder, 0o555);
    is_refused(&options, "a read-only folder", "its folder has to exist and to be writable");
    allow(folder, 0o755);
    allow(&options.path, 0o444);
    is_refused(&options, "a read-only file", "the database file is read-only");
    allow(&options.path, 0o644);
    open(&options).await.expect("it is writable again").close().await;
}
