//! The address of a database, read from a URL, and the connection settings that follow from it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::passfile;
use super::tls::{self, Check};
use crate::types::Error;

/// A server that has not answered by then counts as unreachable, unless the address says `connect_timeout`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A peer that disappeared without a FIN is detected after about `KEEPALIVE_IDLE + KEEPALIVE_RETRIES *
/// KEEPALIVE_INTERVAL`.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;

/// A database and the way to it. It has no `Debug`, because it holds the password.
pub struct Address {
    /// One for each host, in the order of the address. There is one at least.
    hosts: Vec<Config>,
    tls: MakeRustlsConnect,
    /// For messages: host, port and database, without the credentials.
    place: String,
    /// The password file that the address names.
    passfile: Option<PathBuf>,
}

impl Address {
    /// Reads `postgres://user:password@host:port,host:port/database?options`. No message repeats any part of a URL that cannot be read,
    /// because a password with a character that should have been escaped may end up in any part of it.
    pub fn parse(url: &str) -> Result<Self, Error> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(malformed("it does not begin with postgres://"));
        }
        let (base, parameters) = url.split_once('?').unwrap_or((url, ""));
        let mut encryption = Encryption { mode: SslMode::Prefer, check: Check::Nothing, roots: None };
        let mut others = Vec::new();
        let mut passfile = None;
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            if !parameter.contains('=') {
                return Err(malformed("a parameter of it has no value"));
            }
            if let Some(file) = parameter.strip_prefix("passfile=") {
                passfile = Some(file_name("passfile", file)?);
            } else if !encryption.take(parameter)? && !is_for_primary(parameter)? {
                others.push(parameter);
            }
        }
        let others = others.join("&");
        let hosts =
            each_host(base).into_iter().map(|base| configured(&format!("{base}?{others}"), encryption.mode));
        let hosts: Vec<Config> = hosts.collect::<Result<_, _>>()?;
        let place = place(&hosts);
        Ok(Self { hosts, tls: MakeRustlsConnect::new(encryption.client()?), place, passfile })
    }

    /// Takes a password that the address lacks from its password file, or from this one where it names none.
    pub fn with_passfile(mut self, default: Option<&Path>) -> Self {
        if let Some(file) = self.passfile.as_deref().or(default) {
            for config in &mut self.hosts {
                passfile::apply(file, config);
            }
        }
        self
    }

    /// Whether the address itself has a password.
    pub fn has_password(&self) -> bool {
        self.hosts.iter().any(|config| config.get_password().is_some())
    }

    /// Hosts on other machines with which the connection may be unencrypted.
    pub fn unprotected_hosts(&self) -> Vec<String> {
        let unprotected = self.hosts.iter().filter(|config| config.get_ssl_mode() != SslMode::Require);
        let hosts = unprotected.flat_map(|config| {
            let names = config.get_hosts().iter().filter_map(|host| match host {
                Host::Tcp(name) => Some(name.clone()),
                Host::Unix(_) => None,
            });
            names.chain(config.get_hostaddrs().iter().map(ToString::to_string))
        });
        hosts.filter(|host| !is_local(host)).collect()
    }

    /// The connection settings of a host, for a session of this role.
    pub fn config(&self, host: usize, role: &str) -> Config {
        let mut config = self.hosts[host % self.hosts.len()].clone();
        let name = config.get_application_name().unwrap_or("orlop");
        config.application_name(format!("{name} {role}"));
        config
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Time limit for a new session with one host, from the first packet to the first answer.
    pub fn patience(&self) -> Duration {
        self.hosts[0].get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT)
    }

    /// The TLS connector, for hosts that encrypt.
    pub fn tls(&self) -> MakeRustlsConnect {
        self.tls.clone()
    }

    /// Hosts, ports and database, for messages.
    pub fn place(&self) -> &str {
        &self.place
    }
}

/// The part of a URL in front of its options, once for each host that it names.
fn each_host(base: &str) -> Vec<String> {
    let Some((scheme, rest)) = base.split_once("://") else { return vec![base.to_owned()] };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    hosts.split(',').map(|host| format!("{scheme}://{user}{host}{path}")).collect()
}

/// Whether the parameter is `target_session_attrs`, which asks for the primary as this program always does.
fn is_for_primary(parameter: &str) -> Result<bool, Error> {
    match parameter.split_once('=') {
        Some(("target_session_attrs", "any" | "read-write" | "primary")) => Ok(true),
        Some(("target_session_attrs", _)) => {
            Err(malformed("its target_session_attrs has to be read-write or primary"))
        }
        _ => Ok(false),
    }
}

fn configured(url: &str, mode: SslMode) -> Result<Config, Error> {
    let mut config: Config = url.parse().map_err(|_| malformed("a part of it is not understood"))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(malformed("it names no host"));
    }
    config
        .ssl_mode(mode)
        .keepalives_idle(KEEPALIVE_IDLE)
        .keepalives_interval(KEEPALIVE_INTERVAL)
        .keepalives_retries(KEEPALIVE_RETRIES)
        .tcp_user_timeout(KEEPALIVE_IDLE + KEEPALIVE_RETRIES * KEEPALIVE_INTERVAL);
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    Ok(config)
}

