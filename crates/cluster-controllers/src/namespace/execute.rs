//! One pass over the content of a namespace.

use std::collections::HashSet;
use std::time::Duration;

use controller::discovery::{Discovery, ServedResource};
use controller::{EventHandler, Objects, ResourceKind, Result, WatchEvent, WorkQueue};
use futures::StreamExt;
use jiff::Timestamp;
use kube::Client;
use kube::api::{DeleteParams, ListParams, Preconditions};
use serde::Deserialize;

use super::decide::{Findings, LeftMetadata, RemainingObject, RemainingObjects, Sweep};
use crate::kinds::CRDS;
use crate::views::Existence;

const PODS: ResourceKind = ResourceKind { group: "", version: "v1", kind: "Pod", plural: "pods" };
const NODES: ResourceKind = ResourceKind { group: "", version: "v1", kind: "Node", plural: "nodes" };
/// The page size of lists.
const PAGE: u32 = 500;
/// The number of types that are deleted concurrently.
const CONCURRENT_TYPES: usize = 8;
/// Changes within this time trigger one pass.
const SETTLE: Duration = Duration::from_millis(50);

/// A pass over a namespace whose deletion started at `since`.
pub(super) struct ContentDeletion<'a> {
    pub(super) client: &'a Client,
    pub(super) namespace: &'a str,
    pub(super) since: Timestamp,
    pub(super) now: Timestamp,
}

#[derive(Debug, Deserialize)]
struct Pod {
    metadata: PodMetadata,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Deserialize)]
struct PodMetadata {
    name: String,
    uid: String,
    #[serde(flatten)]
    left: LeftMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: String,
    termination_grace_period_seconds: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: String,
}

impl ContentDeletion<'_> {
    /// Deletes all objects that can be deleted now, and returns those that remain.
    pub(super) async fn pass(&self) -> Result<Findings> {
        // A list of CRDs ensures that discovery has all of their types, even on a server that lags behind another one.
        let crds = Objects::new(self.client, &CRDS.resource(), None);
        crds.list_metadata::<Existence>(&ListParams::default()).await?;
        let served = Discovery::fetch(self.client).await?;
        let deletable = served.preferred().filter(|of| of.is_namespaced && of.supports(&["delete"]));
        let (pods, others): (Vec<_>, Vec<_>) = deletable.partition(|of| of.resource == PODS.resource());
        let mut findings = Findings { unknown: served.failures.clone(), ..Findings::default() };
        for pods in pods {
            let sweep = self.pods().await;
            findings.are_pods_left = sweep.as_ref().is_ok_and(|sweep| sweep.found.count > 0);
            let failed = |error: controller::Error| {
                let text = format!("failed to delete pods for namespace: {}, err: {error}", self.namespace);
                Sweep::failed(pods.resource.clone(), text)
            };
            findings.sweeps.push(sweep.unwrap_or_else(failed));
        }
        if !findings.are_pods_left {
            let work: Vec<_> = others.into_iter().map(|of| self.objects(of)).collect();
            let sweeps: Vec<_> = futures::stream::iter(work).buffered(CONCURRENT_TYPES).collect().await;
            findings.sweeps.extend(sweeps);
        }
        Ok(findings)
    }

    async fn objects(&self, of: &ServedResource) -> Sweep {
        let objects = Objects::new(self.client, &of.resource, Some(self.namespace));
        let found = match self.empty(&objects, of).await {
            Ok(found) => found,
            // A removed CRD deletes its objects; some types are listed but have no collection.
            Err(error) if error.is_not_found() || error.is_method_not_allowed() => {
                RemainingObjects::default()
            }
            Err(error) => return Sweep::failed(of.resource.clone(), error.to_string()),
        };
        Sweep::of(self.namespace, of.resource.clone(), found, 0)
    }

    async fn empty(&self, objects: &Objects, of: &ServedResource) -> Result<RemainingObjects> {
        if !of.supports(&["list"]) {
            delete_collection(objects).await?;
            return Ok(RemainingObjects::default());
        }
        let first = objects.list_metadata::<RemainingObject>(&ListParams::default().limit(PAGE)).await?;
        let is_ending = |left: &RemainingObject| left.metadata.deletion_timestamp.is_some();
        if first.items.is_empty() {
            return Ok(RemainingObjects::default());
        }
        if first.metadata.continue_token.is_empty() && first.items.iter().all(is_ending) {
            return Ok(count(first.items));
        }
        if of.supports(&["deletecollection"]) {
            delete_collection(objects).await?;
        } else {
            delete_each(objects).await?;
        }
        let mut found = RemainingObjects::default();
        let mut pages = objects.metadata_pages::<RemainingObject>(ListParams::default());
        while let Some(page) = pages.next().await? {
            page.iter().for_each(|left| found.add(&left.metadata.finalizers));
        }
        Ok(found)
    }

    /// Pods get their grace period, if they have a node that terminates them.
    async fn pods(&self) -> Result<Sweep> {
        let objects = Objects::new(self.client, &PODS.resource(), Some(self.namespace));
        let pods = objects.list::<Pod>(&ListParams::default()).await?.items;
        let running = pods.iter().filter(|pod| !matches!(&*pod.status.phase, "Succeeded" | "Failed"));
        let grace = running.map(|pod| pod.spec.termination_grace_period_seconds).max().unwrap_or(0);
        let estimate = if self.now.as_second() - self.since.as_second() >= grace { 0 } else { grace };
        let mut left = pods;
        if !left.is_empty() {
            if left.iter().any(|pod| pod.metadata.left.deletion_timestamp.is_none()) {
                delete_collection(&objects).await?;
                left = objects.list::<Pod>(&ListParams::default()).await?.items;
            }
            if self.end_without_node(&objects, &left).await? {
                left = objects.list::<Pod>(&ListParams::default()).await?.items;
            }
        }
        let mut found = RemainingObjects::default();
        left.iter().for_each(|pod| found.add(&pod.metadata.left.finalizers));
        Ok(Sweep::of(self.namespace, PODS.resource(), found, estimate))
    }

    /// Force-deletes Pods whose node does not exist: no kubelet would. Returns whether there were any.
    async fn end_without_node(&self, objects: &Objects, pods: &[Pod]) -> Result<bool> {
        let nodes = Objects::new(self.client, &NODES.resource(), None);
        let names: HashSet<&str> = pods.iter().map(|pod| &*pod.spec.node_name).collect();
        let mut missing = HashSet::new();
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            if nodes.get_metadata::<serde::de::IgnoredAny>(name).await?.is_none() {
                missing.insert(name);
            }
        }
        let lost = pods
            .iter()
            .filter(|pod| missing.contains(&*pod.spec.node_name) && pod.metadata.left.finalizers.is_empty());
        let mut has_ended_some = false;
        for pod in lost {
            let uid = Some(pod.metadata.uid.clone());
            let how = DeleteParams::default()
                .grace_period(0)
                .preconditions(Preconditions { uid, resource_version: None });
            has_ended_some |= objects.delete(&pod.metadata.name, &how).await?;
        }
        Ok(has_ended_some)
    }
}

