//! libpq's password file: lines of `hostname:port:database:username:password`, of which the first that matches counts.

use std::fs;
use std::path::Path;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// No real password file is larger.
const MAX_BYTES: u64 = 1 << 20;

/// The directory of PostgreSQL's sockets: libpq looks up connections to it as `localhost`.
const SOCKETS: [&str; 2] = ["/tmp", "/var/run/postgresql"];

/// The connection that a password is looked up for.
#[derive(Debug)]
struct Asked<'a> {
    hosts: Vec<String>,
    port: u16,
    database: &'a str,
    user: &'a str,
}

impl<'a> Asked<'a> {
    fn of(config: &'a Config) -> Self {
        let name = |host: &Host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) if SOCKETS.iter().any(|usual| path == Path::new(usual)) => {
                "localhost".to_owned()
            }
            Host::Unix(path) => path.display().to_string(),
        };
        let mut hosts: Vec<_> = config.get_hosts().iter().map(name).collect();
        if hosts.is_empty() {
            hosts.extend(config.get_hostaddrs().iter().map(ToString::to_string));
        }
        let user = config.get_user().unwrap_or_default();
        let port = config.get_ports().first().copied().unwrap_or(5432);
        Self { hosts, port, database: config.get_dbname().unwrap_or(user), user }
    }
}

/// Sets the password of a connection that has none from the file.
///
/// As in libpq, a missing file has no passwords, and a file that is not regular or that group or others can
/// access is ignored with a warning.
pub fn apply(file: &Path, config: &mut Config) {
    if config.get_password().is_some() {
        return;
    }
    let Some(text) = read(file) else { return };
    if let Some(password) = find(&text, &Asked::of(config)) {
        config.password(password);
    }
}

fn read(file: &Path) -> Option<Vec<u8>> {
    let found = fs::metadata(file).ok()?;
    let path = file.display();
    if !found.is_file() || found.len() > MAX_BYTES {
        tracing::warn!(%path, "the PostgreSQL password file is not a regular file of at most 1 MiB; ignoring it");
        return None;
    }
    if is_open(&found) {
        tracing::warn!(%path, "the PostgreSQL password file has group or world access; ignoring it until its mode is 0600");
        return None;
    }
    match fs::read(file) {
        Ok(text) => Some(text),
        Err(error) => {
            tracing::warn!(%path, %error, "cannot read the PostgreSQL password file; connecting without it");
            None
        }
    }
}

#[cfg(unix)]
fn is_open(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    found.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open(_: &fs::Metadata) -> bool {
    false
}

/// The password of the first line that matches.
fn find(text: &[u8], asked: &Asked<'_>) -> Option<Vec<u8>> {
    text.split(|&byte| byte == b'\n').find_map(|line| password_in(line.trim_ascii_end_of_line(), asked))
}

fn password_in(line: &[u8], asked: &Asked<'_>) -> Option<Vec<u8>> {
    if line.first() == Some(&b'#') {
        return None;
    }
    let mut fields = Fields(Some(line));
    let mut matches = |holds: &dyn Fn(&[u8]) -> bool| {
        fields.next().is_some_and(|field| field.is_wildcard || holds(&field.text))
    };
    let port = asked.port.to_string();
    let is_asked = matches(&|host| asked.hosts.iter().any(|name| name.as_bytes() == host))
        && matches(&|field| field == port.as_bytes())
        && matches(&|field| field == asked.database.as_bytes())
        && matches(&|field| field == asked.user.as_bytes());
    if !is_asked {
        return None;
    }
    fields.next().map(|field| field.text).filter(|password| !password.is_empty())
}

/// The fields of a line, at colons that no backslash escapes.
struct Fields<'a>(Option<&'a [u8]>);

/// One field without its escapes.
struct Field {
    text: Vec<u8>,
    is_wildcard: bool,
}

impl Iterator for Fields<'_> {
    type Item = Field;

    fn next(&mut self) -> Option<Field> {
        let line = self.0.take()?;
        let mut text = Vec::new();
        let mut bytes = line.iter().enumerate();
        while let Some((place, &byte)) = bytes.next() {
            match byte {
                b':' => {
                    self.0 = Some(&line[place + 1..]);
                    return Some(Field { text, is_wildcard: line[..place] == *b"*" });
                }
                b'\\' => text.push(bytes.next().map_or(byte, |(_, &escaped)| escaped)),
                _ => text.push(byte),
            }
        }
        Some(Field { text, is_wildcard: line == b"*" })
    }
}

/// Lines of files from other systems end with a carriage return, too.
trait Line {
    fn trim_ascii_end_of_line(&self) -> &[u8];
}

impl Line for [u8] {
    fn trim_ascii_end_of_line(&self) -> &[u8] {
        self.strip_suffix(b"\r").unwrap_or(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, url: &str) -> Option<String> {
        let config: Config = url.parse().unwrap();
        find(text.as_bytes(), &Asked::of(&config)).map(|password| String::from_utf8(password).unwrap())
    }

    #[test]
    fn the_first_entry_that_matches_counts_with_wildcards_and_escapes() {
        let url = "postgres://me@db.example:5433/state";
        for (text, password) in [
            ("db.example:5433:state:me:one\ndb.example:5433:state:me:two", Some("one")),
            ("other:5433:state:me:no\n*:*:*:me:any", Some("any")),
            ("db.example:5432:state:me:no", None),
            ("db.example:5433:State:me:no", None),
            ("# *:*:*:*:comment\r\n*:*:*:*:windows\r\n", Some("windows")),
            (r"*:*:*:me:a\:b\\c", Some(r"a:b\c")),
            (r"\*:*:*:me:no", None),
            ("*:*:*:me:until:the next colon", Some("until")),
            ("*:*:*:me:", None),
            ("*:*:*:me", None),
            ("", None),
        ] {
            assert_eq!(found(text, url).as_deref(), password, "{text}");
        }
        assert_eq!(found(r"h\:\:1:*:*:*:six", "host=h::1 user=me").as_deref(), Some("six"));
    }

    #[test]
    fn sockets_in_the_usual_directory_are_localhost_and_the_database_is_named_after_the_user() {
        let socket = "host=/var/run/postgresql user=me";
        assert_eq!(found("localhost:5432:me:me:here", socket).as_deref(), Some("here"));
        assert_eq!(found("/srv/sock:*:*:*:there", "host=/srv/sock user=me").as_deref(), Some("there"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_ignored_as_libpq_ignores_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pgpass");
        let password = || {
            let mut config: Config = "postgres://me@h/db".parse().unwrap();
            apply(&file, &mut config);
            config.get_password().map(<[u8]>::to_vec)
        };
        assert_eq!(password(), None);
        fs::write(&file, "*:*:*:*:secret\n").unwrap();
        for (mode, expected) in [(0o644, None), (0o640, None), (0o600, Some(b"secret".to_vec()))] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(password(), expected, "{mode:o}");
        }
        let mut config: Config = "postgres://me:own@h/db".parse().unwrap();
        apply(&file, &mut config);
        assert_eq!(config.get_password(), Some(&b"own"[..]));
    }
}
