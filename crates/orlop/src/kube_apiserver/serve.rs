//! From a configuration to a process that serves, and to its end.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use apiserver::audit::Log;
use apiserver::auth::Authentication;
use apiserver::{ApiServer, Limits};
use process::{
    Shutdown, Supervisor, descriptors,
    files::{self, Access},
    pki::{self, Identity},
    reload::POLL_INTERVAL,
    shutdown,
    tls::ServingCertificate,
};
use prometheus_client::registry::Registry;
use store::{Metrics, Store};
use tokio::time::timeout;

use super::access::Settings;
use super::admission;
use super::config::{Config, Serving};
use crate::serve::{CLOSE_TIMEOUT, STOP_TIME, in_cluster, watch_tasks};
use crate::trust::Followers;
use crate::{callers, controllers, reload_metrics::ReloadMetrics};

/// Serves until a signal comes or something fails.
pub(super) async fn run(config: Config) -> Result<()> {
    let mut signals = shutdown::signals().context("cannot listen for signals")?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let (leaving, delay) = (Shutdown::new(), config.shutdown_delay);
    let grace = config.limits.request_timeout + STOP_TIME;
    let mut supervisor = Supervisor::new(Shutdown::new()).with_grace(grace);
    let (store, log) = tokio::select! {
        started = start(config, leaving.clone(), &mut supervisor) => started?,
        _ = signals.received() => return Ok(()),
    };
    let shutdown = supervisor.shutdown();
    supervisor.start("the signal handler", async move {
        // Clients are sent elsewhere before the server stops.
        tokio::select! {
            signal = signals.received() => tracing::info!(signal, "stopping"),
            () = shutdown.requested() => {}
        }
        leaving.request();
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = shutdown.requested() => {}
        }
        shutdown.request();
        Ok::<_, Infallible>(())
    });
    let result = supervisor.run().await;
    log.iter().for_each(|log| log.flush());
    if timeout(CLOSE_TIMEOUT, store.close()).await.is_err() {
        tracing::warn!("the store took too long to close; nothing that was committed is lost");
    }
    Ok(result?)
}

async fn start(
    config: Config,
    leaving: Shutdown,
    supervisor: &mut Supervisor,
) -> Result<(Store, Option<Arc<Log>>)> {
    let listener =
        config.listen.bind().await.map_err(|error| anyhow!("failed to create listener: {error}"))?;
    let local = listener.local_addr()?;
    let mut metrics = Registry::default();
    let reloads = ReloadMetrics::register(&mut metrics);
    let serving = {
        let (serving, host) = (config.serving, config.listen.host().to_owned());
        tokio::task::spawn_blocking(move || serving_certificate(serving, &host))
    };
    let engine = config.storage.open().await?;
    let store = Store::open(Arc::new(engine), config.store, &Metrics::new(&mut metrics)).await?;
    let advertised = match config.advertise {
        Some(address) => SocketAddr::new(address, local.port()),
        None => in_cluster(local),
    };
    let Settings { access, accounts, anonymous_at, .. } = config.access;
    let mut authentication = access.complete(Authentication::following(config.tokens));
    if let Some(paths) = anonymous_at {
        authentication = authentication.with_anonymous_at(paths);
    }
    let mut builder = ApiServer::builder(store.clone());
    if config.mutating_policies {
        let (group, version) = admission::MUTATING_POLICIES;
        builder.serve_on_request(group, version);
    }
    let audit = config.audit.map(|audit| audit.open()).transpose()?;
    let (audit, log) = audit.unzip();
    if let Some(audit) = audit {
        builder = builder.audit(audit);
    }
    let connections = descriptors::connections_within(descriptors::raise_limit());
    let limits = Limits { connections, ..config.limits };
    let api = builder
        .authentication(authentication)
        .authorization(access.modes())
        .service_accounts(accounts)
        .limits(limits)
        .services(config.services)
        .admission_plugins(config.plugins)
        .admission_configuration(config.admission)
        .metrics(metrics)
        .shutdown(supervisor.shutdown())
        .leaving(leaving)
        .address(advertised)
        .host(process::listen::host_name())
        .shared(true)
        .build()
        .await
        .map_err(|error| anyhow!("the first objects cannot be made: {error}"))?;
    watch_tasks(supervisor, &store, &api);
    let followers =
        Followers::of(config.trust.clone(), serving.await??, access.publisher(), supervisor.shutdown());
    api.publish(followers.published);
    supervisor.start("the trust of client CAs", followers.task);
    let report = move |file, outcome| reloads.note(file, outcome);
    supervisor.start("the reload of files", config.files.run(POLL_INTERVAL, report, supervisor.shutdown()));
    let peers = callers::by_certificate(config.trust, access.proxy_names());
    if !config.event_ttl.is_zero() {
        let expiry = controllers::expire_events(api.clone(), config.event_ttl, supervisor.shutdown());
        supervisor.start("the expiry of events", expiry);
    }
    let requests = apiserver::serve(listener, followers.tls, peers, api, supervisor.shutdown());
    supervisor.start("the API server", async {
        requests.await;
        Ok::<_, Infallible>(())
    });
    tracing::info!(address = %local, "serving securely");
    Ok((store, log))
}

fn serving_certificate(serving: Serving, host: &str) -> Result<Arc<ServingCertificate>> {
    let identity = match serving {
        Serving::Pair(identity) => identity,
        Serving::Folder(folder) => pair_of(&folder, host)?,
    };
    Ok(Arc::new(ServingCertificate::new(&identity)?))
}

/// The pair of a folder. One that is missing, as a whole or in part, is made.
fn pair_of(folder: &Path, host: &str) -> Result<Identity> {
    let (certificate, key) = (folder.join("apiserver.crt"), folder.join("apiserver.key"));
    match (std::fs::read_to_string(&certificate), std::fs::read_to_string(&key)) {
        (Ok(certificate), Ok(key)) => return Ok(Identity { certificate, key }),
        (Err(error), _) | (_, Err(error)) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot read {}", certificate.display()));
        }
        _ => {}
    }
    let identity = pki::serving_pair(host, SystemTime::now())?;
    let write = || {
        files::create_private_folder(folder)?;
        files::replace(&key, identity.key.as_bytes(), Access::Private)?;
        files::replace(&certificate, identity.certificate.as_bytes(), Access::Public)
    };
    write().with_context(|| {
        format!("cannot write {}: choose another folder with --cert-dir", certificate.display())
    })?;
    Ok(identity)
}
