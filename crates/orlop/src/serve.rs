//! The role of the API server: from a configuration to a process that serves, and to its end.

use std::{
    convert::Infallible,
    io::{self, Write},
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, anyhow};
use apiserver::{ApiServer, Builder, Limits, audit::Log, auth::Authentication};
use controller::Metrics;
use process::{
    Shutdown, Supervisor, descriptors, files, logging,
    pki::Pki,
    reload::{Current, POLL_INTERVAL, Reloader, Updater},
    shutdown::{self, StopSignals},
    signing::SigningKey,
    telemetry::Traces,
    tls::ServingCertificate,
};

use prometheus_client::registry::Registry;
use store::{Options, Store};
use tokio::time::timeout;

use crate::{
    access::follow_signing_key,
    callers,
    config::{Config, Database},
    controllers::{self, Sources},
    database, kubeconfig,
    reload_metrics::ReloadMetrics,
    renewal::{Renewal, Renewed},
    trust::{CaBundle, Followers, Trusted},
};

/// What the store may take to close. Every acknowledged write is safe before it begins.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What a stop takes beside the requests that are still to be answered.
pub(crate) const STOP_TIME: Duration = Duration::from_secs(1);

/// Serves until a signal comes or something fails.
pub(crate) async fn run(config: Config) -> Result<()> {
    let traces = match &config.otlp_endpoint {
        None => None,
        Some(endpoint) => Some(Traces::to(endpoint, "orlop", env!("CARGO_PKG_VERSION"))?),
    };
    logging::install(&config.log, traces.as_ref())?;
    config.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let result = serve(config).await;
    if let Some(traces) = traces {
        traces.finish();
    }
    result
}

async fn serve(mut config: Config) -> Result<()> {
    let mut signals = shutdown::signals().context("cannot listen for signals")?;
    let grace = Limits::default().request_timeout + STOP_TIME;
    let mut supervisor = Supervisor::new(Shutdown::new()).with_grace(grace);
    // A database that does not answer can keep the start waiting: a signal must end that as well.
    let started = tokio::select! {
        started = start(&mut config, &mut supervisor) => started?,
        _ = signals.received() => return Ok(()),
    };
    let shutdown = supervisor.shutdown();
    supervisor.start("the signal handler", stop_on_signal(signals, shutdown));
    started.welcome.print(&mut io::stdout());
    let result = supervisor.run().await;
    started.log.iter().for_each(|log| log.flush());
    if timeout(CLOSE_TIMEOUT, started.store.close()).await.is_err() {
        tracing::warn!("the database took too long to close; nothing that was committed is lost");
    }
    Ok(result?)
}

/// The task that turns a signal into a request to stop.
pub(crate) async fn stop_on_signal(mut signals: StopSignals, shutdown: Shutdown) -> io::Result<()> {
    tokio::select! {
        signal = signals.received() => tracing::info!(signal, "stopping"),
        () = shutdown.requested() => {}
    }
    shutdown.request();
    Ok(())
}

/// What is there once the tasks run.
struct Started {
    welcome: Welcome,
    store: Store,
    /// The audit log.
    log: Option<Arc<Log>>,
}

