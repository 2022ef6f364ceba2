//! The APIServices of CRD groups, as the autoregister controller of kube-aggregator maintains them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Method;
use model::Resource;
use model::error::Error;
use serde_json::{Value, json};
use store::{Event, EventKind, Store, Stored};
use tokio::sync::Notify;

use crate::api::ApiServer;
use crate::bootstrap::loopback;
use crate::informer::{Index, Informer, Informers};
use crate::registry::Registry;

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
/// The label of APIServices that this controller manages.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// The priorities of group and version.
const PRIORITIES: (i64, i64) = (1000, 100);

/// The versions that have an APIService, by group.
type GroupVersions = BTreeMap<String, BTreeSet<String>>;

/// The managed APIServices. Several servers may maintain them concurrently.
#[derive(Clone, Default)]
pub(super) struct ApiServices(Arc<ApiServicesState>);

#[derive(Default)]
struct ApiServicesState {
    versions: Mutex<GroupVersions>,
    lost: Notify,
}

impl ApiServices {
    /// Lists the APIServices, and returns the task that watches them.
    pub async fn start(
        &self,
        store: &Store,
        informers: &Informers,
    ) -> impl Future<Output = ()> + Send + use<> {
        let resource = Resource::new("apiregistration.k8s.io", "apiservices");
        Informer::new(resource, self.clone(), informers.register()).start_patiently(store).await
    }

    /// Creates missing APIServices, and deletes those of versions that are gone.
    pub async fn reconcile(&self, api: &ApiServer, registry: &Registry) -> Result<(), Error> {
        if registry.find("apiregistration.k8s.io", "v1", "apiservices").is_none() {
            return Ok(());
        }
        let missing = missing(&self.versions(), registry);
        for (group, version) in missing {
            create(api, &group, &version).await?;
            self.versions().entry(group).or_default().insert(version);
        }
        let gone = gone(&self.versions(), registry);
        for (group, version) in gone {
            delete(api, &group, &version).await?;
            remove(&mut self.versions(), &group, &version);
        }
        Ok(())
    }

    /// Returns when another client deleted an APIService, or after a relist.
    pub async fn changed(&self) {
        self.0.lost.notified().await;
    }

    fn versions(&self) -> MutexGuard<'_, GroupVersions> {
        self.0.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index for ApiServices {
    type Fresh = GroupVersions;

    fn gather(&self, fresh: &mut GroupVersions, object: Stored) {
        add(fresh, &object.value);
    }

    fn reset(&self, fresh: GroupVersions) {
        *self.versions() = fresh;
        self.0.lost.notify_one();
    }

    fn apply(&self, events: &[Event]) {
        let mut versions = self.versions();
        for Event { kind, change, .. } in events {
            if *kind != EventKind::Deleted {
                add(&mut versions, &change.value);
            } else if let Some((version, group)) = change.key.name.split_once('.')
                && remove(&mut versions, group, version)
            {
                self.0.lost.notify_one();
            }
        }
    }
}

fn add(versions: &mut GroupVersions, value: &[u8]) {
    let object: Value = serde_json::from_slice(value).unwrap_or_default();
    let [group, version] = ["group", "version"].map(|key| object["spec"][key].as_str());
    if let (Some(group), Some(version), Some("true")) =
        (group, version, object["metadata"]["labels"][MANAGED].as_str())
    {
        versions.entry(group.to_owned()).or_default().insert(version.to_owned());
    }
}

fn remove(versions: &mut GroupVersions, group: &str, version: &str) -> bool {
    versions.get_mut(group).is_some_and(|versions| versions.remove(version))
}

fn missing(apiservices: &GroupVersions, registry: &Registry) -> BTreeSet<(String, String)> {
    let types = registry.all_crds().flat_map(|crd| crd.types());
    let served = types.map(|of| (&of.group, &of.version));
    let is_known = |group: &String, version: &String| {
        apiservices.get(group).is_some_and(|versions| versions.contains(version))
    };
    let missing = served.filter(|(group, version)| !is_known(group, version));
    missing
        .filter(|(group, _)| !registry.has_group(group))
        .map(|(group, version)| (group.clone(), version.clone()))
        .collect()
}

fn gone(apiservices: &GroupVersions, registry: &Registry) -> Vec<(String, String)> {
    let known =
        apiservices.iter().flat_map(|(group, versions)| versions.iter().map(move |version| (group, version)));
    let is_served =
        |group: &str, version: &str| registry.crds(group).any(|crd| crd.served(version).is_some());
    known
        .filter(|(group, version)| !is_served(group, version))
        .map(|(group, version)| (group.clone(), version.clone()))
        .collect()
}

async fn create(api: &ApiServer, group: &str, version: &str) -> Result<(), Error> {
    let (of_group, of_version) = PRIORITIES;
    let service = json!({
        "metadata": {"name": format!("{version}.{group}"), "labels": {MANAGED: "true"}},
        "spec": {"group": group, "version": version, "groupPriorityMinimum": of_group, "versionPriority": of_version},
    });
    match loopback::request(api, Method::POST, SERVICES, service.to_string()).await? {
        201 | 409 => Ok(()),
        code => Err(Error::Internal { message: format!("{version}.{group}: {code}") }),
    }
}

async fn delete(api: &ApiServer, group: &str, version: &str) -> Result<(), Error> {
    let path = format!("{SERVICES}/{version}.{group}");
    match loopback::request(api, Method::DELETE, &path, String::new()).await? {
        200 | 404 => Ok(()),
        code => Err(Error::Internal { message: format!("{path}: {code}") }),
    }
}
