//! The flags of `kube-apiserver`, validated: the rest of the program sees only the result.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use apiserver::Limits;
use apiserver::admission::Switches;
use kinds::Ranges;
use process::logging::{LogConfig, LogFormat};
use process::pki::Identity;
use process::reload::{NamedFile, Reloader, Updater};
use process::tls;
use server::{Certificates, ClientCas, Listen, watch_bundle};
use store::Options;

use super::access::{self, Followed};
use super::admission;
use super::apis;
use super::audit;
use super::gates;
use super::storage::{EtcdUrl, RemoteStore};
use crate::admission::read_configuration;
use crate::go_flags::Given;
use crate::tokens;

/// The configuration of `kube-apiserver`.
pub(super) struct Config {
    pub(super) server: server::Config,
    pub(super) log: LogConfig,
    /// Warnings for the log at the start.
    pub(super) warnings: Vec<String>,
}

/// The default of `--event-ttl`.
const EVENT_TTL: Duration = Duration::from_secs(60 * 60);

/// The authorization modes of Kubernetes, and whether they are supported.
const MODES: [(&str, bool); 6] = [
    ("AlwaysAllow", true),
    ("AlwaysDeny", true),
    ("RBAC", true),
    ("Node", true),
    ("ABAC", false),
    ("Webhook", false),
];

/// The media types of `--storage-media-type`.
const MEDIA_TYPES: [&str; 3] =
    ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];

impl Config {
    /// Validates all flags before it reports errors, and reads the files that they name.
    pub(super) fn new(given: &Given) -> Result<Self> {
        let mutating_policies = admission::has_mutating_policies(given);
        let (mut set, mut served) = (given.pairs("feature-gates"), given.pairs("runtime-config"));
        set.retain(|(key, _)| !(mutating_policies && admission::is_gate(key)));
        served.retain(|(key, _)| !(mutating_policies && admission::is_api(key)));
        let mut warnings = gates::warnings(&set).map_err(|reason| anyhow!(reason))?;
        warnings.extend(apis::warnings(&served).map_err(|reason| anyhow!(reason))?);
        let mut problems = problems(given);
        problems.extend(audit::problems(given));
        let plugins = plugins(given).map_err(|unknown| problems.extend(unknown)).unwrap_or_default();
        match &problems[..] {
            [] => {}
            [only] => bail!("{only}"),
            several => bail!("[{}]", several.join(", ")),
        }
        let (mut files, client_cas) = (Reloader::default(), Updater::new(ClientCas::default()).0);
        let tokens = tokens::follow(&mut files, given.text("token-auth-file").map(PathBuf::from))?;
        if let Some(path) = given.text("client-ca-file") {
            let file = NamedFile { flag: "--client-ca-file", path: path.into() };
            watch_bundle(&mut files, file, &client_cas, |cas| &mut cas.clients)?;
        }
        let followed = Followed { files: &mut files, client_cas, tokens };
        let auth = access::config(given, followed, &mut warnings, read)?;
        let file = given.text("admission-control-config-file").filter(|path| !path.is_empty());
        let admission = read_configuration(file.map(Path::new), &plugins)?;
        warnings.extend(admission.warnings.iter().cloned());
        let audit = audit::config(given, &mut warnings)?;
        let extra_apis = if mutating_policies { vec![admission::MUTATING_POLICIES] } else { Vec::new() };
        let server = server::Config {
            storage: storage(given)?,
            store: store_options(given),
            listen: Some(listen(given)?),
            certificates: certificates(given)?,
            auth,
            files,
            plugins,
            admission,
            extra_apis,
            services: services(given)?,
            limits: limits(given),
            audit,
            // A bare kube-apiserver runs no controllers.
            controllers: None,
            mounts: Vec::new(),
            roles: Vec::new(),
            event_ttl: given.time("event-ttl").unwrap_or(EVENT_TTL),
            host: process::listen::host_name(),
            shutdown_delay: given.time("shutdown-delay-duration").unwrap_or_default(),
        };
        Ok(Self { server, log: log(given)?, warnings })
    }
}

