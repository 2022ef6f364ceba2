//! The interface between a product and the process that runs it.
//!
//! A product is a [`Role`]: a name, CRDs, RBAC rules, routes and a start function. A binary lists a [`RoleDefinition`] per product, which adds
//! the product's flags. `orlop up` runs all roles in the process of the server, each supervised and with a check `role/NAME` in `/readyz`;
//! `--no-NAME` switches one off. `orlop NAME --kubeconfig FILE` runs one alone, against any Kubernetes API, with the same check and metrics
//! at `--health-listen`. A product imports this crate and never the server.
//!
//! ```
//! use clap::{ArgMatches, Args, FromArgMatches};
//! use role::{BoxError, Role, RoleContext, RoleDefinition};
//! use serde_json::json;
//!
//! /// The flags of the product. Their names begin with its name, because `up` takes the flags of all products.
//! #[derive(Args, Clone)]
//! struct GreeterArgs {
//!     /// Text of a greeting
//!     #[arg(long, value_name = "TEXT", default_value = "hello")]
//!     greeter_text: String,
//! }
//!
//! /// The line of the product in the table of a binary.
//! pub const GREETER: RoleDefinition = RoleDefinition {
//!     name: "greeter",
//!     about: "Greet every ConfigMap",
//!     flags: GreeterArgs::augment_args,
//!     configure: |matches: &ArgMatches| Ok(greeter(GreeterArgs::from_arg_matches(matches)?)),
//! };
//!
//! fn greeter(args: GreeterArgs) -> Role {
//!     Role::new("greeter", move |context| run(args.clone(), context))
//!         .rule(json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch", "patch"]}))
//! }
//!
//! async fn run(args: GreeterArgs, context: RoleContext) -> Result<(), BoxError> {
//!     tracing::info!(text = args.greeter_text, "greeting ConfigMaps");
//!     // Controllers with `context.client` start here.
//!     context.readiness.ready();
//!     context.shutdown.requested().await;
//!     Ok(())
//! }
//!
//! let command = (GREETER.flags)(clap::Command::new("greeter"));
//! let role = (GREETER.configure)(&command.get_matches_from(["greeter", "--greeter-text", "hi"])).unwrap();
//! assert_eq!(role.name(), "greeter");
//! ```

mod context;
mod run;

use std::fmt;
use std::sync::Arc;

use clap::{ArgMatches, Command};
use futures::FutureExt;
use futures::future::BoxFuture;
use mount::Mount;
use prometheus_client::registry::Registry;
use serde_json::Value;

pub use context::{Readiness, RoleContext};
pub use run::{RoleFailure, run, supervise};

/// An error of any kind.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Start = dyn Fn(RoleContext) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync;
type RegisterMetrics = dyn Fn(&mut Registry) + Send + Sync;

/// The line of a product in the table of a binary.
#[derive(Clone, Copy, Debug)]
pub struct RoleDefinition {
    /// The name: a DNS label, and the name of a subcommand.
    pub name: &'static str,
    /// The help text of the subcommand.
    pub about: &'static str,
    /// Adds the flags, such as `<MyArgs as clap::Args>::augment_args`.
    pub flags: fn(Command) -> Command,
    /// Validates the flags, once, before anything starts.
    pub configure: fn(&ArgMatches) -> Result<Role, BoxError>,
}

/// A configured product. Cheap to clone.
#[derive(Clone)]
pub struct Role {
    name: &'static str,
    crds: Vec<Value>,
    rules: Vec<Value>,
    mounts: Vec<Mount>,
    metrics: Vec<Arc<RegisterMetrics>>,
    start: Arc<Start>,
}

impl Role {
    /// A role with a start function, which runs until [`RoleContext::shutdown`] is requested. It is called again after a failure.
    pub fn new<F, R>(name: &'static str, start: F) -> Self
    where
        F: Fn(RoleContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let start: Arc<Start> = Arc::new(move |context| start(context).boxed());
        Self { name, crds: Vec::new(), rules: Vec::new(), mounts: Vec::new(), metrics: Vec::new(), start }
    }

    /// Installs this CustomResourceDefinition before the start function runs.
    #[must_use]
    pub fn crd(mut self, crd: Value) -> Self {
        self.crds.push(crd);
        self
    }

    /// Grants this PolicyRule to the role's service account. It applies to a role in the process of the server; a role that runs alone has
    /// the rights of its kubeconfig.
    #[must_use]
    pub fn rule(mut self, rule: Value) -> Self {
        self.rules.push(rule);
        self
    }

    /// Serves these paths on the port of the server. A role that runs alone serves none.
    #[must_use]
    pub fn mount(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }

    /// Registers metrics, which are shown under `/metrics`.
    #[must_use]
    pub fn metrics(mut self, register: impl Fn(&mut Registry) + Send + Sync + 'static) -> Self {
        self.metrics.push(Arc::new(register));
        self
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The name of the role's service account in `kube-system`, of its ClusterRole and of its ClusterRoleBinding.
    #[must_use]
    pub fn account(&self) -> String {
        format!("orlop-{}", self.name)
    }

    /// The CRDs.
    #[must_use]
    pub fn crds(&self) -> &[Value] {
        &self.crds
    }

    /// The rules of the ClusterRole.
    #[must_use]
    pub fn rules(&self) -> &[Value] {
        &self.rules
    }

    /// The mounts.
    #[must_use]
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// Registers the metrics of the role.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.metrics.iter().for_each(|register| register(registry));
    }

    fn start(&self, context: RoleContext) -> BoxFuture<'static, Result<(), BoxError>> {
        (self.start)(context)
    }
}

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Role").field("name", &self.name).field("mounts", &self.mounts).finish_non_exhaustive()
    }
}
