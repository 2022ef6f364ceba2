//! What makes a well-behaved client of a Kubernetes API that acts on what it sees.
//!
//! A controller is a [`Reconcile`] with watches. Watches name keys; each key is in the queue at most once and in one worker at a
//! time; a failure comes again, later and later; nothing polls. What is decided is a pure function of what was seen, so that it can be tested
//! as a table; what is done is the rest:
//!
//! ```no_run
//! use controller::{Context, Controller, Kind, Next, ObjectKey, Objects, Reconcile, Result, Target, Watches};
//! use serde::Deserialize;
//! use serde_json::{Value, json};
//!
//! const CONFIG_MAPS: Kind = Kind { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };
//!
//! /// What is read of a ConfigMap, and nothing else.
//! #[derive(Deserialize)]
//! struct Seen {
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
//! /// What is to be done about it.
//! enum Step {
//!     Nothing,
//!     Greet,
//! }
//!
//! fn decide(seen: &Seen) -> Step {
//!     if seen.data.contains_key("greeting") { Step::Nothing } else { Step::Greet }
//! }
//!
//! struct Greeter {
//!     client: kube::Client,
//! }
//!
//! impl Reconcile for Greeter {
//!     type Key = ObjectKey;
//!
//!     async fn reconcile(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Next> {
//!         let objects = Objects::new(&self.client, &CONFIG_MAPS.resource(), key.namespace());
//!         let Some(seen) = objects.get::<Seen>(&key.name).await? else { return Ok(Next::Done) };
//!         match decide(&seen) {
//!             Step::Nothing => {}
//!             Step::Greet => {
//!                 // A precondition: what was decided about one state is not done to another.
//!                 let version = seen.metadata.resource_version;
//!                 let patch = json!({"metadata": {"resourceVersion": version}, "data": {"greeting": "hello"}});
//!                 objects.merge::<Value>(&key.name, &patch).await?;
//!             }
//!         }
//!         Ok(Next::Done)
//!     }
//! }
//!
//! # async fn start(client: kube::Client, shutdown: process::Shutdown) {
//! Controller::new("greeter", Greeter { client: client.clone() })
//!     .watch::<Seen, _>(&Watches::new(client), Target::all(CONFIG_MAPS), |change| [change.key.clone()])
//!     .workers(2)
//!     .run(shutdown)
//!     .await;
//! # }
//! ```
//!
//! A decision that needs many objects takes them from a [`Cache`], which [`Controller::watch_into`] keeps. Watches that come and go
//! are started from the [`Context`]. Controllers that have the same [`Watches`] share the stream of a type. The client is any `kube::Client`: over the network, or of a server in the same process.

mod cache;
mod controller;
pub mod discovery;
mod error;
pub mod events;
pub mod housekeeping;
pub mod leader;
mod line;
pub mod manager;
mod metrics;
mod objects;
mod queue;
mod sources;
mod watch;
mod watches;

pub use cache::Cache;
pub use controller::{Context, Controller, Next, Reconcile, Run};
pub use error::{Error, Result};
pub use line::Line;
pub use metrics::{Counts, Metrics};
pub use objects::{Kind, Objects, Page, PageMetadata};
pub use queue::{Key, Queue};
pub use sources::{Change, Sources};
pub use watch::{Event, Listener, ObjectKey, Target};
pub use watches::Watches;
