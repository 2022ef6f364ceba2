//! The disruption controller: watches PodDisruptionBudgets and their Pods, and writes the status of the budgets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use controller::discovery::Resolver;
use controller::{
    Cache, Context, Controller, Error, ListWatch, ObjectKey, Objects, Outcome, ReconcileKey, Reconciler,
    ResourceKind, Result,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use kube::api::{ApiResource, GroupVersionKind};
use serde::Deserialize;
use serde_json::{Value, json};

use super::decide::{Decision, counts_by_owner, decide};
use super::view::{Budget, Pod};
use crate::Setup;
use crate::views::wait_until;

const BUDGETS: ResourceKind = ResourceKind {
    group: "policy",
    version: "v1",
    kind: "PodDisruptionBudget",
    plural: "poddisruptionbudgets",
};
const PODS: ResourceKind = ResourceKind { group: "", version: "v1", kind: "Pod", plural: "pods" };

/// The controller.
pub(crate) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = ObjectKey> + use<>> {
    let client = &setup.client;
    let (budgets, pods) = (Cache::<Budget>::default(), Cache::<Pod>::default());
    let of_pods = budgets.clone();
    let reconciler = Disruptions {
        client: client.clone(),
        resolver: Resolver::new(client.clone()),
        budgets: budgets.clone(),
        pods: pods.clone(),
    };
    Controller::new("disruption-controller", reconciler)
        .watch_into(&budgets, &setup.informers, ListWatch::all(BUDGETS), |delta| [delta.key.clone()])
        .watch_into(&pods, &setup.informers, ListWatch::all(PODS), move |delta| {
            if delta.old == Some(delta.object) && !delta.is_deleted {
                return Vec::new();
            }
            let states = || delta.old.into_iter().chain([delta.object]);
            let budgets = of_pods.within(&delta.key.namespace).into_iter();
            let fitting = budgets.filter(|(_, budget)| states().any(|pod| budget.fits(&pod.metadata.labels)));
            fitting.map(|(name, _)| ObjectKey::new(&delta.key.namespace, name)).collect()
        })
}

struct Disruptions {
    client: Client,
    /// Resolves owners that are not built-in workloads.
    resolver: Resolver,
    budgets: Cache<Budget>,
    pods: Cache<Pod>,
}

/// A budget, the Pods that it selects, and the total scale of their owners if it is needed.
struct Observed {
    budget: Arc<Budget>,
    pods: Vec<Arc<Pod>>,
    scale: Result<i32>,
}

impl Reconciler for Disruptions {
    type Key = ObjectKey;
    type Observed = Observed;
    type Step = Decision;

    async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<Observed>> {
        let Some(budget) = self.budgets.get(key) else { return Ok(None) };
        let pods = self.pods.within(&key.namespace).into_iter().map(|(_, pod)| pod);
        let pods: Vec<_> = pods.filter(|pod| budget.fits(&pod.metadata.labels)).collect();
        let scale = match counts_by_owner(&budget) {
            true => self.scale(key, &pods).await,
            false => Ok(0),
        };
        Ok(Some(Observed { budget, pods, scale }))
    }

    fn decide(Observed { budget, pods, scale }: &Observed, now: Timestamp) -> Decision {
        let pods: Vec<&Pod> = pods.iter().map(|pod| &**pod).collect();
        decide(budget, &pods, scale.as_ref().copied().map_err(ToString::to_string), now)
    }

    async fn execute(
        &self,
        key: &ObjectKey,
        Observed { budget, .. }: Observed,
        Decision { status, again }: Decision,
        _: &Context<ObjectKey>,
    ) -> Result<Outcome> {
        if let Some(status) = status {
            let objects = Objects::new(&self.client, &BUDGETS.resource(), key.namespace());
            let Some(mut object) = objects.get::<Value>(&key.name).await? else { return Ok(Outcome::Done) };
            if object["metadata"]["resourceVersion"] != *budget.metadata.resource_version {
                // The decision was about another version, whose event will add the key again.
                return Err(Error::other("the PodDisruptionBudget changed since it was read"));
            }
            object["status"] = json!(status);
            objects.replace_subresource::<Value>("status", &key.name, &object).await?;
        }
        let wait = again.map(|again| wait_until(again, Timestamp::now()).unwrap_or_default());
        Ok(wait.map_or(Outcome::Done, Outcome::RequeueAfter))
    }
}

impl Disruptions {
    /// The total scale of the owners of these Pods.
    async fn scale(&self, key: &ObjectKey, pods: &[Arc<Pod>]) -> Result<i32> {
        let mut scales: BTreeMap<String, i32> = BTreeMap::new();
        let mut asked = BTreeSet::new();
        for pod in pods {
            let Some(owner) = pod.owner().filter(|owner| asked.insert(owner.uid.clone())) else { continue };
            let found = self.scale_of(&key.namespace, owner).await?;
            let unknown = || Error::other(format!("found no controllers for pod {:?}", pod.metadata.name));
            let (uid, scale) = found.ok_or_else(unknown)?;
            scales.insert(uid, scale);
        }
        Ok(scales.values().fold(0, |sum, scale| sum.saturating_add(*scale)))
    }

    /// The uid and the scale of the controller of a Pod: its owner, or the Deployment that owns the ReplicaSet.
    async fn scale_of(&self, namespace: &str, owner: &OwnerReference) -> Result<Option<(String, i32)>> {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let known = match (group, owner.kind.as_str()) {
            ("", "ReplicationController") => "replicationcontrollers",
            ("apps" | "extensions", "ReplicaSet") => "replicasets",
            ("apps", "StatefulSet") => "statefulsets",
            _ => return self.subresource(namespace, owner).await,
        };
        let group = if group.is_empty() { "" } else { "apps" };
        let owned = self.workload(namespace, group, known, owner).await?;
        let Some(workload) = owned else { return Ok(None) };
        match workload.deployment() {
            Some(deployment) => {
                let deployment = self.workload(namespace, group, "deployments", deployment).await?;
                Ok(deployment.map(Workload::scale))
            }
            None => Ok(Some(workload.scale())),
        }
    }

    /// The object of an owner reference, if its uid still matches.
    async fn workload(
        &self,
        namespace: &str,
        group: &str,
        plural: &str,
        owner: &OwnerReference,
    ) -> Result<Option<Workload>> {
        let resource = resource(group, "v1", &owner.kind, plural);
        let objects = Objects::new(&self.client, &resource, Some(namespace));
        let found = objects.get::<Workload>(&owner.name).await?;
        Ok(found.filter(|workload| workload.metadata.uid == owner.uid))
    }

    /// The scale of an object of any type with a scale subresource.
    async fn subresource(&self, namespace: &str, owner: &OwnerReference) -> Result<Option<(String, i32)>> {
        let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
        let of = self.resolver.kind(&GroupVersionKind::gvk(group, version, &owner.kind)).await?;
        let ApiResource { group, plural, .. } = &of.resource;
        if !of.has_scale {
            // The resource may get one later: the next lookup must not be cached.
            self.resolver.invalidate();
            let name = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
            return Err(Error::other(format!("{name} does not implement the scale subresource")));
        }
        let objects = Objects::new(&self.client, &of.resource, Some(namespace));
        let scale: Option<Workload> = objects.get_subresource("scale", &owner.name).await?;
        if scale.is_none() {
            self.resolver.invalidate();
        }
        Ok(scale.filter(|scale| scale.metadata.uid == owner.uid).map(Workload::scale))
    }
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&kube::api::GroupVersionKind::gvk(group, version, kind), plural)
}

/// The fields of a workload, or of a Scale, that this controller reads.
#[derive(Deserialize)]
struct Workload {
    metadata: WorkloadMetadata,
    #[serde(default)]
    spec: WorkloadSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadMetadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
}

#[derive(Default, Deserialize)]
struct WorkloadSpec {
    #[serde(default)]
    replicas: i32,
}

impl Workload {
    fn scale(self) -> (String, i32) {
        (self.metadata.uid, self.spec.replicas)
    }

    fn deployment(&self) -> Option<&OwnerReference> {
        let mut owners = self.metadata.owner_references.iter();
        owners.find(|owner| owner.controller == Some(true) && owner.kind == "Deployment")
    }
}