/// The TLS settings of the URL, in libpq's terms.
struct Encryption {
    mode: SslMode,
    check: Check,
    roots: Option<PathBuf>,
}

impl Encryption {
    /// Parses `sslmode` and `sslrootcert`, of which the driver knows only a part. Returns whether the
    /// parameter was one of them.
    fn take(&mut self, parameter: &str) -> Result<bool, Error> {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name {
            "sslmode" => {
                (self.mode, self.check) = match value {
                    "disable" => (SslMode::Disable, Check::Nothing),
                    "allow" | "prefer" => (SslMode::Prefer, Check::Nothing),
                    "require" => (SslMode::Require, Check::Nothing),
                    "verify-ca" => (SslMode::Require, Check::Chain),
                    "verify-full" => (SslMode::Require, Check::ChainAndName),
                    _ => return Err(malformed("its sslmode is not one that PostgreSQL knows")),
                };
            }
            "sslrootcert" => {
                self.roots = Some(file_name("sslrootcert", value)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn client(&self) -> Result<rustls::ClientConfig, Error> {
        match (&self.roots, self.check) {
            // As in libpq: `sslrootcert` asks for verification.
            (Some(roots), Check::Nothing) if self.mode == SslMode::Require => tls::checked(roots, Check::Chain),
            (_, Check::Nothing) => tls::unchecked(),
            (Some(roots), check) => tls::checked(roots, check),
            (None, _) => Err(Error::Open {
                reason: "the PostgreSQL address asks to verify the server's certificate and does not say by which \
                         authority: add sslrootcert=FILE to it"
                    .to_owned(),
            }),
        }
    }
}

/// A file that a parameter names.
fn file_name(parameter: &str, value: &str) -> Result<PathBuf, Error> {
    let path = percent_decode_str(value).decode_utf8();
    let path = path.map_err(|_| malformed(&format!("its {parameter} is not UTF-8")))?;
    Ok(PathBuf::from(path.as_ref()))
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn malformed(what: &str) -> Error {
    Error::Open {
        reason: format!(
            "the PostgreSQL address cannot be read ({what}): write postgres://user:password@host:5432/database, with \
             special characters percent-encoded"
        ),
    }
}

fn place(hosts: &[Config]) -> String {
    let database = hosts.first().and_then(|config| config.get_dbname().or(config.get_user()));
    let hosts: Vec<String> = hosts.iter().map(host).collect();
    format!("{}/{}", hosts.join(","), database.unwrap_or_default())
}

fn host(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => config.get_hostaddrs().first().map(ToString::to_string).unwrap_or_default(),
    };
    format!("{host}:{}", config.get_ports().first().copied().unwrap_or(5432))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        match Address::parse(url) {
            Ok(_) => panic!("{url} was accepted"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_address_is_shown_without_its_credentials() {
        let address = Address::parse("postgres://me:secret@db.example:5433/state?sslmode=require").unwrap();
        assert_eq!(address.place(), "db.example:5433/state");
        assert_eq!(address.config(0, "").get_ssl_mode(), SslMode::Require);
        assert_eq!(Address::parse("postgresql://me@h").unwrap().place(), "h:5432/me");
    }

    #[test]
    fn several_hosts_are_tried_one_by_one() {
        let url = "postgres://me:s%40c@a:5433,b/state?target_session_attrs=read-write&connect_timeout=3";
        let address = Address::parse(url).unwrap();
        assert_eq!((address.hosts(), address.place()), (2, "a:5433,b:5432/state"));
        for (place, name) in ["a", "b"].into_iter().enumerate() {
            let config = address.config(place, "reads");
            assert_eq!(config.get_hosts(), [Host::Tcp(name.to_owned())]);
            assert_eq!(config.get_password(), Some(&b"s@c"[..]));
        }
        assert!(
            refused("postgres://me@a,b/db?target_session_attrs=standby").contains("target_session_attrs")
        );
    }

    #[test]
    fn no_part_of_a_malformed_address_is_repeated() {
        for url in [
            "host=h password=secret",
            "postgres://me:sec?ret@h/db",
            "postgres://me:sec/ret@h:port/db",
            "postgres://me:secret@h/db?secret",
            "postgres://me:secret@h/db?sslmode=secret",
            "postgres://me:x@h:secret/db",
        ] {
            let reason = refused(url);
            assert!(reason.starts_with("the PostgreSQL address cannot be read ("), "{reason}");
            assert!(!reason.contains("sec"), "{reason}");
        }
    }

    #[test]
    fn verification_needs_an_authority() {
        assert!(refused("postgres://me@h/db?sslmode=verify-full").contains("sslrootcert=FILE"));
        let reason = refused("postgres://me@h/db?sslmode=verify-ca&sslrootcert=%2Fno%2Fsuch.pem");
        assert!(reason.contains("/no/such.pem"), "{reason}");
    }
}
