//! The PostgreSQL address from a flag, the environment or a file, with warnings about unsafe ways to pass it.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use server::PostgresUrl;

/// The size limit of the file.
const MAX_BYTES: u64 = 64 << 10;

/// The environment variable of `--postgres`.
const VARIABLE: &str = "ORLOP_POSTGRES";

/// The PostgreSQL flags.
#[derive(Args)]
pub(crate) struct PostgresArgs {
    /// Store objects in this PostgreSQL database instead of DIR/orlop.db: postgres://USER@HOST/DATABASE
    ///
    /// Parameters of libpq are supported: ?sslmode=verify-full&sslrootcert=FILE verifies the server's certificate,
    /// passfile=FILE names a password file (default: $PGPASSFILE or ~/.pgpass). Every user of the machine can see a
    /// password in the URL in the process list: prefer a password file or --postgres-file.
    #[arg(long, value_name = "URL", env = VARIABLE, hide_env_values = true)]
    postgres: Option<String>,

    /// Read the PostgreSQL URL from this file, which should have mode 0600
    #[arg(long, value_name = "FILE", conflicts_with = "postgres")]
    postgres_file: Option<PathBuf>,
}

impl std::fmt::Debug for PostgresArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresArgs").finish_non_exhaustive()
    }
}

/// An address, and warnings about it for the operator.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) address: PostgresUrl,
    pub(crate) warnings: Vec<String>,
}

impl PostgresArgs {
    /// The address, if one was given. `environment` looks up a variable.
    pub(crate) fn given(self, environment: impl Fn(&str) -> Option<OsString>) -> Result<Option<Given>> {
        let mut warnings = Vec::new();
        let url = match (self.postgres, self.postgres_file) {
            (Some(url), _) => {
                let is_typed = environment(VARIABLE).is_none_or(|value| value.to_str() != Some(&url));
                if is_typed && store::postgres::inspect(&url).is_ok_and(|found| found.has_password) {
                    warnings.push(
                        "the password in --postgres is visible to every user of this machine; \
                         use --postgres-file, passfile= or ~/.pgpass"
                            .to_owned(),
                    );
                }
                url
            }
            (None, Some(file)) => read(&file, &mut warnings)?,
            (None, None) => return Ok(None),
        };
        // A malformed address is refused when the database is opened.
        let unprotected = store::postgres::inspect(&url).map(|found| found.unprotected_hosts);
        for host in unprotected.unwrap_or_default() {
            warnings.push(format!(
                "the connection to PostgreSQL at {host} may be unencrypted; \
                 add sslmode=verify-full and sslrootcert=FILE to its address"
            ));
        }
        let passfile = environment("PGPASSFILE").map(PathBuf::from);
        let passfile = passfile.or_else(|| environment("HOME").map(|home| Path::new(&home).join(".pgpass")));
        Ok(Some(Given { address: PostgresUrl { url, passfile }, warnings }))
    }
}

fn read(file: &Path, warnings: &mut Vec<String>) -> Result<String> {
    let shown = file.display();
    let unreadable = || format!("cannot read {shown}, which --postgres-file names");
    let mut text = String::new();
    File::open(file)
        .and_then(|opened| opened.take(MAX_BYTES).read_to_string(&mut text))
        .with_context(unreadable)?;
    let url = text.trim();
    if url.is_empty() || url.contains(char::is_whitespace) {
        bail!("{shown} has to hold one line, an address such as postgres://user:password@host/database");
    }
    let mode = fs::metadata(file).with_context(unreadable)?.permissions().mode();
    if mode & 0o077 != 0 {
        warnings.push(format!(
            "the PostgreSQL address in {shown} is open to other users; restrict it with chmod 600"
        ));
    }
    Ok(url.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use std::fs::Permissions;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        postgres: PostgresArgs,
    }

    fn given(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Option<Given>> {
        let line = Line::try_parse_from([&["x"], arguments].concat())?;
        let look_up =
            |name: &str| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        line.postgres.given(look_up)
    }

    fn warnings(arguments: &[&str], environment: &[(&str, &str)]) -> String {
        given(arguments, environment).unwrap().unwrap().warnings.join("\n")
    }

    #[test]
    fn a_password_on_the_command_line_is_warned_about_and_never_shown() {
        let url = "postgres://me:s3cret@localhost/db";
        let told = warnings(&["--postgres", url], &[]);
        assert!(told.contains("--postgres-file") && !told.contains("s3cret"), "{told}");
        assert_eq!(warnings(&["--postgres", url], &[("ORLOP_POSTGRES", url)]), "");
        assert_eq!(warnings(&["--postgres", "postgres://me@localhost/db"], &[]), "");
        assert!(!format!("{:?}", given(&["--postgres", url], &[]).unwrap()).contains("s3cret"));
    }

    #[test]
    fn a_remote_postgresql_without_tls_is_warned_about() {
        for (url, warned) in [
            ("postgres://me@db.example/x", true),
            ("postgres://me@db.example/x?sslmode=disable", true),
            ("postgres://me@db.example/x?sslmode=require", false),
            ("postgres://me@127.0.0.1/x?sslmode=disable", false),
            ("postgres://me@localhost/x", false),
            ("postgres://me@[::1]/x", false),
            ("postgres://me@%2Fvar%2Frun%2Fpostgresql/x", false),
        ] {
            let told = warnings(&["--postgres", url], &[]);
            assert_eq!(told.contains("may be unencrypted"), warned, "{url}: {told}");
        }
    }

    #[test]
    fn an_address_comes_from_a_file_with_a_warning_where_others_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("address");
        let path = file.to_str().unwrap();
        fs::write(&file, "postgres://me:s3cret@localhost/db\n").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let found = given(&["--postgres-file", path], &[("HOME", "/h")]).unwrap().unwrap();
        assert_eq!(found.address.url, "postgres://me:s3cret@localhost/db");
        assert_eq!(found.address.passfile.as_deref(), Some(Path::new("/h/.pgpass")));
        assert_eq!(found.warnings, Vec::<String>::new());
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert!(warnings(&["--postgres-file", path], &[]).contains("chmod 600"));
        fs::write(&file, "\n").unwrap();
        let error = format!("{:#}", given(&["--postgres-file", path], &[]).unwrap_err());
        assert!(error.contains("one line"), "{error}");
        let error = format!("{:#}", given(&["--postgres-file", "/nowhere"], &[]).unwrap_err());
        assert!(error.starts_with("cannot read /nowhere"), "{error}");
        assert!(given(&["--postgres", "postgres://h", "--postgres-file", path], &[]).is_err());
    }

    #[test]
    fn the_password_file_is_that_of_the_environment() {
        let found = given(&["--postgres", "postgres://me@localhost/db"], &[("PGPASSFILE", "/p")]);
        assert_eq!(found.unwrap().unwrap().address.passfile.as_deref(), Some(Path::new("/p")));
    }
}