/// Prepares everything and starts the tasks. Certificates and objects wait for the disk side by side.
async fn start(config: &mut Config, supervisor: &mut Supervisor) -> Result<Started> {
    let mut followed = std::mem::take(&mut config.files);
    let listener = config.listen.bind().await?;
    let local = listener.local_addr()?;
    let address = config.listen.for_clients(local.port());
    prepare_folder(&config.data).map_err(|reason| unwritable(&config.data, &reason))?;

    let shutdown = supervisor.shutdown();
    let renewal = Renewal {
        folder: config.data.join("pki"),
        host: config.listen.host().to_owned(),
        kubeconfig: config.data.join("kubeconfig"),
        address: address.clone(),
    };
    let ((renewal, certificates), Opened { store, api, log, signing_key, metrics, reloads }) = tokio::try_join!(
        async move {
            let made = tokio::task::spawn_blocking(move || {
                let certificates = Certificates::ensure(&renewal)?;
                anyhow::Ok((renewal, certificates))
            });
            made.await?
        },
        open(config, &mut followed, local, shutdown.clone()),
    )?;

    let Certificates { pki, own, serving } = certificates;
    config.trust.update(|trusted| Trusted { own, ..trusted.clone() });
    let trusted = config.trust.current();
    let followers =
        Followers::of(trusted.clone(), Arc::clone(&serving), config.access.publisher(), shutdown.clone());
    api.publish(followers.published);
    supervisor.start("the trust of client CAs", followers.task);
    let report = move |file, outcome| reloads.note(file, outcome);
    supervisor.start("the reload of files", followed.run(POLL_INTERVAL, report, shutdown.clone()));
    // Not before the database is ours: the server that has it may have written the file.
    kubeconfig::write(&renewal.kubeconfig, &renewal.address, &pki)
        .map_err(|reason| unwritable(&renewal.kubeconfig, &reason))?;
    watch_tasks(supervisor, &store, &api);
    let (set_pki, pki) = Updater::new(pki);
    let sources =
        Sources { pki: Some(pki), signing_key: Some(signing_key), unused_tokens: Some(config.unused_tokens) };
    let is_shared = matches!(config.database, Database::Postgres(_));
    let shared_at = is_shared.then(|| address.clone());
    let selection = config.controllers.clone();
    let controllers = controllers::run(api.clone(), selection, sources, metrics, shared_at, shutdown.clone());
    supervisor.start("the controllers", controllers);
    if !config.event_ttl.is_zero() {
        let expiry = controllers::expire_events(api.clone(), config.event_ttl, shutdown.clone());
        supervisor.start("the expiry of events", expiry);
    }
    let peers = callers::by_certificate(trusted, config.access.proxy_names());
    let requests = apiserver::serve(listener, followers.tls, peers, api, shutdown.clone());
    supervisor.start("the API server", async {
        requests.await;
        Ok::<_, Infallible>(())
    });
    let welcome = Welcome { address, kubeconfig: renewal.kubeconfig.clone() };
    let renewed = Renewed { serving, trust: config.trust.clone(), pki: set_pki };
    supervisor.start("the renewal of certificates", renewal.run(renewed, shutdown));
    Ok(Started { welcome, store, log })
}

/// Makes the data directory, and takes the rights of others from keys that an older version or a copy left wider.
fn prepare_folder(data: &Path) -> io::Result<()> {
    files::create_private_folder(data)?;
    files::warn_if_open(data);
    for key in ["ca.key", "server.key", "admin.key", "sa.key"] {
        files::restrict(&data.join("pki").join(key));
    }
    Ok(())
}

/// Ends the process when a background task of the store or of the API server ends early.
pub(crate) fn watch_tasks(supervisor: &mut Supervisor, store: &Store, api: &ApiServer) {
    let store = store.clone();
    supervisor.watch("the store", async move { store.failed().await });
    supervisor.watch("the API server", api.failed());
}

/// The certificates of the server: its CAs, and what it shows.
struct Certificates {
    pki: Pki,
    own: CaBundle,
    serving: Arc<ServingCertificate>,
}

impl Certificates {
    fn ensure(renewal: &Renewal) -> Result<Self> {
        let pki = Pki::ensure(&renewal.folder, &renewal.host, SystemTime::now())?;
        let own = CaBundle::from_pem(pki.trusted().as_bytes())?;
        let serving = Arc::new(ServingCertificate::new(&pki.server)?);
        Ok(Self { pki, own, serving })
    }
}

/// A server on its database, and what controllers need of it.
struct Opened {
    store: Store,
    api: ApiServer,
    log: Option<Arc<Log>>,
    signing_key: Current<SigningKey>,
    metrics: Metrics,
    reloads: ReloadMetrics,
}

