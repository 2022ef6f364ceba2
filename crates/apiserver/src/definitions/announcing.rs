//! The APIServices of the groups that definitions bring, as Kubernetes' aggregator keeps them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::Method;
use model::Resource;
use model::error::Error;
use serde_json::{Value, json};
use store::{EventKind, Stored, Watch};

use crate::api::ApiServer;
use crate::bootstrap::ask;
use crate::informer::list_and_watch;
use crate::registry::Registry;
use crate::verbs::store_error;

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
/// The label of those that come and go with definitions.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// The priorities that Kubernetes gives them.
const PRIORITIES: (i64, i64) = (1000, 100);

/// How long to wait before they are read again that could not be followed.
const PAUSE: Duration = Duration::from_millis(500);

/// The versions that have one, by group. Whoever else does the same at the same time, on another server, does no harm.
#[derive(Default)]
pub(super) struct Announced {
    versions: BTreeMap<String, BTreeSet<String>>,
    /// What becomes of those that were read; `None` before they are.
    watch: Option<Watch>,
}

impl Announced {
    /// Makes those that are missing, and deletes those of versions that are gone.
    pub async fn follow(&mut self, api: &ApiServer, registry: &Registry) -> Result<(), Error> {
        if registry.find("apiregistration.k8s.io", "v1", "apiservices").is_none() {
            return Ok(());
        }
        if self.watch.is_none() {
            self.read(api).await?;
        }
        for (group, version) in self.missing(registry) {
            create(api, &group, &version).await?;
            self.versions.entry(group).or_default().insert(version);
        }
        for (group, version) in self.gone(registry) {
            delete(api, &group, &version).await?;
            if let Some(versions) = self.versions.get_mut(&group) {
                versions.remove(&version);
            }
        }
        Ok(())
    }

    /// Returns when somebody has deleted one that is still to be there.
    pub async fn lost(&mut self) {
        let Some(watch) = &mut self.watch else { return std::future::pending().await };
        loop {
            let Ok(events) = watch.next().await else {
                tokio::time::sleep(PAUSE).await;
                self.watch = None;
                return;
            };
            let deleted = events.iter().filter(|event| event.kind == EventKind::Deleted);
            let names = deleted.filter_map(|event| event.change.key.name.split_once('.'));
            let is_lost = |(version, group): (&str, &str)| {
                self.versions.get_mut(group).is_some_and(|versions| versions.remove(version))
            };
            if names.map(is_lost).fold(false, |one, other| one | other) {
                return;
            }
        }
    }

    async fn read(&mut self, api: &ApiServer) -> Result<(), Error> {
        let resource = Resource::new("apiregistration.k8s.io", "apiservices");
        self.versions.clear();
        let announce = |item: Stored| {
            let object: Value = serde_json::from_slice(&item.value).unwrap_or_default();
            let [group, version] = ["group", "version"].map(|key| object["spec"][key].as_str());
            if let (Some(group), Some(version), "true") =
                (group, version, object["metadata"]["labels"][MANAGED].as_str().unwrap_or_default())
            {
                self.versions.entry(group.to_owned()).or_default().insert(version.to_owned());
            }
        };
        let (_, watch) = list_and_watch(&api.store, &resource, announce).await.map_err(store_error)?;
        self.watch = Some(watch);
        Ok(())
    }

    fn missing(&self, registry: &Registry) -> BTreeSet<(String, String)> {
        let types = registry.all_definitions().flat_map(|definition| definition.types());
        let served = types.map(|of| (&of.group, &of.version));
        let is_known = |group: &String, version: &String| {
            self.versions.get(group).is_some_and(|versions| versions.contains(version))
        };
        let missing = served.filter(|(group, version)| !is_known(group, version));
        missing
            .filter(|(group, _)| !registry.has_group(group))
            .map(|(group, version)| (group.clone(), version.clone()))
            .collect()
    }

    fn gone(&self, registry: &Registry) -> Vec<(String, String)> {
        let known = self.versions.iter();
        let known = known.flat_map(|(group, versions)| versions.iter().map(move |version| (group, version)));
        let is_served = |group: &str, version: &str| {
            registry.definitions(group).any(|definition| definition.served(version).is_some())
        };
        known
            .filter(|(group, version)| !is_served(group, version))
            .map(|(group, version)| (group.clone(), version.clone()))
            .collect()
    }
}

async fn create(api: &ApiServer, group: &str, version: &str) -> Result<(), Error> {
    let (of_group, of_version) = PRIORITIES;
    let service = json!({
        "metadata": {"name": format!("{version}.{group}"), "labels": {MANAGED: "true"}},
        "spec": {"group": group, "version": version, "groupPriorityMinimum": of_group, "versionPriority": of_version},
    });
    match ask(api, Method::POST, SERVICES, service.to_string()).await? {
        201 | 409 => Ok(()),
        code => Err(Error::Internal { message: format!("{version}.{group}: {code}") }),
    }
}

async fn delete(api: &ApiServer, group: &str, version: &str) -> Result<(), Error> {
    let path = format!("{SERVICES}/{version}.{group}");
    match ask(api, Method::DELETE, &path, String::new()).await? {
        200 | 404 => Ok(()),
        code => Err(Error::Internal { message: format!("{path}: {code}") }),
    }
}