fn listen(given: &Given) -> Result<Listen> {
    let host = given.text("bind-address").unwrap_or("0.0.0.0");
    let port = given.number("secure-port").unwrap_or(6443);
    let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let advertise = given.text("advertise-address").and_then(|address| address.parse().ok());
    Ok(Listen { address: address.parse()?, advertise })
}

/// The problems of single flags, in Kubernetes' words.
fn problems(given: &Given) -> Vec<String> {
    let mut problems = Vec::new();
    if given.list("etcd-servers").is_empty() {
        problems.push("--etcd-servers must be specified".to_owned());
    }
    if given.real("goaway-chance").is_some_and(|chance| !(0.0..=0.02).contains(&chance)) {
        problems.push("--goaway-chance can not be less than 0 or greater than 0.02".to_owned());
    }
    let port = given.number("secure-port").unwrap_or(6443);
    if !(1..=65535).contains(&port) {
        problems.push(format!(
            "--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
        ));
    }
    if let Some(kind) = given.text("storage-media-type").filter(|kind| !MEDIA_TYPES.contains(kind)) {
        let allowed = MEDIA_TYPES.join(", ");
        problems.push(format!("--storage-media-type \"{kind}\" invalid, allowed values: {allowed}"));
    }
    if let Some(backend) = given.text("storage-backend").filter(|backend| !["", "etcd3"].contains(backend)) {
        problems.push(format!("--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3', not {backend}"));
    }
    if given.each("service-account-issuer").all(str::is_empty) {
        problems.push("service-account-issuer is a required flag".to_owned());
    }
    if given.each("service-account-key-file").next().is_none() {
        problems.push(
            "either `--service-account-key-file` or `--service-account-signing-endpoint` must be set"
                .to_owned(),
        );
    }
    for mode in given.list("authorization-mode") {
        match MODES.iter().find(|(name, _)| *name == mode) {
            None => problems.push(format!("authorization-mode {mode:?} is not a valid mode")),
            Some((_, false)) => {
                problems.push(format!("authorization-mode {mode:?} is not supported: use RBAC"))
            }
            Some((_, true)) => {}
        }
    }
    if given.text("service-account-signing-key-file").is_none_or(str::is_empty) {
        problems.push(
            "--service-account-signing-key-file and --service-account-issuer are required flags".to_owned(),
        );
    }
    problems
}

fn read(flag: &str, path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {path}, which {flag} names"))
}

fn certificates(given: &Given) -> Result<Certificates> {
    match (given.text("tls-cert-file"), given.text("tls-private-key-file")) {
        (None, None) => {
            let folder = given.text("cert-dir").unwrap_or("/var/run/kubernetes");
            Ok(Certificates::ServingFolder(folder.into()))
        }
        (Some(certificate), Some(key)) => Ok(Certificates::Serving(Identity {
            certificate: read("--tls-cert-file", certificate)?,
            key: read("--tls-private-key-file", key)?,
        })),
        _ => bail!("--tls-cert-file and --tls-private-key-file belong together: give both"),
    }
}

fn storage(given: &Given) -> Result<server::Storage> {
    let servers = given.list("etcd-servers");
    let servers = servers.iter().map(|url| url.parse()).collect::<Result<Vec<EtcdUrl>, _>>()?;
    let tls = match given.text("etcd-cafile") {
        None if servers.iter().any(|server| server.is_secure) => {
            bail!("an https URL of --etcd-servers needs --etcd-cafile")
        }
        None => None,
        Some(path) => {
            let own = match (given.text("etcd-certfile"), given.text("etcd-keyfile")) {
                (None, None) => None,
                (Some(certificate), Some(key)) => Some(Identity {
                    certificate: read("--etcd-certfile", certificate)?,
                    key: read("--etcd-keyfile", key)?,
                }),
                _ => bail!("--etcd-certfile and --etcd-keyfile belong together: give both"),
            };
            Some(tls::client_config(read("--etcd-cafile", path)?.as_bytes(), own.as_ref())?)
        }
    };
    let minute = Duration::from_secs(60);
    let prefix = given.text("etcd-prefix").unwrap_or(crate::etcd::USUAL_PREFIX).to_owned();
    let timeout = given.time("storage-initialization-timeout").unwrap_or(minute);
    Ok(RemoteStore { servers, tls, prefix }.storage(timeout))
}

