//! CRD installation: applies CRDs, and waits until their kinds can be used.
//!
//! A CRD is usable when it is Established with its names accepted, and every served version is in discovery, in OpenAPI and can be listed. An
//! upgrade never loses objects: one that would drop a version in which objects may still be stored is an error, and the CRD stays as it was.
//! Any number of replicas may install the same CRDs at the same time.
//!
//! ```no_run
//! # async fn start(client: kube::Client, manifests: Vec<serde_json::Value>) -> Result<(), controller::crds::CrdError> {
//! controller::crds::CrdInstaller::new(client, "my-operator").install(&manifests).await?;
//! # Ok(()) }
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::ListParams;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{Apply, Error, FieldConflict, Objects, ResourceKind};

const CRDS: ResourceKind = ResourceKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};
/// The annotation with the [revision](CrdInstaller::revision) of the program that applied a CRD last.
pub const REVISION_ANNOTATION: &str = "crds.orlop.dev/revision";
/// The time until CRDs have to be usable, unless the caller sets another one.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The wait between two looks at a CRD, at first and at most. Discovery and OpenAPI have no watch.
const FIRST_DELAY: Duration = Duration::from_millis(20);
const LAST_DELAY: Duration = Duration::from_secs(1);
/// The CRDs that are installed at the same time.
const AT_ONCE: usize = 8;

/// A CRD that could not be installed.
#[derive(Debug, Error)]
pub enum CrdError {
    /// The manifest is no CRD of `apiextensions.k8s.io/v1`.
    #[error("a manifest is no CustomResourceDefinition of apiextensions.k8s.io/v1: {0}")]
    NoCrd(String),
    /// The manifest lacks versions in which objects may be stored. Nothing was changed.
    #[error(
        "CRD {crd} cannot be upgraded: objects may be stored in {}, which the new spec.versions lacks; keep the version with served: false, \
         migrate the objects, and remove the version from status.storedVersions first",
        versions.join(", ")
    )]
    StoredVersions {
        /// The name of the CRD.
        crd: String,
        /// The versions.
        versions: Vec<String>,
    },
    /// Other field managers own fields with other values. Nothing was changed. [`CrdInstaller::force`] takes them over.
    #[error("CRD {crd} has fields of other managers: {}", join(fields))]
    Conflict {
        /// The name of the CRD.
        crd: String,
        /// The fields.
        fields: Vec<FieldConflict>,
    },
    /// The server refuses the CRD.
    #[error("the server refuses CRD {crd}: {reason}")]
    Refused {
        /// The name of the CRD.
        crd: String,
        /// The server's error.
        reason: Error,
    },
    /// The CRD did not become usable in time.
    #[error("CRD {crd} is not usable after {timeout:?}: {state}")]
    Timeout {
        /// The name of the CRD.
        crd: String,
        /// The time that it had.
        timeout: Duration,
        /// The last obstacle.
        state: String,
    },
}

