//! A cache of clients by the Secrets that have their kubeconfigs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use serde::Deserialize;

use super::ClusterError;
use super::kubeconfig::{NotInline, client};
use crate::{EventHandler, ObjectKey, Objects, ResourceKind, WatchEvent};

const SECRETS: ResourceKind = ResourceKind { group: "", version: "v1", kind: "Secret", plural: "secrets" };
/// The field of a Secret with its kubeconfig, unless a reference names another one.
const FIELD: &str = "kubeconfig";

/// A kubeconfig in a Secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SecretReference {
    secret: ObjectKey,
    field: String,
    context: Option<String>,
}

impl SecretReference {
    /// The field `kubeconfig` of a Secret, with its current context.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { secret: ObjectKey::new(namespace, name), field: FIELD.to_owned(), context: None }
    }

    /// Another field, such as `value` of Cluster API.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = field.into();
        self
    }

    /// Another context than the current one.
    #[must_use]
    pub fn context(mut self, context: impl Into<String>) -> Self {
        self.context = Some(context.into());
        self
    }

    /// The namespace and name of the Secret.
    #[must_use]
    pub fn secret(&self) -> &ObjectKey {
        &self.secret
    }
}

impl fmt::Display for SecretReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.secret.fmt(f)
    }
}

/// Clients by the Secrets with their kubeconfigs. A client is made once for each version of a Secret (its uid and resourceVersion). Clones are
/// the same cache.
///
/// [`ClusterClients::load`] reads the Secret each time. A controller that [follows](ClusterClients::handler) Secrets takes clients by
/// [`ClusterClients::get`], without a request.
#[derive(Clone, Default)]
pub struct ClusterClients(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    secrets: HashMap<ObjectKey, Arc<Secret>>,
    clients: HashMap<SecretReference, Made>,
}

struct Made {
    version: Version,
    client: Client,
}

/// A Secret as it is stored. It has no `Debug`, so that no log shows it.
#[derive(Deserialize)]
struct Secret {
    metadata: Version,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    uid: String,
    resource_version: String,
}

impl fmt::Debug for ClusterClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.state().clients.keys().map(SecretReference::secret)).finish()
    }
}

impl ClusterClients {
    /// Reads a Secret, and returns the client of its kubeconfig: the same one as long as the Secret does not change.
    ///
    /// # Errors
    /// [`ClusterError`] when the Secret cannot be read, or its kubeconfig cannot be used.
    pub async fn load(&self, own: &Client, reference: &SecretReference) -> Result<Client, ClusterError> {
        let ObjectKey { namespace, name } = &reference.secret;
        let read = Objects::new(own, &SECRETS.resource(), Some(namespace)).get::<Secret>(name).await;
        let secret =
            read.map_err(|reason| ClusterError::Request { secret: reference.secret.clone(), reason })?;
        let secret = secret.ok_or_else(|| {
            self.state().clients.remove(reference);
            ClusterError::NoSecret(reference.secret.clone())
        })?;
        self.of(reference, &secret).await
    }

    /// The client of a Secret that a [handler](ClusterClients::handler) has received.
    ///
    /// # Errors
    /// [`ClusterError`] when there is no such Secret, or its kubeconfig cannot be used.
    pub async fn get(&self, reference: &SecretReference) -> Result<Client, ClusterError> {
        let secret = self.state().secrets.get(&reference.secret).cloned();
        let secret = secret.ok_or_else(|| ClusterError::NoSecret(reference.secret.clone()))?;
        self.of(reference, &secret).await
    }

    /// An event handler for an informer of Secrets: it keeps them, drops the clients of those that are deleted, and calls `changed` with each
    /// that was created, changed or deleted, so that a controller can reconcile what depends on it.
    #[must_use]
    pub fn handler<F>(&self, changed: F) -> impl EventHandler + use<F>
    where
        F: FnMut(&ObjectKey) + Send + 'static,
    {
        Follower { clients: self.clone(), changed: Box::new(changed), missing: None }
    }

