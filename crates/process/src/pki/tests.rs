//! The certificate folder: created once, reused, renewed in time, refused when damaged.

use std::{collections::BTreeMap, os::unix::fs::PermissionsExt};

use super::*;

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + days(20_000)
}

/// The files of the folder: name and text.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), fs::read_to_string(e.path()).unwrap())).collect()
}

/// The names of the files that differ between two listings.
fn changed(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    after
        .iter()
        .filter(|(name, text)| before.get(*name) != Some(text))
        .map(|(name, _)| name.clone())
        .collect()
}

#[test]
fn the_first_look_makes_all_files_and_keeps_keys_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pki");
    let pki = Pki::ensure(&path, "127.0.0.1", now()).unwrap();
    let names: Vec<_> = files(&path).into_keys().collect();
    assert_eq!(names, ["admin.crt", "admin.key", "ca.crt", "ca.key", "server.crt", "server.key"]);
    for name in names {
        let mode = fs::metadata(path.join(&name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if name.ends_with(".key") { 0o600 } else { 0o644 }, "{name}");
    }
    assert!(!format!("{pki:?}").contains("PRIVATE"), "keys do not reach a log");
}

#[test]
fn the_second_look_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let first = Pki::ensure(folder.path(), "127.0.0.1", now()).unwrap();
    let before = files(folder.path());
    let second = Pki::ensure(folder.path(), "127.0.0.1", now() + days(200)).unwrap();
    assert_eq!(before, files(folder.path()));
    assert_eq!((first.ca, first.admin.key), (second.ca, second.admin.key));
}

/// Checks which files a second call replaces, after a change of the folder and at another time or for another
/// host.
fn check(change: impl FnOnce(&Path), host: &str, later: Duration, expected: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    Pki::ensure(folder.path(), "127.0.0.1", now()).unwrap();
    let before = files(folder.path());
    change(folder.path());
    Pki::ensure(folder.path(), host, now() + later).unwrap();
    assert_eq!(changed(&before, &files(folder.path())), expected);
}

fn copy(folder: &Path, from: &str, to: &str) {
    fs::copy(folder.join(from), folder.join(to)).unwrap();
}

const SERVER: [&str; 2] = ["server.crt", "server.key"];
const LEAVES: [&str; 4] = ["admin.crt", "admin.key", "server.crt", "server.key"];
const ALL: [&str; 6] = ["admin.crt", "admin.key", "ca.crt", "ca.key", "server.crt", "server.key"];
const RENEWED: [&str; 7] =
    ["admin.crt", "admin.key", "ca-previous.crt", "ca.crt", "ca.key", "server.crt", "server.key"];

#[test]
fn certificates_are_renewed_before_their_end_and_the_ca_before_its_own() {
    check(|_| {}, "127.0.0.1", LIFETIME - RENEW_BEFORE - days(1), &[]);
    check(|_| {}, "127.0.0.1", LIFETIME - RENEW_BEFORE + days(1), &LEAVES);
    check(|_| {}, "127.0.0.1", CA_LIFETIME - LIFETIME - days(1), &LEAVES);
    check(|_| {}, "127.0.0.1", CA_LIFETIME - LIFETIME + days(1), &RENEWED);
}

#[test]
fn the_old_ca_and_its_successor_are_trusted_while_they_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let ensure = |time| Pki::ensure(folder.path(), "127.0.0.1", time).unwrap();
    let old = ensure(now());
    assert_eq!(old.trusted(), old.ca);
    let renewal = now() + CA_LIFETIME - LIFETIME + days(1);
    for time in [renewal, renewal + days(300)] {
        let new = ensure(time);
        assert_ne!(new.ca, old.ca);
        assert_eq!(new.trusted(), format!("{}{}", new.ca, old.ca));
    }
    let new = ensure(now() + CA_LIFETIME + days(1));
    assert_eq!(new.trusted(), new.ca, "the old one has expired");
    fs::write(folder.path().join("ca-previous.crt"), "-----BEGIN CERTIFICATE-----\n").unwrap();
    assert_eq!(ensure(now() + CA_LIFETIME + days(1)).trusted(), new.ca);
}

