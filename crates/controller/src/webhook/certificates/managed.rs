//! A certificate that the replicas of a webhook server create, share in a Secret and rotate.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use kube::Client;
use process::Shutdown;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use tasks::TaskFailure;

use super::ServedCertificate;
use super::ca_bundle::{CaBundle, CaTarget};
use super::material::{Lifetimes, Material, Missing, Step};
use crate::{
    Context, Controller, Error, ListWatch, ObjectKey, Objects, Outcome, Reconciler, ResourceKind, Result,
    SharedInformers, WorkQueue,
};

const SECRETS: ResourceKind = ResourceKind { group: "", version: "v1", kind: "Secret", plural: "secrets" };
/// The longest time between two looks at a certificate, because a process may sleep.
const LOOK_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// A certificate in a Secret, which all replicas of a webhook server share. Every replica may create and rotate it: writes have preconditions.
///
/// The client needs `get`, `list`, `watch`, `create` and `patch` of the Secret, and `get`, `list`, `watch` and `patch` of the targets of the CA
/// bundle.
pub struct ManagedCertificate {
    client: Client,
    secret: ObjectKey,
    names: Vec<String>,
    lifetimes: Lifetimes,
    targets: Vec<CaTarget>,
    served: ServedCertificate,
}

impl ManagedCertificate {
    /// A certificate in the Secret `secret` for a server with these DNS names and addresses, mostly `SERVICE.NAMESPACE.svc`.
    pub fn new(
        client: Client,
        namespace: impl Into<String>,
        secret: impl Into<String>,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            client,
            secret: ObjectKey::new(namespace, secret),
            names: names.into_iter().map(Into::into).collect(),
            lifetimes: Lifetimes::default(),
            targets: Vec::new(),
            served: ServedCertificate::default(),
        }
    }

    /// Sets other lifetimes.
    #[must_use]
    pub fn lifetimes(mut self, lifetimes: Lifetimes) -> Self {
        self.lifetimes = lifetimes;
        self
    }

    /// Writes the CA bundle into a webhook configuration or a CRD, where it calls one of the certificate's names, and writes it again
    /// after another client has changed it. Nothing else of the object is touched, and the object may be created later.
    #[must_use]
    pub fn inject_into(mut self, target: CaTarget) -> Self {
        self.targets.push(target);
        self
    }

    /// The certificate that is served, for a health check.
    #[must_use]
    pub fn served(&self) -> ServedCertificate {
        self.served.clone()
    }

    /// Creates, shares and rotates the certificate until a stop is requested.
    pub(super) async fn keep(self, shutdown: Shutdown) -> std::result::Result<(), TaskFailure> {
        let Self { client, secret, names, lifetimes, targets, served } = self;
        let informers = SharedInformers::new(client.clone());
        let shared = Arc::new(SharedSecret { client: client.clone(), key: secret.clone() });
        let bundle = CaBundle::controller(client, Arc::clone(&shared), names.clone(), &targets, &informers);
        let (bundle_queue, last) = (bundle.context().queue, Mutex::default());
        let rotation = Rotation { shared, names, lifetimes, served, targets, last, bundle: bundle_queue };
        let this = ListWatch::all(SECRETS)
            .namespace(&secret.namespace)
            .fields(format!("metadata.name={}", secret.name))
            .metadata_only();
        let rotation = Controller::new("webhook-certificate", rotation).watch::<IgnoredAny, _>(
            &informers,
            this,
            |delta| [delta.key.clone()],
        );
        // The Secret may not exist yet: no delta names it.
        rotation.context().queue.add(secret);
        tokio::select! {
            ((), ()) = async { tokio::join!(rotation.run(shutdown.clone()), bundle.run(shutdown)) } => Ok(()),
            // Without an informer a change would go unnoticed.
            failure = informers.failed() => Err(failure),
        }
    }
}

/// The Secret that all replicas share.
pub(super) struct SharedSecret {
    client: Client,
    key: ObjectKey,
}

#[derive(Deserialize)]
struct Secret {
    metadata: Metadata,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
}

impl SharedSecret {
    fn objects(&self) -> Objects {
        Objects::new(&self.client, &SECRETS.resource(), self.key.namespace())
    }

