//! The flags of `etcd`, validated.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use process::listen::ListenAddress;
use process::logging::{LogConfig, LogFormat};
use process::pki::Identity;
use process::tls::{self, ClientCaVerifier, ServingCertificate};
use rustls::pki_types::UnixTime;
use store::Durability;

use crate::go_flags::Given;

/// The configuration of `etcd`.
pub(super) struct Config {
    pub(super) folder: PathBuf,
    pub(super) durability: Durability,
    pub(super) listen: Vec<ClientUrl>,
    /// Present if an address is secure.
    pub(super) tls: Option<Tls>,
    pub(super) log: LogConfig,
}

/// A listen address.
pub(super) struct ClientUrl {
    pub(super) address: ListenAddress,
    pub(super) is_secure: bool,
}

/// The serving certificate, and the CAs of clients.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) config: Arc<rustls::ServerConfig>,
    /// The CAs of client certificates, which are required if this is present.
    pub(super) clients: Option<ClientCaVerifier>,
}

impl Config {
    /// Validates the flags, and reads the files that they name.
    pub(super) fn new(given: &Given) -> Result<Self> {
        if let Some(word) = given.rest.iter().find(|word| !word.is_empty()) {
            bail!("\"{word}\" is not a valid flag");
        }
        let name = given.text("name").unwrap_or("default");
        let folder = given.text("data-dir").map_or_else(|| format!("{name}.etcd").into(), PathBuf::from);
        let mut urls = given.list("listen-client-urls");
        if urls.is_empty() {
            urls.push("http://localhost:2379".to_owned());
        } else if given.list("advertise-client-urls").is_empty() {
            bail!("--advertise-client-urls is required when --listen-client-urls is set explicitly");
        }
        let listen = urls.iter().map(|url| client_url(url)).collect::<Result<Vec<_>>>()?;
        let tls = listen.iter().any(|url| url.is_secure).then(|| tls(given)).transpose()?;
        let durability = match given.switch("unsafe-no-fsync") {
            Some(true) => Durability::Process,
            _ => Durability::Full,
        };
        Ok(Self { folder: std::path::absolute(folder)?, durability, listen, tls, log: log(given)? })
    }
}

fn client_url(url: &str) -> Result<ClientUrl> {
    let (scheme, address) = url.split_once("://").unwrap_or(("", url));
    let is_secure = match scheme {
        "http" => false,
        "https" => true,
        "unix" | "unixs" => {
            bail!("{url}: sockets of the file system are not supported: give http://HOST:PORT")
        }
        _ => bail!(
            "invalid value {url:?} for flag -listen-client-urls: URL scheme must be http, https, unix, or unixs: {url}"
        ),
    };
    let address =
        address.trim_end_matches('/').parse().with_context(|| format!("-listen-client-urls: {url}"))?;
    Ok(ClientUrl { address, is_secure })
}

fn tls(given: &Given) -> Result<Tls> {
    let (Some(certificate), Some(key)) = (given.text("cert-file"), given.text("key-file")) else {
        bail!("an https URL needs --cert-file and --key-file");
    };
    let read = |path: &str| fs::read_to_string(path).with_context(|| format!("cannot read {path}"));
    let serving = Identity { certificate: read(certificate)?, key: read(key)? };
    let clients = match given.text("trusted-ca-file") {
        Some(path) => {
            let clients = ClientCaVerifier::from_pem(read(path)?.as_bytes(), UnixTime::now());
            Some(clients.with_context(|| format!("{path}, which --trusted-ca-file names, cannot be used"))?)
        }
        None if given.switch("client-cert-auth") == Some(true) => {
            bail!("--client-cert-auth needs --trusted-ca-file")
        }
        None => None,
    };
    let asked = clients.clone().unwrap_or_else(ClientCaVerifier::trusting_none);
    let config = tls::server_config(Arc::new(ServingCertificate::new(&serving)?), &asked);
    Ok(Tls { config, clients })
}

fn log(given: &Given) -> Result<LogConfig> {
    let level = match given.text("log-level").unwrap_or("info") {
        level @ ("debug" | "info" | "warn" | "error") => level,
        "dpanic" | "panic" | "fatal" => "error",
        other => bail!("unrecognized level: {other:?}"),
    };
    let format = match given.text("log-format").unwrap_or("json") {
        "json" => LogFormat::Json,
        "console" => LogFormat::Text,
        other => bail!("unknown log format: {other:?}"),
    };
    Ok(LogConfig { format, filter: level.parse()? })
}
