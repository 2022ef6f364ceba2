//! The serviceaccount-token controller: writes tokens into Secrets of type `kubernetes.io/service-account-token`, and deletes those whose
//! ServiceAccount is gone.

mod decide;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use controller::{
    Cache, Context, Controller, Delta, DeltaHandler, Error, ListWatch, ObjectKey, Objects, Outcome,
    ReconcileKey, Reconciler, ResourceKind, Result,
};
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) use self::decide::account;
use self::decide::{Missing, NAME, Secret, TokenSecretStep, UID, decide};
use crate::kinds::{SECRETS, SERVICE_ACCOUNTS};
use crate::views::{Existence, MetadataOnly};
use crate::{Settings, Setup};

/// The issuer of legacy tokens.
const ISSUER: &str = "kubernetes/serviceaccount";

/// The cached fields of a Secret: its ServiceAccount.
#[derive(Deserialize)]
#[serde(from = "MetadataOnly")]
struct Holder {
    account: String,
}

impl From<MetadataOnly> for Holder {
    fn from(secret: MetadataOnly) -> Self {
        Self { account: account(&secret.metadata).map(|(name, _)| name.to_owned()).unwrap_or_default() }
    }
}

/// A key of the work queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// A token Secret.
    Secret(ObjectKey),
    /// A ServiceAccount that may still refer to a deleted Secret.
    Naming { account: ObjectKey, secret: String },
}

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl ReconcileKey + use<>> {
    // No service account has these rights: this controller creates the credentials of service accounts.
    let (client, holders) = (&setup.manager, Cache::<Holder>::default());
    let tokens = Tokens {
        client: client.clone(),
        ca: STANDARD.encode(&setup.settings.root_ca).into(),
        settings: Arc::clone(&setup.settings),
    };
    let secrets = ListWatch::all(SECRETS).fields("type=kubernetes.io/service-account-token").metadata_only();
    let controller = Controller::new("serviceaccount-token-controller", tokens).watch_into(
        &holders,
        &setup.informers,
        secrets,
        |delta| {
            let Delta { key, object, is_deleted, .. } = delta;
            if object.account.is_empty() {
                return None;
            }
            let account = || ObjectKey::new(&key.namespace, &object.account);
            Some(if *is_deleted {
                Key::Naming { account: account(), secret: key.name.clone() }
            } else {
                Key::Secret((*key).clone())
            })
        },
    );
    let (queue, again, all) = (controller.context().queue, controller.context().queue, holders.clone());
    let each = move |delta: &Delta<'_, Existence>| {
        let of_account = holders.within(&delta.key.namespace).into_iter();
        let of_account =
            of_account.filter(|(_, holder)| delta.is_deleted && holder.account == delta.key.name);
        for (name, _) in of_account {
            queue.add(Key::Secret(ObjectKey::new(&delta.key.namespace, name)));
        }
    };
    let synced = move || all.all().into_iter().for_each(|(key, _)| again.add(Key::Secret(key)));
    let accounts = DeltaHandler::<Existence, _, _>::new(each, synced);
    controller.handle(&setup.informers, ListWatch::all(SERVICE_ACCOUNTS).metadata_only(), accounts)
}

struct Tokens {
    client: Client,
    /// The CA certificates of the server in base64.
    ca: Arc<str>,
    settings: Arc<Settings>,
}

enum Observed {
    /// A Secret with the uid of its ServiceAccount, if that exists.
    Secret { object: Value, secret: Box<Secret>, uid: Option<String>, ca: Arc<str> },
    /// A ServiceAccount, and the name of a deleted Secret.
    Naming { account: Value, secret: String },
}

#[derive(Debug)]
enum TokenStep {
    Secret(TokenSecretStep),
    /// Update the ServiceAccount, or do nothing.
    Account(Option<Value>),
}

impl Reconciler for Tokens {
    type Key = Key;
    type Observed = Observed;
    type Step = TokenStep;

    async fn observe(&self, key: &Key, _: &Context<Key>) -> Result<Option<Observed>> {
        match key {
            Key::Secret(key) => self.observe_secret(key).await,
            Key::Naming { account, secret } => {
                let secrets = self.objects(&SECRETS, account);
                if secrets.get_metadata::<Existence>(secret).await?.is_some() {
                    return Ok(None);
                }
                let found = self.objects(&SERVICE_ACCOUNTS, account).get(&account.name).await?;
                Ok(found.map(|account| Observed::Naming { account, secret: secret.clone() }))
            }
        }
    }