fn store_options(given: &Given) -> Options {
    let usual = Duration::from_secs(5 * 60);
    let interval = given.time("etcd-compaction-interval").unwrap_or(usual);
    Options {
        compaction: Some(interval).filter(|interval| !interval.is_zero()),
        retention: interval,
        ..Options::default()
    }
}

fn limits(given: &Given) -> Limits {
    let mut limits = Limits::default();
    let any_number = |name: &str, usual: usize| match given.number(name) {
        None => usual,
        Some(number) => usize::try_from(number).ok().filter(|number| *number > 0).unwrap_or(usize::MAX),
    };
    limits.reads_in_flight = any_number("max-requests-inflight", limits.reads_in_flight);
    limits.writes_in_flight = any_number("max-mutating-requests-inflight", limits.writes_in_flight);
    limits.request_timeout = given.time("request-timeout").unwrap_or(limits.request_timeout);
    if let Some(seconds) = given.number("min-request-timeout").and_then(|n| u64::try_from(n).ok()) {
        limits.watch_time = Duration::from_secs(seconds);
    }
    limits.sends_late_requests_away = given.switch("shutdown-send-retry-after").unwrap_or(false);
    limits.goaway_chance = given.real("goaway-chance").unwrap_or(limits.goaway_chance);
    if let Some(streams) =
        given.number("http2-max-streams-per-connection").and_then(|n| u32::try_from(n).ok())
    {
        limits.streams_per_connection = if streams == 0 { limits.streams_per_connection } else { streams };
    }
    limits
}

/// The plugins that are on, or an error for each unknown name.
fn plugins(given: &Given) -> Result<Switches, Vec<String>> {
    let (enabled, disabled) =
        (given.list("enable-admission-plugins"), given.list("disable-admission-plugins"));
    let exactly = given.list("admission-control");
    let switches = match exactly.is_empty() {
        true => Switches::kubernetes().with(&enabled, &disabled),
        false if enabled.is_empty() && disabled.is_empty() => Switches::none().with(&exactly, &[]),
        false => {
            let words = "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive";
            return Err(vec![words.to_owned()]);
        }
    };
    switches.map_err(|unknown| unknown.0)
}

fn services(given: &Given) -> Result<Ranges> {
    let networks = given.list("service-cluster-ip-range");
    if networks.len() > 2 {
        bail!("--service-cluster-ip-range must not contain more than two entries");
    }
    let mut ranges = Ranges::default();
    if let Some(network) = networks.first() {
        let Some((address, bits)) = network.split_once('/') else {
            bail!("service-cluster-ip-range[0] is not a valid cidr");
        };
        if address.parse::<IpAddr>().is_err() || bits.parse::<u8>().is_err() {
            bail!("service-cluster-ip-range[0] is not a valid cidr");
        }
        ranges = ranges
            .with_network(network)
            .ok_or_else(|| anyhow!("--service-cluster-ip-range: {network} is not supported: Services have addresses of IPv4, of a network of at most 30 bits"))?;
    }
    if let Some(second) = networks.get(1) {
        bail!("--service-cluster-ip-range: {second} is not supported: Services have addresses of one family");
    }
    if let Some(ports) = given.text("service-node-port-range") {
        ranges = ranges.with_ports(ports).ok_or_else(|| {
            anyhow!("invalid argument {ports:?} for \"--service-node-port-range\" flag: unable to parse port range: {ports}")
        })?;
    }
    Ok(ranges)
}

fn log(given: &Given) -> Result<LogConfig> {
    let level = match given.text("v").and_then(|level| level.parse::<u32>().ok()).unwrap_or(0) {
        0 | 1 => "warn",
        2 | 3 => "info",
        4 | 5 => "debug",
        _ => "trace",
    };
    let format = match given.text("logging-format").unwrap_or("text") {
        "text" => LogFormat::Text,
        "json" => LogFormat::Json,
        other => bail!("format: Invalid value: {other:?}: Unsupported log format"),
    };
    Ok(LogConfig { format, filter: level.parse()? })
}

#[cfg(test)]
mod tests;
