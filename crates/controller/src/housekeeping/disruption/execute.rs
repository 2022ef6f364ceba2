//! The controller of PodDisruptionBudgets: watches them and their Pods, and writes what was decided.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use kube::api::ApiResource;
use serde::Deserialize;
use serde_json::{Value, json};

use super::decide::{Decision, counts_by_owner, decide};
use super::view::{Budget, Pod};
use crate::discovery::Served;
use crate::manager::Setup;
use crate::{Cache, Context, Controller, Error, Kind, Next, ObjectKey, Objects, Reconcile, Result, Target};

const BUDGETS: Kind =
    Kind { group: "policy", version: "v1", kind: "PodDisruptionBudget", plural: "poddisruptionbudgets" };
const PODS: Kind = Kind { group: "", version: "v1", kind: "Pod", plural: "pods" };

/// The controller.
pub(in super::super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = ObjectKey> + use<>> {
    let client = &setup.client;
    let (budgets, pods) = (Cache::<Budget>::default(), Cache::<Pod>::default());
    let of_pods = budgets.clone();
    let reconciler = Disruptions { client: client.clone(), budgets: budgets.clone(), pods: pods.clone() };
    Controller::new("disruption-controller", reconciler)
        .watch_into(&budgets, &setup.watches, Target::all(BUDGETS), |change| [change.key.clone()])
        .watch_into(&pods, &setup.watches, Target::all(PODS), move |change| {
            if change.before == Some(change.object) && !change.is_gone {
                return Vec::new();
            }
            let states = || change.before.into_iter().chain([change.object]);
            let budgets = of_pods.within(&change.key.namespace).into_iter();
            let fitting = budgets.filter(|(_, budget)| states().any(|pod| budget.fits(&pod.metadata.labels)));
            fitting.map(|(name, _)| ObjectKey::new(&change.key.namespace, name)).collect()
        })
}

struct Disruptions {
    client: Client,
    budgets: Cache<Budget>,
    pods: Cache<Pod>,
}

impl Reconcile for Disruptions {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Next> {
        let Some(budget) = self.budgets.get(key) else { return Ok(Next::Done) };
        let pods = self.pods.within(&key.namespace);
        let pods: Vec<&Pod> =
            pods.iter().map(|(_, pod)| &**pod).filter(|pod| budget.fits(&pod.metadata.labels)).collect();
        let scale = match counts_by_owner(&budget) {
            true => self.scale(key, &pods).await,
            false => Ok(0),
        };
        let now = Timestamp::now();
        let Decision { status, again } =
            decide(&budget, &pods, scale.map_err(|error| error.to_string()), now);
        if let Some(status) = status {
            let objects = Objects::new(&self.client, &BUDGETS.resource(), key.namespace());
            let Some(mut object) = objects.get::<Value>(&key.name).await? else { return Ok(Next::Done) };
            if object["metadata"]["resourceVersion"] != *budget.metadata.resource_version {
                // What was decided about one state is not done to another; the change is on its way here.
                return Err(Error::other("the budget has changed meanwhile"));
            }
            object["status"] = json!(status);
            objects.replace_part::<Value>("status", &key.name, &object).await?;
        }
        let wait = again.and_then(|again| again.duration_since(now).try_into().ok());
        Ok(wait.map_or(Next::Done, Next::After))
    }
}

impl Disruptions {
    /// How many Pods the owners of these Pods want together.
    async fn scale(&self, key: &ObjectKey, pods: &[&Pod]) -> Result<i32> {
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

    /// The uid of who decides how many Pods there are, and how many they are: the owner, or the Deployment behind it.
    async fn scale_of(&self, namespace: &str, owner: &OwnerReference) -> Result<Option<(String, i32)>> {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let version = "v1";
        let known = match (group, owner.kind.as_str()) {
            ("", "ReplicationController") => "replicationcontrollers",
            ("apps" | "extensions", "ReplicaSet") => "replicasets",
            ("apps", "StatefulSet") => "statefulsets",
            _ => return self.subresource(namespace, owner).await,
        };
        let group = if group.is_empty() { "" } else { "apps" };
        let owned = self.workload(namespace, (group, version, known), owner).await?;
        let Some(workload) = owned else { return Ok(None) };
        match workload.deployment() {
            Some(deployment) => {
                let deployment =
                    self.workload(namespace, (group, version, "deployments"), deployment).await?;
                Ok(deployment.map(Workload::scale))
            }
            None => Ok(Some(workload.scale())),
        }
    }

    /// The object that a reference means, if it is still the same.
    async fn workload(
        &self,
        namespace: &str,
        (group, version, plural): (&str, &str, &str),
        owner: &OwnerReference,
    ) -> Result<Option<Workload>> {
        let resource = resource(group, version, &owner.kind, plural);
        let objects = Objects::new(&self.client, &resource, Some(namespace));
        let found = objects.get::<Workload>(&owner.name).await?;
        Ok(found.filter(|workload| workload.metadata.uid == owner.uid))
    }

    /// The scale of an object of any type that has one.
    async fn subresource(&self, namespace: &str, owner: &OwnerReference) -> Result<Option<(String, i32)>> {
        let served = Served::ask(&self.client).await?;
        let Some(of) = served.kind(&owner.api_version, &owner.kind) else {
            let (kind, version) = (&owner.kind, &owner.api_version);
            return Err(Error::other(format!("no matches for kind {kind:?} in version {version:?}")));
        };
        let ApiResource { group, plural, .. } = &of.resource;
        if !of.has_scale {
            let name = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
            return Err(Error::other(format!("{name} does not implement the scale subresource")));
        }
        let scale: Option<Workload> =
            Objects::new(&self.client, &of.resource, Some(namespace)).get_part("scale", &owner.name).await?;
        Ok(scale.filter(|scale| scale.metadata.uid == owner.uid).map(Workload::scale))
    }
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&kube::api::GroupVersionKind::gvk(group, version, kind), plural)
}

/// What is read of something that has a scale, or of its scale.
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
