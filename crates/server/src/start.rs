//! The start of a server: opens the database, builds the API server, and starts the tasks under a supervisor.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    path::PathBuf,
    sync::Arc,
};

use apiserver::{ApiServer, Builder, audit::Log};
use controller::Metrics;
use process::{
    Shutdown, Supervisor,
    pki::Pki,
    reload::{Current, POLL_INTERVAL, Reloader, Updater},
    signing::SigningKey,
};
use prometheus_client::registry::Registry;
use store::Store;
use tokio::net::TcpListener;

use crate::{
    Error,
    certificates::{self, LoadedCertificates, pki_folder},
    client_cas::{ClientCas, Dependents},
    client_certificates,
    config::{Certificates, Config, Listen},
    controllers::{self, Sources},
    kubeconfig,
    reload_metrics::ReloadMetrics,
    renewal::{Renewal, Renewed},
    roles::Roles,
    storage,
};

/// The host on the serving certificate of a server without a socket.
const NO_HOST: &str = "localhost";

/// A started server: its tasks run under the supervisor.
pub(crate) struct Started {
    pub(crate) api: ApiServer,
    pub(crate) store: Store,
    pub(crate) audit_log: Option<Arc<Log>>,
    pub(crate) address: Option<Address>,
    pub(crate) pki: Option<Current<Pki>>,
    pub(crate) kubeconfig: Option<PathBuf>,
}

/// The address of a listening server.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// The bound address.
    pub(crate) bound: SocketAddr,
    /// `HOST:PORT` for clients on this machine.
    pub(crate) for_clients: String,
}

/// Binds the socket, and starts everything under the supervisor.
pub(crate) async fn start(
    mut config: Config,
    draining: Shutdown,
    supervisor: &mut Supervisor,
) -> Result<Started, Error> {
    let (mut files, roles) = (std::mem::take(&mut config.files), Roles::new(&config.roles));
    let listener = match &config.listen {
        Some(listen) => Some(bind(listen).await?),
        None => None,
    };
    if let Certificates::Folder(folder) = &config.certificates {
        certificates::prepare_folder(folder)?;
    }
    let address = listener.as_ref().map(|(_, address)| address.clone());
    // Both wait for the disk.
    let (loaded, opened) = tokio::try_join!(
        load_certificates(&config),
        open(&config, &roles, &mut files, address.as_ref(), draining, supervisor.shutdown()),
    )?;
    let LoadedCertificates { pki, own, serving } = loaded;
    config.auth.client_cas.update(|trusted| ClientCas { own, ..trusted.clone() });
    let shutdown = supervisor.shutdown();
    let trusted = config.auth.client_cas.current();
    let for_tls = listener.is_some().then(|| Arc::clone(&serving));
    let dependents = Dependents::new(trusted.clone(), for_tls, config.auth.publisher(), shutdown.clone());
    opened.api.publish(dependents.published);
    supervisor.start("the client CA reloader", dependents.task);
    let reloads = opened.reloads.clone();
    let report = move |file, outcome| reloads.note(file, outcome);
    supervisor.start("the file reloader", files.run(POLL_INTERVAL, report, shutdown.clone()));
    let renewal = renewal(&config, address.as_ref());
    if let (Some(renewal), Some(pki)) = (&renewal, &pki) {
        // Only now that the database is open: another server that has it open may have written the file.
        kubeconfig::write(&renewal.kubeconfig, &renewal.address, pki)
            .map_err(|reason| Error::Unwritable { path: renewal.kubeconfig.clone(), reason })?;
    }
    let kubeconfig = renewal.as_ref().map(|renewal| renewal.kubeconfig.clone());
    watch_tasks(supervisor, &opened.store, &opened.api);
    let (set_pki, pki) = pki.map(Updater::new).unzip();
    let instance = address.as_ref().map_or(&config.host, |address| &address.for_clients);
    start_controllers(&config, supervisor, &opened, pki.clone(), instance);
    if let (false, Some(metrics)) = (roles.is_empty(), &opened.metrics) {
        let instance = format!("{instance}_{}", uuid::Uuid::new_v4());
        let running = roles.run(opened.api.clone(), metrics.clone(), instance, shutdown.clone());
        supervisor.start("the roles", running);
    }
    if let (Some((listener, _)), Some(tls)) = (listener, dependents.tls) {
        let peers = client_certificates::authenticator(trusted, config.auth.front_proxy_names());
        let requests = apiserver::serve(listener, tls, peers, opened.api.clone(), shutdown.clone());
        supervisor.start("the API server", async {
            requests.await;
            Ok::<_, Infallible>(())
        });
    }
    if let (Some(renewal), Some(pki)) = (renewal, set_pki) {
        let renewed = Renewed { serving, client_cas: config.auth.client_cas.clone(), pki };
        supervisor.start("the certificate renewal", renewal.run(renewed, shutdown));
    }
    let Opened { api, store, audit_log, .. } = opened;
    Ok(Started { api, store, audit_log, address, pki, kubeconfig })
}

async fn bind(listen: &Listen) -> Result<(TcpListener, Address), Error> {
    let listener = listen.address.bind().await?;
    let bound = listener.local_addr().map_err(Error::Address)?;
    let for_clients = listen.address.for_clients(bound.port());
    Ok((listener, Address { bound, for_clients }))
}