    async fn of(&self, reference: &SecretReference, secret: &Secret) -> Result<Client, ClusterError> {
        if let Some(made) = self.state().clients.get(reference)
            && made.version == secret.metadata
        {
            return Ok(made.client.clone());
        }
        let made = secret.client(reference).await;
        let client =
            made.map_err(|reason| ClusterError::Secret { secret: reference.secret.clone(), reason })?;
        let made = Made { version: secret.metadata.clone(), client: client.clone() };
        self.state().clients.insert(reference.clone(), made);
        Ok(client)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Secret {
    async fn client(&self, reference: &SecretReference) -> Result<Client, NotInline> {
        let SecretReference { field, context, .. } = reference;
        let value = self.data.get(field).ok_or_else(|| NotInline::NoField(field.clone()))?;
        let bytes = STANDARD.decode(value).map_err(|_| NotInline::NoKubeconfig)?;
        let text = String::from_utf8(bytes).map_err(|_| NotInline::NoKubeconfig)?;
        client(&text, context.as_deref()).await
    }
}

/// Keeps the Secrets of an informer.
struct Follower {
    clients: ClusterClients,
    changed: Box<dyn FnMut(&ObjectKey) + Send>,
    /// The Secrets that a list has not mentioned yet.
    missing: Option<BTreeSet<ObjectKey>>,
}

impl Follower {
    fn remove(&mut self, key: &ObjectKey) {
        {
            let mut state = self.clients.state();
            state.secrets.remove(key);
            state.clients.retain(|reference, _| reference.secret != *key);
        }
        (self.changed)(key);
    }
}

impl EventHandler for Follower {
    fn handle(&mut self, event: WatchEvent<'_>) -> crate::Result<()> {
        match event {
            WatchEvent::NotServed => {}
            WatchEvent::Init => self.missing = Some(self.clients.state().secrets.keys().cloned().collect()),
            WatchEvent::InitDone => {
                for key in self.missing.take().unwrap_or_default() {
                    self.remove(&key);
                }
            }
            WatchEvent::Delete(key, _) => self.remove(key),
            WatchEvent::Apply(key, raw) => {
                if let Some(missing) = &mut self.missing {
                    missing.remove(key);
                }
                self.clients.state().secrets.insert(key.clone(), raw.view()?);
                (self.changed)(key);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBECONFIG: &str = "{current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}], \
         clusters: [{name: k, cluster: {server: 'https://192.0.2.1'}}], users: [{name: u, user: {token: s3cret}}]}";

    fn secret(version: &str, text: &str) -> Secret {
        let metadata = Version { uid: "u".to_owned(), resource_version: version.to_owned() };
        Secret { metadata, data: [(FIELD.to_owned(), STANDARD.encode(text))].into() }
    }

    #[tokio::test]
    async fn a_client_is_made_once_for_each_version_of_a_secret() {
        let (clients, reference) = (ClusterClients::default(), SecretReference::new("n", "s"));
        clients.of(&reference, &secret("1", KUBECONFIG)).await.unwrap();
        // Of the same version nothing is parsed again.
        clients.of(&reference, &secret("1", "no kubeconfig")).await.unwrap();
        let error = clients.of(&reference, &secret("2", "{s3cret")).await.err().unwrap();
        let expected = "the kubeconfig in Secret n/s cannot be used: it is no YAML of a kubeconfig";
        assert_eq!(error.to_string(), expected);
        assert!(!format!("{error:?} {clients:?}").contains("s3cret"));
        let other = reference.clone().field("value");
        let error = clients.of(&other, &secret("1", KUBECONFIG)).await.err().unwrap().to_string();
        assert!(error.ends_with("the Secret has no field \"value\""), "{error}");
        let other = reference.context("d");
        let error = clients.of(&other, &secret("1", KUBECONFIG)).await.err().unwrap().to_string();
        assert!(error.ends_with("it has no context \"d\""), "{error}");
    }
}