    fn decide(observed: &Observed, _: Timestamp) -> TokenStep {
        match observed {
            Observed::Secret { secret, uid, ca, .. } => TokenStep::Secret(decide(secret, uid.as_deref(), ca)),
            Observed::Naming { account, secret } => TokenStep::Account(without(account, secret)),
        }
    }

    async fn execute(
        &self,
        key: &Key,
        observed: Observed,
        step: TokenStep,
        _: &Context<Key>,
    ) -> Result<Outcome> {
        match (key, observed, step) {
            (Key::Secret(key), Observed::Secret { object, secret, uid, .. }, TokenStep::Secret(step)) => {
                let secrets = self.objects(&SECRETS, key);
                let done = match step {
                    TokenSecretStep::Nothing => Ok(()),
                    TokenSecretStep::Delete => {
                        secrets.delete(&key.name, &secret.metadata.deletion()).await.map(drop)
                    }
                    TokenSecretStep::Complete(missing) => {
                        let name = account(&secret.metadata).map(|(name, _)| name).unwrap_or_default();
                        let completed =
                            self.complete(object, missing, key, name, uid.as_deref().unwrap_or_default())?;
                        secrets.replace::<Value>(&key.name, &completed).await.map(drop)
                    }
                };
                match done {
                    Err(error) if error.is_conflict() || error.is_not_found() => {}
                    done => done?,
                }
            }
            (Key::Naming { account, .. }, _, TokenStep::Account(Some(object))) => {
                self.objects(&SERVICE_ACCOUNTS, account).replace::<Value>(&account.name, &object).await?;
            }
            _ => {}
        }
        Ok(Outcome::Done)
    }
}

/// A ServiceAccount without its reference to a Secret; `None` if it has none.
fn without(account: &Value, secret: &str) -> Option<Value> {
    let mut account = account.clone();
    let named = account["secrets"].as_array_mut()?;
    let before = named.len();
    named.retain(|reference| reference["name"] != secret);
    let is_changed = named.len() != before;
    is_changed.then_some(account)
}

impl Tokens {
    /// A client of the objects in the namespace of a key.
    fn objects(&self, kind: &ResourceKind, key: &ObjectKey) -> Objects {
        Objects::new(&self.client, &kind.resource(), key.namespace())
    }

    async fn observe_secret(&self, key: &ObjectKey) -> Result<Option<Observed>> {
        let Some(object) = self.objects(&SECRETS, key).get::<Value>(&key.name).await? else {
            return Ok(None);
        };
        let secret: Box<Secret> = serde_json::from_value(object.clone())?;
        let Some((name, _)) = account(&secret.metadata) else { return Ok(None) };
        let found: Option<MetadataOnly> = self.objects(&SERVICE_ACCOUNTS, key).get_metadata(name).await?;
        let (uid, ca) = (found.map(|account| account.metadata.uid), Arc::clone(&self.ca));
        Ok(Some(Observed::Secret { object, secret, uid, ca }))
    }

    fn complete(
        &self,
        mut secret: Value,
        missing: Missing,
        key: &ObjectKey,
        name: &str,
        uid: &str,
    ) -> Result<Value> {
        if missing.ca {
            secret["data"]["ca.crt"] = (*self.ca).into();
        }
        if missing.namespace {
            secret["data"]["namespace"] = STANDARD.encode(&key.namespace).into();
        }
        if missing.token {
            secret["data"]["token"] = STANDARD.encode(self.token(key, name, uid)?).into();
        }
        secret["metadata"]["annotations"][NAME] = name.into();
        secret["metadata"]["annotations"][UID] = uid.into();
        Ok(secret)
    }

    /// A token without expiry, which is valid as long as the Secret holds it.
    fn token(&self, key: &ObjectKey, name: &str, uid: &str) -> Result<String> {
        let Some(signing) = &self.settings.signing_key else {
            return Err(Error::other("no key to sign service account tokens is configured"));
        };
        let namespace = &key.namespace;
        let claims = json!({
            "iss": ISSUER,
            "kubernetes.io/serviceaccount/namespace": namespace,
            "kubernetes.io/serviceaccount/secret.name": key.name,
            "kubernetes.io/serviceaccount/service-account.name": name,
            "kubernetes.io/serviceaccount/service-account.uid": uid,
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
        });
        signing.token(&serde_json::to_vec(&claims)?).map_err(Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_reference_to_the_deleted_secret_is_removed() {
        let account = json!({"secrets": [{"name": "a"}, {"name": "b"}]});
        assert_eq!(without(&account, "a"), Some(json!({"secrets": [{"name": "b"}]})));
        assert_eq!(without(&account, "c"), None);
        assert_eq!(without(&json!({}), "a"), None);
    }
}