async fn load_certificates(config: &Config) -> Result<LoadedCertificates, Error> {
    let host = config.listen.as_ref().map_or(NO_HOST, |listen| listen.address.host()).to_owned();
    let certificates = config.certificates.clone();
    let loaded = tokio::task::spawn_blocking(move || LoadedCertificates::load(&certificates, &host));
    loaded.await.map_err(Error::blocking)?
}

/// The renewal of certificates in a folder; nothing else is renewed.
fn renewal(config: &Config, address: Option<&Address>) -> Option<Renewal> {
    let (Certificates::Folder(folder), Some(listen), Some(address)) =
        (&config.certificates, &config.listen, address)
    else {
        return None;
    };
    Some(Renewal {
        folder: pki_folder(folder),
        host: listen.address.host().to_owned(),
        kubeconfig: folder.join("kubeconfig"),
        address: address.for_clients.clone(),
    })
}

fn start_controllers(
    config: &Config,
    supervisor: &mut Supervisor,
    opened: &Opened,
    pki: Option<Current<Pki>>,
    instance: &str,
) {
    let shutdown = supervisor.shutdown();
    if let Some((selected, metrics)) = config.controllers.clone().zip(opened.metrics.clone()) {
        let sources = Sources { pki, signing_key: opened.signing_key.clone() };
        let shared_at = config.storage.is_shared().then(|| instance.to_owned());
        let api = opened.api.clone();
        let running = controllers::run(api, selected, sources, metrics, shared_at, shutdown.clone());
        supervisor.start("the controllers", running);
    }
    if !config.event_ttl.is_zero() {
        let expiry = controllers::expire_events(opened.api.clone(), config.event_ttl, shutdown);
        supervisor.start("the event TTL controller", expiry);
    }
}

/// Fails the supervisor when a background task of the store or of the API server ends early.
pub(crate) fn watch_tasks(supervisor: &mut Supervisor, store: &Store, api: &ApiServer) {
    let store = store.clone();
    supervisor.watch("the store", async move { store.failed().await });
    supervisor.watch("the API server", api.failed());
}

/// An API server on its open database.
struct Opened {
    api: ApiServer,
    store: Store,
    audit_log: Option<Arc<Log>>,
    signing_key: Current<SigningKey>,
    /// The work queue metrics; `None` without controllers and roles.
    metrics: Option<Metrics>,
    reloads: ReloadMetrics,
}

/// Opens the database, and builds the API server, which creates missing bootstrap objects.
async fn open(
    config: &Config,
    roles: &Roles,
    files: &mut Reloader,
    address: Option<&Address>,
    draining: Shutdown,
    shutdown: Shutdown,
) -> Result<Opened, Error> {
    let mut registry = Registry::default();
    let has_queues = config.controllers.is_some() || !roles.is_empty();
    let metrics = has_queues.then(|| Metrics::register(&mut registry));
    roles.register_metrics(&mut registry);
    let reloads = ReloadMetrics::register(&mut registry);
    // The table of types is built while the others wait for the disk.
    let types = async { ApiServer::built_in_types() };
    let (store, accounts, types) = tokio::join!(
        storage::open(&config.storage, config.store.clone(), &mut registry),
        config.auth.service_accounts.settings(files),
        types
    );
    let (store, accounts) = (store?, accounts?);
    let signing_key = accounts.signing.clone();
    let (audit, audit_log) = config.audit.as_ref().map(|audit| audit.open()).transpose()?.unzip();
    let mut builder = types.into_iter().fold(ApiServer::empty_builder(store.clone()), Builder::register);
    for api in &config.extra_apis {
        builder.serve_on_request(api.group, api.version);
    }
    builder = config.mounts.iter().cloned().fold(roles.add_to(builder), Builder::mount);
    if let Some(audit) = audit {
        builder = builder.audit(audit);
    }
    if let Some(address) = address {
        let advertise = config.listen.as_ref().and_then(|listen| listen.advertise);
        builder = builder.address(match advertise {
            Some(advertise) => SocketAddr::new(advertise, address.bound.port()),
            None => reachable(address.bound),
        });
    }
    let api = builder
        .authentication(config.auth.authentication())
        .authorization(config.auth.modes.clone())
        .service_accounts(accounts)
        .limits(config.limits.clone())
        .services(config.services)
        .admission_plugins(config.plugins.clone())
        .admission_configuration(config.admission.clone())
        .metrics(registry)
        .shutdown(shutdown)
        .leaving(draining)
        .host(config.host.clone())
        .shared(config.storage.is_shared())
        .build()
        .await
        .map_err(Error::Bootstrap)?;
    Ok(Opened { api, store, audit_log, signing_key, metrics, reloads })
}

/// The address under which Pods find a server that is bound to `bound`: an address of this machine if that is a loopback or the
/// unspecified address.
fn reachable(bound: SocketAddr) -> SocketAddr {
    if !bound.ip().is_loopback() && !bound.ip().is_unspecified() {
        return bound;
    }
    // Sends nothing: connecting a UDP socket only selects a local address.
    let own = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).and_then(|()| socket.local_addr())
    });
    own.map_or(bound, |own| SocketAddr::new(own.ip(), bound.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_background_task_that_panics_fails_the_server_with_its_name_and_reason() {
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
}
