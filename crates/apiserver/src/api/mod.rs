//! The API server as a value: registry, store, authentication, authorization and admission. It has no sockets.

mod background;

use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use http::{Request, Response};
use kinds::Ranges;
use kinds::admission::configuration::AdmissionConfiguration;
use kinds::rbac::bootstrap_index;
use model::error::Error;
use mount::Mount;
use process::Shutdown;
use process::reload::Current;
use store::Store;
use tasks::{TaskFailure, Tasks};
use tokio::sync::Semaphore;

use crate::admission::{Admission, Switches};
use crate::audit::Audit;
use crate::auth::accounts::Accounts;
use crate::auth::rbac::{Rbac, RbacKind};
use crate::auth::{
    Authentication, Authorizer, ClusterAuthenticationInfo, Connection, Mode, Modes, ServiceAccounts,
    authentication_configmap,
};
use crate::body::Body;
use crate::bootstrap::BootstrapProgress;
use crate::crds::{self, Catalog};
use crate::flow_control::FlowSchemas;
use crate::gate::Gate;
use crate::identity_lease::{self, IdentityLeaseController, LeaseRelease};
use crate::informer::Informers;
use crate::limits::Limits;
use crate::metrics::ApiMetrics;
use crate::mounts::Mounts;
use crate::openapi::DocumentCache;
use crate::pacing::Pacer;
use crate::readyz_check::ReadyzCheck;
use crate::registry::{Registry, ResourceType};
use crate::server::Unsent;
use crate::webhook::Services;
use crate::{bootstrap, built_in, pipeline};

use background::Start;

/// A Kubernetes API server. Cheap to clone; all clones share their state.
#[derive(Clone)]
pub struct ApiServer(Arc<ServerState>);

/// The state that all requests share.
pub struct ServerState {
    pub(crate) store: Store,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) mounts: Mounts,
    pub(crate) informers: Arc<Informers>,
    pub(crate) authentication: Authentication,
    accounts: Arc<Accounts>,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) admission: Admission,
    pub(crate) rbac: Arc<Rbac>,
    pub(crate) limits: Limits,
    pub(crate) gate: Gate,
    /// The unsent bytes of responses on all connections.
    pub(crate) unsent: Arc<Unsent>,
    pub(crate) pacer: Pacer,
    pub(crate) flows: FlowSchemas,
    /// The audit log; `None` if auditing is off.
    pub(crate) audit: Option<Arc<Audit>>,
    pub(crate) documents: DocumentCache,
    /// Bounds backups to one at a time.
    pub(crate) backups: Arc<Semaphore>,
    pub(crate) metrics: ApiMetrics,
    pub(crate) metrics_registry: prometheus_client::registry::Registry,
    pub(crate) shutdown: Shutdown,
    pub(crate) progress: Arc<BootstrapProgress>,
    pub(crate) leaving: Shutdown,
    pub(crate) lease_release: LeaseRelease,
    pub(crate) readyz_checks: Vec<ReadyzCheck>,
    /// The IP and port ranges of Services.
    pub(crate) services: Ranges,
    /// The background tasks; they end with the server.
    pub(crate) tasks: Tasks,
}

impl ServerState {
    /// The current resource types.
    pub fn registry(&self) -> Arc<Registry> {
        self.catalog.registry()
    }

    /// The store and its informers, for a controller that must not keep the server alive.
    pub(crate) fn store_and_informers(&self) -> (Store, Arc<Informers>) {
        (self.store.clone(), self.informers.clone())
    }

    /// The path prefixes that products serve.
    pub fn mounts(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter()
    }

    /// The service accounts.
    pub(crate) fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Whether the namespace of a new object has to exist.
    pub(crate) fn keeps_namespaces(&self) -> bool {
        self.admission.is_on("NamespaceLifecycle") && self.registry().find("", "v1", "namespaces").is_some()
    }
}

/// Builder of a server.
pub struct Builder {
    store: Store,
    registry: Registry,
    mounts: Vec<Mount>,
    readyz_checks: Vec<ReadyzCheck>,
    authentication: Authentication,
    modes: Vec<Mode>,
    plugins: Switches,
    admission_configuration: AdmissionConfiguration,
    service_accounts: Option<ServiceAccounts>,
    limits: Limits,
    audit: Option<Audit>,
    metrics: prometheus_client::registry::Registry,
    shutdown: Shutdown,
    leaving: Shutdown,
    host: String,
    address: Option<SocketAddr>,
    is_shared: bool,
    services: Ranges,
}

impl Builder {
    /// Adds a resource type.
    #[must_use]
    pub fn register(mut self, resource_type: ResourceType) -> Self {
        self.registry.register(resource_type);
        self
    }

    /// Mounts the paths of a product. [`Builder::build`] refuses a prefix that collides with another path.
    #[must_use]
    pub fn mount(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }

    /// Adds a check to `/readyz`. It returns the reason why it fails, and must not block.
    #[must_use]
    pub fn readyz_check(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.readyz_checks.push(ReadyzCheck { name: name.into(), check: Box::new(check) });
        self
    }

    /// Enables a built-in API that is off by default, such as `admissionregistration.k8s.io/v1beta1`. Returns false if there
    /// is no such API.
    pub fn serve_on_request(&mut self, group: &str, version: &str) -> bool {
        let types = built_in::on_request(group, version);
        let has_any = !types.is_empty();
        types.into_iter().for_each(|resource_type| self.registry.register(resource_type));
        has_any
    }

    /// Sets the authenticators. By default only client certificates authenticate.
    #[must_use]
    pub fn authentication(mut self, authentication: Authentication) -> Self {
        self.authentication = authentication;
        self
    }

    /// Sets the authorization modes, in order. The default is RBAC alone. Members of `system:masters` are always allowed.
    #[must_use]
    pub fn authorization(mut self, modes: Vec<Mode>) -> Self {
        self.modes = modes;
        self
    }

    /// Sets keys and lifetimes of service account tokens. By default the signing key is ephemeral.
    #[must_use]
    pub fn service_accounts(mut self, settings: ServiceAccounts) -> Self {
        self.service_accounts = Some(settings);
        self
    }

    /// Sets the enabled admission plugins. The default is [`Switches::default`].
    #[must_use]
    pub fn admission_plugins(mut self, plugins: Switches) -> Self {
        self.plugins = plugins;
        self
    }

    /// Sets the configuration of admission plugins.
    #[must_use]
    pub fn admission_configuration(mut self, configuration: AdmissionConfiguration) -> Self {
        self.admission_configuration = configuration;
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Enables the audit log.
    #[must_use]
    pub fn audit(mut self, audit: Audit) -> Self {
        self.audit = Some(audit);
        self
    }

    /// Adds these metrics to `/metrics`.
    #[must_use]
    pub fn metrics(mut self, metrics: prometheus_client::registry::Registry) -> Self {
        self.metrics = metrics;
        self
    }

    /// Ends watches once this token is cancelled.
    #[must_use]
    pub fn shutdown(mut self, shutdown: Shutdown) -> Self {
        self.shutdown = shutdown;
        self
    }

    /// Fails `/readyz` once this token is cancelled, so that load balancers drain the server before it stops.
    #[must_use]
    pub fn leaving(mut self, leaving: Shutdown) -> Self {
        self.leaving = leaving;
        self
    }

    /// Sets the host name, which identifies the server in its identity Lease.
    #[must_use]
    pub fn host(mut self, host: String) -> Self {
        self.host = host;
        self
    }

    /// Sets the address that the endpoints of the Service `kubernetes` advertise.
    #[must_use]
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// Declares that other servers may share the store.
    #[must_use]
    pub fn shared(mut self, is_shared: bool) -> Self {
        self.is_shared = is_shared;
        self
    }

    /// Sets the IP and port ranges of Services.
    #[must_use]
    pub fn services(mut self, ranges: Ranges) -> Self {
        self.services = ranges;
        self
    }

    /// Creates the namespaces of a fresh database and starts the server. [`ApiServer::ready`] waits for the remaining
    /// bootstrap objects.
    ///
    /// # Errors
    /// A mount collides with another path, or the store fails.
    pub async fn build(mut self) -> Result<ApiServer, Error> {
        let mounts = Mounts::new(self.mounts, &self.registry)?;
        let serves_crds = self.registry.types().any(|of| of.is_crd());
        let has_roles = self.registry.types().any(|of| RbacKind::of(of).is_some());
        let rbac = Arc::new(if has_roles { Rbac::default() } else { Rbac::fixed(bootstrap_index()) });
        let settings = self.service_accounts.map_or_else(ServiceAccounts::ephemeral, Ok)?;
        let address = self.address.map(|address| address.to_string()).unwrap_or_default();
        let (accounts, uses) = Accounts::new(settings, self.store.clone(), address);
        let accounts = Arc::new(accounts);
        self.authentication.accounts = Some(accounts.clone());
        let services = Services::of(&self.store);
        let flows = FlowSchemas::new();
        let admission =
            Admission::new(self.plugins, self.admission_configuration, services, flows.informers());
        let mut informers = Informers::default();
        admission.register(&self.registry, &mut informers);
        let catalog = Catalog::new(self.registry);
        if serves_crds {
            informers.add(crds::resource(), catalog.position.clone());
        }
        if has_roles {
            RbacKind::ALL
                .iter()
                .for_each(|kind| informers.add(kind.resource(), rbac.position(*kind).clone()));
        }
        let api = ApiServer(Arc::new(ServerState {
            store: self.store,
            catalog: Arc::new(catalog),
            mounts,
            informers: Arc::new(informers),
            authentication: self.authentication,
            accounts,
            authorizer: Arc::new(Modes::new(self.modes, &rbac)),
            rbac,
            admission,
            gate: Gate::new(&self.limits),
            unsent: Arc::new(Unsent::new(self.limits.response_bytes)),
            limits: self.limits,
            pacer: Pacer::new(std::thread::available_parallelism().map_or(1, NonZero::get)),
            flows,
            audit: self.audit.map(Arc::new),
            documents: DocumentCache::default(),
            backups: Arc::new(Semaphore::new(1)),
            metrics: ApiMetrics::register(&mut self.metrics),
            metrics_registry: self.metrics,
            shutdown: self.shutdown,
            progress: Arc::default(),
            leaving: self.leaving,
            lease_release: LeaseRelease::default(),
            readyz_checks: self.readyz_checks,
            services: self.services,
            tasks: Tasks::default(),
        }));
        if let Some(audit) = &api.audit {
            api.spawn("the audit log writer", audit.log.clone().run());
        }
        api.start_informers(serves_crds).await?;
        let is_fresh = bootstrap::create_namespaces(&api).await?;
        let identity_lease = self.address.filter(|_| identity_lease::is_served(&api));
        let identity_lease = identity_lease
            .map(|address| IdentityLeaseController::new(&self.host, address, self.is_shared, self.services));
        api.start_tasks(Start { address: self.address, identity_lease, uses, has_roles, is_fresh });
        Ok(api)
    }
}

impl ApiServer {
    pub(crate) fn of(state: Arc<ServerState>) -> Self {
        Self(state)
    }