    /// The present certificates.
    pub(super) async fn material(&self) -> Result<Option<Material>> {
        let secret: Option<Secret> = self.objects().get(&self.key.name).await?;
        Ok(secret.and_then(|secret| Material::of_secret(&secret.data).ok()))
    }

    /// Creates the Secret, or writes it as it was read. A conflict means that another replica was faster.
    async fn write(&self, precondition: Option<&Metadata>, material: &Material) -> Result<()> {
        let (name, data) = (&self.key.name, material.to_secret());
        match precondition {
            None => {
                let secret = json!({"metadata": {"name": name}, "type": "Opaque", "data": data});
                self.objects().create::<IgnoredAny>(&secret).await?;
            }
            Some(Metadata { uid, resource_version }) => {
                let metadata = json!({"uid": uid, "resourceVersion": resource_version});
                let patch = json!({"metadata": metadata, "data": data});
                self.objects().merge_patch::<IgnoredAny>(name, &patch).await?;
            }
        }
        Ok(())
    }
}

/// Keeps the certificates in the Secret valid, and serves them.
struct Rotation {
    shared: Arc<SharedSecret>,
    names: Vec<String>,
    lifetimes: Lifetimes,
    served: ServedCertificate,
    targets: Vec<CaTarget>,
    /// The certificates that were served last: API servers trust them, so that a deleted Secret gets them again.
    last: Mutex<Option<Material>>,
    /// The targets of the CA bundle that have to be written.
    bundle: WorkQueue<CaTarget>,
}

impl Rotation {
    fn last(&self) -> MutexGuard<'_, Option<Material>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Secret as it was read, and the configuration that decides about it.
struct Observed {
    precondition: Option<Metadata>,
    material: Option<Material>,
    names: Vec<String>,
    lifetimes: Lifetimes,
}

impl Reconciler for Rotation {
    type Key = ObjectKey;
    type Observed = Observed;
    type Step = Step;

    async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<Observed>> {
        let secret: Option<Secret> = self.shared.objects().get(&key.name).await?;
        let (precondition, material) = match secret {
            None => (None, self.last().clone()),
            Some(Secret { metadata, data }) => match Material::of_secret(&data) {
                Ok(material) => (Some(metadata), Some(material)),
                Err(Missing::Unusable) => (Some(metadata), None),
                Err(Missing::Foreign) => {
                    let reason = format!(
                        "Secret {key} has a certificate of another program; give the webhook server a Secret of its own"
                    );
                    return Err(Error::other(reason));
                }
            },
        };
        let (names, lifetimes) = (self.names.clone(), self.lifetimes);
        Ok(Some(Observed { precondition, material, names, lifetimes }))
    }

    fn decide(observed: &Observed, now: Timestamp) -> Step {
        let Observed { precondition, material, names, lifetimes } = observed;
        match Material::decide(material.as_ref(), names, lifetimes, SystemTime::from(now)) {
            Step::Serve { .. } if precondition.is_none() => Step::Restore,
            step => step,
        }
    }

    async fn execute(
        &self,
        key: &ObjectKey,
        observed: Observed,
        step: Step,
        _: &Context<ObjectKey>,
    ) -> Result<Outcome> {
        let Observed { precondition, material, names, lifetimes } = observed;
        let now = SystemTime::now();
        match Material::after(material.as_ref(), &step, &names, &lifetimes, now).map_err(Error::other)? {
            Some(new) => {
                self.shared.write(precondition.as_ref(), &new).await?;
                tracing::info!(secret = %key, ?step, "wrote the certificates of the webhook server");
                // What is served comes from the Secret as it is stored.
                Ok(Outcome::RequeueAfter(Duration::ZERO))
            }
            None => {
                if let Some(material) = &material {
                    self.served.set(&material.serving).map_err(Error::other)?;
                    *self.last() = Some(material.clone());
                }
                self.targets.iter().for_each(|target| self.bundle.add(target.clone()));
                let until = match step {
                    Step::Serve { until } => until.duration_since(now).unwrap_or_default(),
                    Step::AddCa { .. } | Step::Issue | Step::Restore => Duration::ZERO,
                };
                Ok(Outcome::RequeueAfter(until.min(LOOK_INTERVAL)))
            }
        }
    }
}