/// Opens the database, and makes what is missing in it.
async fn open(
    config: &Config,
    files: &mut Reloader,
    local: SocketAddr,
    shutdown: Shutdown,
) -> Result<Opened> {
    let mut metrics = Registry::default();
    let controllers = Metrics::register(&mut metrics);
    let reloads = ReloadMetrics::register(&mut metrics);
    // Two of them wait for the disk.
    let types = async { ApiServer::built_in_types() };
    let (store, key, types) = tokio::join!(
        database::open(&config.database, Options::keeping(config.history), &mut metrics),
        signing_key(config),
        types
    );
    let store = store?;
    let accounts = config.access.service_accounts(|| follow_signing_key(files, key?))?;
    let signing_key = accounts.signing.clone();
    let audit = config.audit.as_ref().map(|audit| audit.open()).transpose()?;
    let (audit, log) = audit.unzip();
    let mut builder = types.into_iter().fold(ApiServer::empty_builder(store.clone()), Builder::register);
    if let Some(audit) = audit {
        builder = builder.audit(audit);
    }
    let api = builder
        .authentication(config.access.complete(Authentication::following(config.tokens.clone())))
        .authorization(config.access.modes())
        .service_accounts(accounts)
        .limits(limits())
        .admission_plugins(config.plugins.clone())
        .admission_configuration(config.admission.clone())
        .metrics(metrics)
        .shutdown(shutdown)
        .address(in_cluster(local))
        .host(process::listen::host_name())
        .shared(matches!(config.database, Database::Postgres(_)))
        .build()
        .await
        .map_err(|error| anyhow!("the first objects cannot be made: {error}"))?;
    Ok(Opened { store, api, log, signing_key, metrics: controllers, reloads })
}

/// The usual limits, with as many connections as the system has descriptors for.
fn limits() -> Limits {
    let connections = descriptors::connections_within(descriptors::raise_limit());
    Limits { connections, ..Limits::default() }
}

/// The file of the key that signs tokens where no other is given, which is made where it is missing.
async fn signing_key(config: &Config) -> Result<PathBuf> {
    let folder = config.data.join("pki");
    let made = tokio::task::spawn_blocking(move || {
        let path = folder.join("sa.key");
        let made = files::create_private_folder(&folder).and_then(|()| SigningKey::ensure(&path));
        made.map_err(|reason| anyhow!("{} cannot be used: {reason}", path.display()))?;
        Ok(path)
    });
    made.await?
}

/// Where others find a server that listens here: a loopback address is nothing to them, nor is none at all.
pub(crate) fn in_cluster(listening: SocketAddr) -> SocketAddr {
    if !listening.ip().is_loopback() && !listening.ip().is_unspecified() {
        return listening;
    }
    // Nothing is sent: only the system's choice of an address of its own is asked for.
    let own = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).and_then(|()| socket.local_addr())
    });
    own.map_or(listening, |own| SocketAddr::new(own.ip(), listening.port()))
}

fn unwritable(path: &Path, reason: &io::Error) -> anyhow::Error {
    anyhow!(
        "cannot write {}: {reason}; choose another folder with --data, or make this one writable",
        path.display()
    )
}

/// What a person needs next.
struct Welcome {
    address: String,
    kubeconfig: PathBuf,
}

impl Welcome {
    fn print(&self, out: &mut impl Write) {
        let kubeconfig = quoted(&self.kubeconfig);
        // Nobody may be reading, and that is no reason to stop.
        let _ = writeln!(
            out,
            "Orlop is ready at https://{address}\n  \
             kubeconfig  {path}\n  \
             try         kubectl --kubeconfig {kubeconfig} get namespaces",
            address = self.address,
            path = self.kubeconfig.display(),
        );
        let _ = out.flush();
    }
}

/// The path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-+~@%:,=".contains(character);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(kubeconfig: &str) -> String {
        let mut out = Vec::new();
        Welcome { address: "127.0.0.1:6443".to_owned(), kubeconfig: kubeconfig.into() }.print(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[tokio::test]
    async fn a_background_task_that_panics_ends_the_process_with_its_name_and_reason() {
        let engine = Arc::new(store::Sqlite::in_memory().unwrap());
        let metrics = store::Metrics::new(&mut Registry::default());
        let store = Store::open(engine, store::Options::default(), &metrics).await.unwrap();
        let api = ApiServer::builder(store.clone()).build().await.unwrap();
        let mut supervisor = Supervisor::new(Shutdown::new());
        watch_tasks(&mut supervisor, &store, &api);
        assert!(api.inject_fault("the RBAC informer"));
        let failure = supervisor.run().await.unwrap_err().to_string();
        let expected = "the API server failed: the RBAC informer panicked: an injected fault";
        assert!(failure.starts_with(expected), "{failure}");
    }

    #[test]
    fn the_welcome_has_a_line_that_a_shell_takes() {
        assert!(
            printed("/data/kubeconfig").ends_with("kubectl --kubeconfig /data/kubeconfig get namespaces\n")
        );
        let odd = printed("/it's mine/kubeconfig");
        assert!(odd.contains(r"--kubeconfig '/it'\''s mine/kubeconfig' get"), "{odd}");
    }
}
