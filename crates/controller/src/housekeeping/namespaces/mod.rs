//! Ends namespaces: empties those whose deletion has begun, then takes away the finalizer that holds them.
//!
//! Pods go first, everything else when they are gone. While something is left that others have to end, the types of it are
//! watched in the namespace, so that the end of the last object is the end of the namespace.

mod decide;
mod execute;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use self::decide::{Condition, Findings, Step, conditions};
use self::execute::{Doorbell, Emptying};
use crate::manager::Setup;
use crate::{Context, Controller, Error, Kind, Next, Objects, Reconcile, Result, Target, Watches};

const NAMESPACES: Kind = Kind { group: "", version: "v1", kind: "Namespace", plural: "namespaces" };
/// The finalizer that stands for "its content is not gone yet".
const FINALIZER: &str = "kubernetes";
/// Namespaces that are emptied side by side.
const WORKERS: usize = 4;

/// What is read of a namespace to know whether it is to end.
#[derive(Deserialize)]
struct Seen {
    metadata: SeenMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeenMetadata {
    #[serde(default)]
    deletion_timestamp: Option<Timestamp>,
}

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = String> + use<>> {
    Controller::new(
        "namespace-controller",
        Namespaces { client: setup.client.clone(), watches: setup.watches.clone() },
    )
    .watch::<Seen, _>(&setup.watches, Target::all(NAMESPACES).metadata(), |change| {
        let is_ending = change.object.metadata.deletion_timestamp.is_some();
        (is_ending || change.is_gone).then(|| change.key.name.clone())
    })
    .workers(WORKERS)
}

struct Namespaces {
    client: Client,
    watches: Watches,
}

impl Reconcile for Namespaces {
    type Key = String;

    async fn reconcile(&self, name: &String, context: &Context<String>) -> Result<Next> {
        let objects = Objects::new(&self.client, &NAMESPACES.resource(), None);
        let namespace: Option<Value> = objects.get(name).await?;
        let Some((mut namespace, since)) = namespace.and_then(|namespace| is_to_end(namespace, name)) else {
            context.sources.retain(|watch| !watch.starts_with(&watches_of(name)));
            return Ok(Next::Done);
        };
        if namespace["status"]["phase"] != "Terminating" {
            namespace["status"]["phase"] = "Terminating".into();
            namespace = objects.replace_part("status", name, &namespace).await?;
        }
        let now = Timestamp::now();
        let findings = Emptying { client: &self.client, namespace: name, since, now }.pass().await?;
        self.watch_what_is_left(name, &findings, context);

        let old: Vec<Condition> =
            serde_json::from_value(namespace["status"]["conditions"].clone()).unwrap_or_default();
        if let Some(conditions) = conditions(&old, &findings, &seconds(now)) {
            namespace["status"]["conditions"] = json!(conditions);
            namespace = objects.replace_part("status", name, &namespace).await?;
        }
        match findings.step() {
            Step::Wait(delay) => Ok(Next::After(delay)),
            Step::Retry(reason) => Err(Error::other(reason)),
            Step::LetGo => {
                if let Some(finalizers) = namespace["spec"]["finalizers"].as_array_mut() {
                    finalizers.retain(|finalizer| finalizer != FINALIZER);
                }
                objects.replace_part::<Value>("finalize", name, &namespace).await?;
                Ok(Next::Done)
            }
        }
    }
}

impl Namespaces {
    /// Rings when something changes of the types that are left.
    fn watch_what_is_left(&self, namespace: &str, findings: &Findings, context: &Context<String>) {
        let left = findings.outcomes.iter().filter(|outcome| outcome.found.count > 0);
        for outcome in left {
            let target = Target::all(outcome.resource.clone()).within(namespace).metadata();
            let bell = Doorbell::new(context.queue.clone(), namespace);
            let name = format!("{}{target}", watches_of(namespace));
            context.sources.start(name, &self.watches, target, bell);
        }
    }
}

/// A namespace that is being deleted and held by finalizers of its own, and since when.
fn is_to_end(namespace: Value, name: &str) -> Option<(Value, Timestamp)> {
    let since = namespace["metadata"]["deletionTimestamp"].as_str()?.parse().ok()?;
    let is_held = namespace["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    tracing::debug!(namespace = name, is_held, "a namespace is to end");
    is_held.then_some((namespace, since))
}

/// How the names of the watches of a namespace begin.
fn watches_of(namespace: &str) -> String {
    format!("{namespace} ")
}

/// A time as Kubernetes has it: without fractions.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
