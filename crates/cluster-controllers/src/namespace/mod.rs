//! The namespace controller: deletes the content of terminating namespaces, then removes their finalizer.
//!
//! Pods are deleted first, everything else when they are gone. While objects remain that other controllers must
//! finalize, their types are watched in the namespace, so that the deletion of the last object ends that of the
//! namespace.

mod decide;
mod execute;
#[cfg(test)]
mod tests;

use controller::{
    Context, Controller, Error, ListWatch, Objects, Outcome, ReconcileKey, Reconciler, ResourceKind, Result,
    SharedInformers,
};
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use self::decide::{Condition, DeletionStep, Findings, conditions};
use self::execute::{ContentDeletion, NamespaceHandler};
use crate::Setup;

const NAMESPACES: ResourceKind =
    ResourceKind { group: "", version: "v1", kind: "Namespace", plural: "namespaces" };
/// The finalizer of a namespace with content.
const FINALIZER: &str = "kubernetes";
/// The number of namespaces that are emptied concurrently.
const WORKERS: usize = 4;

/// The fields of a Namespace that tell whether it is being deleted.
#[derive(Deserialize)]
struct DeletionState {
    metadata: SeenMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeenMetadata {
    #[serde(default)]
    deletion_timestamp: Option<Timestamp>,
}

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = String> + use<>> {
    Controller::new(
        "namespace-controller",
        Namespaces { client: setup.client.clone(), informers: setup.informers.clone() },
    )
    .watch::<DeletionState, _>(&setup.informers, ListWatch::all(NAMESPACES).metadata_only(), |delta| {
        let is_ending = delta.object.metadata.deletion_timestamp.is_some();
        (is_ending || delta.is_deleted).then(|| delta.key.name.clone())
    })
    .workers(WORKERS)
}

struct Namespaces {
    client: Client,
    informers: SharedInformers,
}

/// The decision about a namespace.
#[derive(Debug, PartialEq, Eq)]
enum NamespaceStep {
    /// It is not being deleted, or does not exist: end its watches.
    Forget,
    /// Its deletion started at this time: delete its content.
    Empty(Timestamp),
}

impl Reconciler for Namespaces {
    type Key = String;
    type Observed = Option<Value>;
    type Step = NamespaceStep;

    async fn observe(&self, name: &String, _: &Context<String>) -> Result<Option<Option<Value>>> {
        self.objects().get(name).await.map(Some)
    }

    fn decide(namespace: &Option<Value>, _: Timestamp) -> NamespaceStep {
        match namespace.as_ref().and_then(terminating_since) {
            None => NamespaceStep::Forget,
            Some(since) => NamespaceStep::Empty(since),
        }
    }

    async fn execute(
        &self,
        name: &String,
        namespace: Option<Value>,
        step: NamespaceStep,
        context: &Context<String>,
    ) -> Result<Outcome> {
        match (step, namespace) {
            (NamespaceStep::Empty(since), Some(namespace)) => {
                self.empty(name, namespace, since, context).await
            }
            _ => {
                context.subscriptions.retain(|watch| !watch.starts_with(&watches_of(name)));
                Ok(Outcome::Done)
            }
        }
    }
}

impl Namespaces {
    fn objects(&self) -> Objects {
        Objects::new(&self.client, &NAMESPACES.resource(), None)
    }

    /// One pass over the content of a namespace, and the next step.
    async fn empty(
        &self,
        name: &str,
        mut namespace: Value,
        since: Timestamp,
        context: &Context<String>,
    ) -> Result<Outcome> {
        let objects = self.objects();
        if namespace["status"]["phase"] != "Terminating" {
            namespace["status"]["phase"] = "Terminating".into();
            namespace = objects.replace_subresource("status", name, &namespace).await?;
        }
        let now = Timestamp::now();
        let findings = ContentDeletion { client: &self.client, namespace: name, since, now }.pass().await?;
        self.watch_remaining(name, &findings, context);

        let old: Vec<Condition> =
            serde_json::from_value(namespace["status"]["conditions"].clone()).unwrap_or_default();
        if let Some(conditions) = conditions(&old, &findings, &seconds(now)) {
            namespace["status"]["conditions"] = json!(conditions);
            namespace = objects.replace_subresource("status", name, &namespace).await?;
        }
        match findings.step() {
            DeletionStep::Wait(delay) => Ok(Outcome::RequeueAfter(delay)),
            DeletionStep::Retry(reason) => Err(Error::other(reason)),
            DeletionStep::Finalize => {
                if let Some(finalizers) = namespace["spec"]["finalizers"].as_array_mut() {
                    finalizers.retain(|finalizer| finalizer != FINALIZER);
                }
                objects.replace_subresource::<Value>("finalize", name, &namespace).await?;
                Ok(Outcome::Done)
            }
        }
    }

    /// Watches the types with remaining objects.
    fn watch_remaining(&self, namespace: &str, findings: &Findings, context: &Context<String>) {
        let left = findings.sweeps.iter().filter(|sweep| sweep.found.count > 0);
        for sweep in left {
            let list_watch = ListWatch::all(sweep.resource.clone()).namespace(namespace).metadata_only();
            let handler = NamespaceHandler::new(context.queue.clone(), namespace);
            let name = format!("{}{list_watch}", watches_of(namespace));
            context.subscriptions.add(name, &self.informers, list_watch, handler);
        }
    }
}

/// The start of a namespace's deletion, if the finalizers of its spec block it.
fn terminating_since(namespace: &Value) -> Option<Timestamp> {
    let since = namespace["metadata"]["deletionTimestamp"].as_str()?.parse().ok()?;
    let is_held = namespace["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    is_held.then_some(since)
}

/// The prefix of the names of a namespace's watches.
fn watches_of(namespace: &str) -> String {
    format!("{namespace} ")
}

/// A time in Kubernetes' format, without fractions.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod decisions {
    use super::*;

    #[test]
    fn a_terminating_namespace_with_its_finalizer_is_emptied() {
        let namespace = |deleted: Option<&str>, finalizers: &[&str]| {
            Some(json!({"metadata": {"deletionTimestamp": deleted}, "spec": {"finalizers": finalizers}}))
        };
        let since = "2026-01-01T00:00:00Z";
        for (namespace, expected) in [
            (None, NamespaceStep::Forget),
            (namespace(None, &[FINALIZER]), NamespaceStep::Forget),
            (namespace(Some(since), &[]), NamespaceStep::Forget),
            (namespace(Some(since), &[FINALIZER]), NamespaceStep::Empty(since.parse().unwrap())),
        ] {
            assert_eq!(Namespaces::decide(&namespace, Timestamp::UNIX_EPOCH), expected, "{namespace:?}");
        }
    }
}
