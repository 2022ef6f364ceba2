//! A controller framework for any Kubernetes API.
//!
//! A controller is a [`Reconciler`] with informers. Informers name keys; each key is in the work queue at most once and with one worker at a
//! time; a failure comes back with a backoff; nothing polls. A reconciler observes, decides and executes: the decision is a pure function of
//! what was observed and of the time, so that a table can test it.
//!
//! ```no_run
//! use controller::{
//!     Context, Controller, ListWatch, ObjectKey, Objects, Outcome, Reconciler, ResourceKind, Result, SharedInformers,
//! };
//! use jiff::Timestamp;
//! use serde::Deserialize;
//! use serde_json::{Value, json};
//!
//! const CONFIG_MAPS: ResourceKind = ResourceKind { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };
//!
//! /// The part of a ConfigMap that the decision depends on.
//! #[derive(Deserialize)]
//! struct ConfigMap {
//!     metadata: Metadata,
//!     #[serde(default)]
//!     data: std::collections::BTreeMap<String, String>,
//! }
//!
//! #[derive(Deserialize)]
//! #[serde(rename_all = "camelCase")]
//! struct Metadata {
//!     resource_version: String,
//! }
//!
//! /// The decision.
//! #[derive(Debug, PartialEq)]
//! enum Step {
//!     Keep,
//!     Greet,
//! }
//!
//! struct Greeter {
//!     client: kube::Client,
//! }
//!
//! impl Greeter {
//!     fn objects(&self, key: &ObjectKey) -> Objects {
//!         Objects::new(&self.client, &CONFIG_MAPS.resource(), key.namespace())
//!     }
//! }
//!
//! impl Reconciler for Greeter {
//!     type Key = ObjectKey;
//!     type Observed = ConfigMap;
//!     type Step = Step;
//!
//!     async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<ConfigMap>> {
//!         self.objects(key).get(&key.name).await
//!     }
//!
//!     fn decide(observed: &ConfigMap, _now: Timestamp) -> Step {
//!         if observed.data.contains_key("greeting") { Step::Keep } else { Step::Greet }
//!     }
//!
//!     async fn execute(
//!         &self,
//!         key: &ObjectKey,
//!         observed: ConfigMap,
//!         step: Step,
//!         _: &Context<ObjectKey>,
//!     ) -> Result<Outcome> {
//!         if step == Step::Greet {
//!             // A precondition: a decision about one version is not executed on another.
//!             let version = observed.metadata.resource_version;
//!             let patch = json!({"metadata": {"resourceVersion": version}, "data": {"greeting": "hello"}});
//!             self.objects(key).merge_patch::<Value>(&key.name, &patch).await?;
//!         }
//!         Ok(Outcome::Done)
//!     }
//! }
//!
//! # async fn start(client: kube::Client, shutdown: process::Shutdown) {
//! Controller::new("greeter", Greeter { client: client.clone() })
//!     .watch::<ConfigMap, _>(&SharedInformers::new(client), ListWatch::all(CONFIG_MAPS), |delta| [delta.key.clone()])
//!     .workers(2)
//!     .run(shutdown)
//!     .await;
//! # }
//! ```
//!
//! # The parts
//!
//! | part | purpose |
//! |---|---|
//! | [`Controller`], [`Reconciler`] | informers that name keys, workers that observe, decide and execute; [`ReconcileKey`] for work that has to write while it reads |
//! | [`SharedInformers`], [`ListWatch`], [`Cache`], [`Index`] | one list and watch per selection (a resource, by namespace, label and field selector, whole or metadata only), however many handlers it has. A server that refuses `sendInitialEvents` is listed in pages. Caches are read by key, namespace or index; informers that come and go are subscribed from the [`Context`] |
//! | [`WorkQueue`] | changes before the objects of a list, exponential backoff per key, requeue after a time, no starvation; [`Metrics`] has its `workqueue_*` numbers |
//! | [`Objects`], [`discovery::Resolver`] | a client of one resource with any serde type; the resource of a kind that is known at run time |
//! | [`Apply`] | server-side apply: forced, unforced with [`Error::ApplyConflict`], or as a dry run |
//! | [`conditions`], [`finalizers`], [`owners`] | the conventions of status, deletion and garbage collection |
//! | [`events::Recorder`] | events for people: repeated ones are counted, similar ones combined, very many limited |
//! | [`leader`] | one leader of many processes, with parameters, names at run time and a fencing [`Epoch`](leader::Epoch) for its writes |
//! | [`crds::CrdInstaller`] | CRDs that are created or upgraded, and usable when it returns |
//! | [`webhook::WebhookServer`] | mutating, validating and conversion webhooks, with certificates that it creates, shares between replicas and rotates, or that cert-manager keeps |
//! | [`health`] | `/healthz`, `/livez`, `/readyz` and `/metrics` of a program that runs alone |
//! | [`clusters`] | clients of several clusters: in a pod, by a kubeconfig file, and by the kubeconfig in a Secret, whose changes are followed |
//! | [`manager`] | a table of controllers that are selected by name, each with a client of its own |
//!
//! The client is any `kube::Client`: over the network, in a pod, or of a server in the same process (`kube::Client::new` with its tower service).
//!
//! # A whole program
//!
//! `crates/controller/examples/greeter.rs` has all of them. Tests run it as two replicas, against Orlop and, where its binaries exist, against
//! kube-apiserver.
//!
//! ```no_run
#![doc = include_str!("../examples/greeter.rs")]
//! ```

mod apply;
mod cache;
pub mod clusters;
pub mod conditions;
mod controller;
pub mod crds;
pub mod discovery;
mod error;
pub mod events;
pub mod finalizers;
mod handler;
pub mod health;
mod informers;
pub mod leader;
mod list_watch;
pub mod manager;
mod metrics;
mod objects;
pub mod owners;
mod queue;
mod raw_object;
mod reconciler;
mod subscriptions;
pub mod webhook;

pub use apply::{Apply, FieldConflict};
pub use cache::{Cache, Index};
pub use controller::{Context, Controller, Outcome, Run};
pub use error::{Error, Result};
pub use handler::{Delta, DeltaHandler, EventHandler, WatchEvent};
pub use informers::SharedInformers;
pub use list_watch::ListWatch;
pub use metrics::{Metrics, QueueMetrics};
pub use objects::{ObjectKey, Objects, Page, PageMetadata, Pages, ResourceKind};
pub use queue::{Key, Priority, WorkQueue};
pub use raw_object::RawObject;
pub use reconciler::{ReconcileKey, Reconciler};
pub use subscriptions::Subscriptions;