#[test]
fn a_new_host_renews_the_serving_certificate_alone() {
    check(|_| {}, "api.example.org", Duration::ZERO, &SERVER);
    check(|_| {}, "[2001:db8::7]", Duration::ZERO, &SERVER);
    for known in ["localhost", "::1", "[::1]", "0.0.0.0", "[::]", "10.96.0.1"] {
        check(|_| {}, known, Duration::ZERO, &[]);
    }
}

#[test]
fn a_leaf_that_is_damaged_or_lost_is_made_again() {
    let zero = Duration::ZERO;
    check(|folder| fs::write(folder.join("server.crt"), "rubbish").unwrap(), "127.0.0.1", zero, &SERVER);
    check(|folder| fs::remove_file(folder.join("server.key")).unwrap(), "127.0.0.1", zero, &SERVER);
    check(|folder| copy(folder, "admin.key", "server.key"), "127.0.0.1", zero, &SERVER);
}

#[test]
fn leaves_of_another_ca_are_replaced() {
    let other = tempfile::tempdir().unwrap();
    let pki = Pki::ensure(other.path(), "127.0.0.1", now()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    Pki::ensure(folder.path(), "127.0.0.1", now()).unwrap();
    for name in ["ca.crt", "ca.key"] {
        fs::copy(other.path().join(name), folder.path().join(name)).unwrap();
    }
    let before = files(folder.path());
    assert_eq!(Pki::ensure(folder.path(), "127.0.0.1", now()).unwrap().ca, pki.ca);
    assert_eq!(changed(&before, &files(folder.path())), LEAVES);
}

/// Checks that a second call refuses a changed folder with this reason and writes nothing.
fn check_refused(change: impl FnOnce(&Path), reason: &str) {
    let folder = tempfile::tempdir().unwrap();
    Pki::ensure(folder.path(), "127.0.0.1", now()).unwrap();
    change(folder.path());
    let before = files(folder.path());
    let error = Pki::ensure(folder.path(), "127.0.0.1", now()).unwrap_err().to_string();
    assert!(error.contains(reason), "{error}");
    assert_eq!(before, files(folder.path()));
}

#[test]
fn a_damaged_ca_is_refused_and_left_alone() {
    check_refused(|folder| fs::write(folder.join("ca.crt"), "rubbish").unwrap(), "it is no PEM file");
    check_refused(|folder| fs::remove_file(folder.join("ca.key")).unwrap(), "it is missing");
    check_refused(|folder| copy(folder, "admin.key", "ca.key"), "not the key of ca.crt");
}

#[test]
fn a_ca_whose_certificate_was_never_written_is_created_again() {
    check(|folder| fs::remove_file(folder.join("ca.crt")).unwrap(), "127.0.0.1", Duration::ZERO, &ALL);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Pki::ensure(&file.join("pki"), "127.0.0.1", now()).unwrap_err().to_string();
    assert!(error.starts_with("cannot create ") && error.contains("file/pki"), "{error}");
}

#[test]
fn processes_that_start_together_agree_on_the_ca() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("pki");
    let authorities: Vec<_> = std::thread::scope(|scope| {
        let starts: Vec<_> =
            (0..8).map(|_| scope.spawn(|| Pki::ensure(path, "127.0.0.1", now()).unwrap().ca)).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    assert!(authorities.iter().all(|ca| *ca == authorities[0]));
}

#[test]
fn the_end_of_a_certificate_is_read_from_it() {
    let pair = serving_pair("127.0.0.1", now()).unwrap();
    let end = now() + LIFETIME;
    let seconds = end.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    assert_eq!(expires_at(&pair.certificate), i64::try_from(seconds).ok());
    assert_eq!(expires_at(&pair.key), None);
}