fn count(items: Vec<RemainingObject>) -> RemainingObjects {
    let mut found = RemainingObjects::default();
    items.iter().for_each(|left| found.add(&left.metadata.finalizers));
    found
}

/// Deletes dependents in the background like all other objects: nothing waits for them.
async fn delete_collection(objects: &Objects) -> Result<()> {
    objects.delete_collection(&DeleteParams::background(), &ListParams::default()).await
}

#[derive(Deserialize)]
struct Named {
    metadata: Name,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

async fn delete_each(objects: &Objects) -> Result<()> {
    for object in objects.list_metadata::<Named>(&ListParams::default()).await?.items {
        objects.delete(&object.metadata.name, &DeleteParams::background()).await?;
    }
    Ok(())
}

/// The event handler that enqueues a namespace when a remaining object changes.
pub(super) struct NamespaceHandler {
    queue: WorkQueue<String>,
    namespace: String,
    is_live: bool,
}

impl NamespaceHandler {
    pub(super) fn new(queue: WorkQueue<String>, namespace: &str) -> Self {
        Self { queue, namespace: namespace.to_owned(), is_live: false }
    }
}

impl EventHandler for NamespaceHandler {
    fn handle(&mut self, event: WatchEvent<'_>) -> Result<()> {
        // A further pass covers changes between the list of objects and the start of this informer.
        self.is_live = match event {
            WatchEvent::Init => false,
            // A type that is not served has no remaining objects.
            WatchEvent::InitDone | WatchEvent::NotServed => true,
            WatchEvent::Apply(..) | WatchEvent::Delete(..) => self.is_live,
        };
        if self.is_live {
            self.queue.add_after(self.namespace.clone(), SETTLE);
        }
        Ok(())
    }
}