fn join(fields: &[FieldConflict]) -> String {
    fields.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Installs CRDs.
#[derive(Clone)]
pub struct CrdInstaller {
    client: Client,
    manager: String,
    is_forced: bool,
    revision: Option<u64>,
    timeout: Duration,
}

impl CrdInstaller {
    /// An installer whose applies have this field manager. It does not force, and waits for a minute.
    pub fn new(client: Client, manager: impl Into<String>) -> Self {
        Self { client, manager: manager.into(), is_forced: false, revision: None, timeout: TIMEOUT }
    }

    /// Takes over the fields that other managers own, such as those of an earlier installation by kubectl or Helm.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.is_forced = true;
        self
    }

    /// The revision of the CRDs, which grows with every change of them. A CRD that a later revision has applied is left as it is: an old
    /// replica that restarts during a rolling upgrade does not take fields away from objects.
    #[must_use]
    pub fn revision(mut self, revision: u64) -> Self {
        self.revision = Some(revision);
        self
    }

    /// The time until all CRDs have to be usable.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Creates or upgrades CRDs, and waits until all of them are usable.
    ///
    /// # Errors
    /// [`CrdError`] of the first CRD that cannot be installed. The other CRDs may have been installed.
    pub async fn install(&self, crds: &[impl Serialize]) -> Result<(), CrdError> {
        let manifests: Vec<Manifest> =
            crds.iter().map(|crd| Manifest::new(crd, self.revision)).collect::<Result<_, _>>()?;
        let end = Instant::now() + self.timeout;
        // Owned manifests: a closure over references would make the future of `install` unfit for a task.
        let installed = stream::iter(manifests).map(|crd| async move { self.install_one(&crd, end).await });
        installed.buffer_unordered(AT_ONCE).try_collect().await
    }

    async fn install_one(&self, crd: &Manifest, end: Instant) -> Result<(), CrdError> {
        let (mut is_applied, mut state) = (false, "the server does not answer".to_owned());
        let mut delay = FIRST_DELAY;
        loop {
            let look = async {
                if !is_applied {
                    self.apply(crd).await?;
                }
                Ok(self.obstacle(crd).await)
            };
            match timeout_at(end, look).await {
                Ok(Ok(None)) => {
                    tracing::debug!(crd = crd.name, "CRD is usable");
                    return Ok(());
                }
                Ok(Ok(Some(obstacle))) => {
                    is_applied = obstacle != GONE;
                    state = obstacle;
                }
                Ok(Err(Attempt::Failed(error))) => return Err(error),
                Ok(Err(Attempt::Retry(reason))) => state = reason,
                Err(_) => return Err(self.timed_out(crd, state)),
            }
            if Instant::now() + delay >= end {
                return Err(self.timed_out(crd, state));
            }
            sleep_until(Instant::now() + delay).await;
            delay = (delay * 2).min(LAST_DELAY);
        }
    }

    fn timed_out(&self, crd: &Manifest, state: String) -> CrdError {
        CrdError::Timeout { crd: crd.name.clone(), timeout: self.timeout, state }
    }

    /// Applies a CRD, unless that would lose objects or a later revision has done it.
    async fn apply(&self, crd: &Manifest) -> Result<(), Attempt> {
        let objects = Objects::new(&self.client, &CRDS.resource(), None);
        let name = &crd.name;
        let stored: Option<Crd> = objects.get(name).await.map_err(|error| Attempt::of(name, error))?;
        if let Some(stored) = &stored {
            if stored.metadata.deletion_timestamp.is_some() {
                return Err(Attempt::Retry("it is being deleted".to_owned()));
            }
            if stored.revision() > self.revision {
                tracing::info!(crd = name, "a later revision of the CRD is installed; leaving it as it is");
                return Ok(());
            }
            let dropped = stored.status.stored_versions.iter().filter(|version| !crd.has_version(version));
            let versions: Vec<String> = dropped.cloned().collect();
            if !versions.is_empty() {
                return Err(Attempt::Failed(CrdError::StoredVersions { crd: name.clone(), versions }));
            }
        }
        let mut how = Apply::new(&self.manager);
        if self.is_forced {
            how = how.force();
        }
        let applied = objects.apply::<IgnoredAny>(name, &how, &crd.manifest).await;
        applied.map(drop).map_err(|error| Attempt::of(name, error))
    }

    /// The first reason why a CRD is not usable yet.
    async fn obstacle(&self, crd: &Manifest) -> Option<String> {
        let stored = match Objects::new(&self.client, &CRDS.resource(), None).get::<Crd>(&crd.name).await {
            Ok(Some(stored)) => stored,
            Ok(None) => return Some(GONE.to_owned()),
            Err(error) => return Some(error.to_string()),
        };
        if let Some(obstacle) = stored.status.obstacle() {
            return Some(obstacle);
        }
        for version in crd.spec.versions.iter().filter(|version| version.served) {
            let path = format!("/apis/{}/{}", crd.spec.group, version.name);
            let obstacle = match self.discovery_obstacle(crd, &path).await {
                Some(obstacle) => Some(obstacle),
                None => self.list_obstacle(crd, version).await,
            };
            if let Some(obstacle) = obstacle {
                return Some(format!("version {}: {obstacle}", version.name));
            }
        }
        self.openapi_obstacle(crd).await
    }

    async fn discovery_obstacle(&self, crd: &Manifest, path: &str) -> Option<String> {
        match self.get::<ApiResources>(path).await {
            Ok(served) if served.has(&crd.spec.names) => None,
            Ok(_) => Some("discovery does not have the kind".to_owned()),
            Err(error) if error.is_not_found() => Some("discovery does not have the version".to_owned()),
            Err(error) => Some(format!("discovery fails: {error}")),
        }
    }

    /// A list that is refused, or needs a conversion webhook that does not run yet, has found the kind.
    async fn list_obstacle(&self, crd: &Manifest, version: &Version) -> Option<String> {
        let Spec { group, names, .. } = &crd.spec;
        let kind = kube::api::GroupVersionKind::gvk(group, &version.name, &names.kind);
        let resource = kube::api::ApiResource::from_gvk_with_plural(&kind, &names.plural);
        let objects = Objects::new(&self.client, &resource, None);
        match objects.list_metadata::<IgnoredAny>(&ListParams::default().limit(1)).await {
            Err(error) if [0, 404, 503].contains(&error.code()) => Some(format!("cannot list: {error}")),
            _ => None,
        }
    }

    async fn openapi_obstacle(&self, crd: &Manifest) -> Option<String> {
        let paths = match self.get::<OpenApi>("/openapi/v3").await {
            Ok(OpenApi { paths }) => paths,
            // The server has no OpenAPI, or does not show it to this user.
            Err(error) if [403, 404, 406].contains(&error.code()) => return None,
            Err(error) => return Some(format!("OpenAPI fails: {error}")),
        };
        let served = crd.spec.versions.iter().filter(|version| version.served);
        let mut missing =
            served.filter(|of| !paths.contains_key(&format!("apis/{}/{}", crd.spec.group, of.name)));
        missing.next().map(|version| format!("version {}: OpenAPI does not have it", version.name))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> crate::Result<T> {
        let request = http::Request::get(path).body(Vec::new()).map_err(Error::other)?;
        Ok(self.client.request(request).await?)
    }
}

/// The obstacle of a CRD that was deleted meanwhile: it has to be applied again.
const GONE: &str = "it was deleted";

/// The end of an attempt to apply.
enum Attempt {
    Failed(CrdError),
    /// The reason may go away.
    Retry(String),
}

impl Attempt {
    fn of(crd: &str, error: Error) -> Self {
        let crd = crd.to_owned();
        match error {
            Error::ApplyConflict { fields, .. } => Self::Failed(CrdError::Conflict { crd, fields }),
            error if [0, 409, 429].contains(&error.code()) || error.code() >= 500 => {
                Self::Retry(error.to_string())
            }
            reason => Self::Failed(CrdError::Refused { crd, reason }),
        }
    }
}

/// A CRD to install.
struct Manifest {
    name: String,
    spec: Spec,
    manifest: Value,
}

impl Manifest {
    fn new(crd: &impl Serialize, revision: Option<u64>) -> Result<Self, CrdError> {
        let bad = |error: &dyn std::fmt::Display| CrdError::NoCrd(error.to_string());
        let mut manifest = serde_json::to_value(crd).map_err(|error| bad(&error))?;
        let of = |name: &str| manifest[name].as_str().unwrap_or_default();
        if of("apiVersion") != "apiextensions.k8s.io/v1" || of("kind") != CRDS.kind {
            return Err(bad(&format!("it is {:?} of {:?}", of("kind"), of("apiVersion"))));
        }
        let Crd { metadata, spec, .. } = Crd::deserialize(&manifest).map_err(|error| bad(&error))?;
        // Generated manifests have these, but no apply may.
        if let Some(manifest) = manifest.as_object_mut() {
            manifest.remove("status");
        }
        if let Some(metadata) = manifest["metadata"].as_object_mut() {
            for field in ["creationTimestamp", "managedFields", "resourceVersion", "uid", "generation"] {
                metadata.remove(field);
            }
            if let Some(revision) = revision {
                let annotations = metadata.entry("annotations").or_insert_with(|| serde_json::json!({}));
                annotations[REVISION_ANNOTATION] = revision.to_string().into();
            }
        }
        Ok(Self { name: metadata.name, spec, manifest })
    }

    fn has_version(&self, name: &str) -> bool {
        self.spec.versions.iter().any(|version| version.name == name)
    }
}

/// The part of a CRD that matters here.
#[derive(Deserialize)]
struct Crd {
    metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

impl Crd {
    fn revision(&self) -> Option<u64> {
        self.metadata.annotations.get(REVISION_ANNOTATION)?.parse().ok()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    deletion_timestamp: Option<String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    names: Names,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Names {
    plural: String,
    kind: String,
}

#[derive(Deserialize)]
struct Version {
    name: String,
    #[serde(default)]
    served: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    conditions: Option<Vec<Condition>>,
    stored_versions: Vec<String>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    type_name: String,
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

impl Status {
    fn obstacle(&self) -> Option<String> {
        for wanted in ["NamesAccepted", "Established"] {
            match self.conditions.iter().flatten().find(|condition| condition.type_name == wanted) {
                Some(condition) if condition.status == "True" => {}
                Some(Condition { status, reason, message, .. }) => {
                    return Some(format!("{wanted} is {status} ({reason}: {message})"));
                }
                None => return Some(format!("it has no condition {wanted} yet")),
            }
        }
        None
    }
}

/// The discovery document of one group and version.
#[derive(Deserialize)]
struct ApiResources {
    #[serde(default)]
    resources: Vec<ApiResource>,
}

#[derive(Deserialize)]
struct ApiResource {
    name: String,
    #[serde(default)]
    kind: String,
}

impl ApiResources {
    fn has(&self, names: &Names) -> bool {
        self.resources.iter().any(|served| served.name == names.plural && served.kind == names.kind)
    }
}

#[derive(Deserialize)]
struct OpenApi {
    #[serde(default)]
    paths: BTreeMap<String, IgnoredAny>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_manifest_is_a_crd_without_what_no_apply_may_have() {
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "ships.sea.example.com", "creationTimestamp": null},
            "spec": {
                "group": "sea.example.com", "names": {"plural": "ships", "kind": "Ship"}, "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true, "storage": true}],
            },
            "status": {"storedVersions": ["v1"]},
        });
        let Manifest { name, manifest, .. } = Manifest::new(&crd, Some(7)).unwrap();
        assert_eq!(name, "ships.sea.example.com");
        assert_eq!(manifest["metadata"], json!({"name": name, "annotations": {REVISION_ANNOTATION: "7"}}));
        assert_eq!(manifest.get("status"), None);
        for (pointer, value) in [("/kind", "ConfigMap"), ("/apiVersion", "apiextensions.k8s.io/v1beta1")] {
            let mut other = crd.clone();
            *other.pointer_mut(pointer).unwrap() = value.into();
            let error = Manifest::new(&other, None).err().unwrap().to_string();
            assert!(error.contains(value), "{error}");
        }
    }

    #[test]
    fn a_condition_that_is_not_true_is_named_with_its_reason() {
        let status = |text: Value| serde_json::from_value::<Status>(text).unwrap().obstacle();
        let accepted = json!({"type": "NamesAccepted", "status": "True"});
        let refused = json!({
            "type": "NamesAccepted", "status": "False", "reason": "PluralConflict", "message": "taken",
        });
        assert_eq!(status(json!({})).unwrap(), "it has no condition NamesAccepted yet");
        assert_eq!(
            status(json!({"conditions": [refused]})).unwrap(),
            "NamesAccepted is False (PluralConflict: taken)"
        );
        assert_eq!(status(json!({"conditions": [accepted]})).unwrap(), "it has no condition Established yet");
        let established = json!({"type": "Established", "status": "True"});
        assert_eq!(status(json!({"conditions": [accepted, established]})), None);
    }
}