    /// A reference that does not keep the server alive.
    pub(crate) fn weak(&self) -> Weak<ServerState> {
        Arc::downgrade(&self.0)
    }

    /// Resolves with the first background task that ended early; never if none does. Without that task the server may
    /// authorize or admit by outdated objects, so most users end the process.
    pub fn failed(&self) -> impl Future<Output = TaskFailure> + Send + use<> {
        self.tasks.failed()
    }

    /// The names of the background tasks.
    #[cfg(feature = "faults")]
    #[must_use]
    pub fn task_names(&self) -> Vec<String> {
        self.tasks.names()
    }

    /// Makes a background task panic; false if there is none of this name.
    #[cfg(feature = "faults")]
    pub fn inject_fault(&self, task: &str) -> bool {
        self.tasks.inject_fault(task)
    }

    /// A builder with the built-in resource types.
    pub fn builder(store: Store) -> Builder {
        let mut builder = Self::empty_builder(store);
        Self::built_in_types().into_iter().for_each(|resource_type| builder.registry.register(resource_type));
        builder
    }

    /// The built-in resource types, for callers that build them while the store opens and register them with
    /// [`ApiServer::empty_builder`].
    #[must_use]
    pub fn built_in_types() -> Vec<ResourceType> {
        built_in::all()
    }

    /// A builder without resource types.
    pub fn empty_builder(store: Store) -> Builder {
        Builder {
            store,
            registry: Registry::default(),
            mounts: Vec::new(),
            readyz_checks: Vec::new(),
            authentication: Authentication::default(),
            modes: vec![Mode::Rbac],
            service_accounts: None,
            plugins: Switches::default(),
            admission_configuration: AdmissionConfiguration::default(),
            limits: Limits::default(),
            audit: None,
            metrics: prometheus_client::registry::Registry::default(),
            shutdown: Shutdown::new(),
            leaving: Shutdown::new(),
            address: None,
            host: String::new(),
            is_shared: false,
            services: Ranges::default(),
        }
    }

    /// Publishes CAs and front proxies in the ConfigMap `extension-apiserver-authentication` from now on.
    pub fn publish(&self, info: Current<ClusterAuthenticationInfo>) {
        if self.registry().find("", "v1", "configmaps").is_some() {
            let keeping = authentication_configmap::run(Arc::downgrade(&self.0), info);
            self.spawn("the authentication ConfigMap controller", keeping);
        }
    }

    /// Waits until the bootstrap objects exist. Requests that depend on them wait by themselves.
    pub async fn ready(&self) {
        self.progress.wait().await;
    }

    /// Like [`ApiServer::ready`], but does not start the bootstrap early: the first client is served before it.
    pub async fn settled(&self) {
        self.progress.wait_without_starting().await;
    }

    /// Answers one request of a connection. The address of the client, for the audit log, is an [`IpAddr`](std::net::IpAddr)
    /// in the extensions of the request.
    pub async fn answer<B>(&self, connection: &Connection, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send,
        B::Error: std::fmt::Display,
    {
        let verdict;
        let connection = match connection {
            Connection::Peer(peer) => {
                verdict = peer.verify(SystemTime::now());
                &*verdict
            }
            other => other,
        };
        pipeline::answer(self, connection, request).await
    }
}

impl std::ops::Deref for ApiServer {
    type Target = ServerState;

    fn deref(&self) -> &ServerState {
        &self.0
    }
}
