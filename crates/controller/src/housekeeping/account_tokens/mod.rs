//! Makes tokens for the Secrets that are to hold one, and deletes Secrets whose account is gone.

mod decide;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) use self::decide::account;
use self::decide::{Missing, NAME, Secret, Step, UID, decide};
use super::following::Following;
use super::kinds::{SECRETS, SERVICE_ACCOUNTS};
use super::views::{Bare, There};
use crate::manager::{Settings, Setup};
use crate::{Cache, Change, Context, Controller, Error, Next, ObjectKey, Objects, Reconcile, Result, Target};

/// The issuer of tokens that are kept in Secrets.
const ISSUER: &str = "kubernetes/serviceaccount";

/// What is remembered of a Secret: whose token it holds.
#[derive(Deserialize)]
#[serde(from = "Bare")]
struct Holder {
    account: String,
}

impl From<Bare> for Holder {
    fn from(secret: Bare) -> Self {
        Self { account: account(&secret.metadata).map(|(name, _)| name.to_owned()).unwrap_or_default() }
    }
}

/// What is looked at as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// A Secret that is to hold a token.
    Secret(ObjectKey),
    /// An account that may still name a Secret that is gone.
    Naming { account: ObjectKey, secret: String },
}

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl Reconcile + use<>> {
    // No service account has these rights: it makes what service accounts show who they are with.
    let (client, holders) = (&setup.manager, Cache::<Holder>::default());
    let tokens = Tokens {
        client: client.clone(),
        authority: STANDARD.encode(&setup.settings.root_ca),
        settings: std::sync::Arc::clone(&setup.settings),
    };
    let secrets = Target::all(SECRETS).fields("type=kubernetes.io/service-account-token").metadata();
    let controller = Controller::new("serviceaccount-token-controller", tokens).watch_into(
        &holders,
        &setup.watches,
        secrets,
        |change| {
            let Change { key, object, is_gone, .. } = change;
            if object.account.is_empty() {
                return None;
            }
            let account = || ObjectKey::new(&key.namespace, &object.account);
            Some(if *is_gone {
                Key::Naming { account: account(), secret: key.name.clone() }
            } else {
                Key::Secret((*key).clone())
            })
        },
    );
    let (queue, again, all) = (controller.context().queue, controller.context().queue, holders.clone());
    let each = move |change: &Change<'_, There>| {
        let of_account = holders.within(&change.key.namespace).into_iter();
        let of_account = of_account.filter(|(_, holder)| change.is_gone && holder.account == change.key.name);
        for (name, _) in of_account {
            queue.add(Key::Secret(ObjectKey::new(&change.key.namespace, name)));
        }
    };
    let synced = move || all.all().into_iter().for_each(|(key, _)| again.add(Key::Secret(key)));
    let accounts = Following::<There, _, _>::new(each, synced);
    controller.listen(&setup.watches, Target::all(SERVICE_ACCOUNTS).metadata(), accounts)
}

struct Tokens {
    client: Client,
    /// The certificates of the server in base64.
    authority: String,
    settings: std::sync::Arc<Settings>,
}

impl Reconcile for Tokens {
    type Key = Key;

    async fn reconcile(&self, key: &Key, _: &Context<Key>) -> Result<Next> {
        match key {
            Key::Secret(key) => self.look_at(key).await?,
            Key::Naming { account, secret } => self.forget(account, secret).await?,
        }
        Ok(Next::Done)
    }
}

impl Tokens {
    async fn look_at(&self, key: &ObjectKey) -> Result<()> {
        let secrets = Objects::new(&self.client, &SECRETS.resource(), key.namespace());
        let Some(object) = secrets.get::<Value>(&key.name).await? else { return Ok(()) };
        let secret: Secret = serde_json::from_value(object.clone())?;
        let Some((name, _)) = account(&secret.metadata) else { return Ok(()) };
        let accounts = Objects::new(&self.client, &SERVICE_ACCOUNTS.resource(), key.namespace());
        let found: Option<Bare> = accounts.get_metadata(name).await?;
        let uid = found.as_ref().map(|account| account.metadata.uid.as_str());
        match decide(&secret, uid, &self.authority) {
            Step::Nothing => Ok(()),
            Step::Delete => secrets.delete(&key.name, &secret.metadata.deletion()).await.map(drop),
            Step::Complete(missing) => {
                let completed = self.complete(object, missing, key, name, uid.unwrap_or_default())?;
                secrets.replace::<Value>(&key.name, &completed).await.map(drop)
            }
        }
        .or_else(|error| if error.is_conflict() || error.is_not_found() { Ok(()) } else { Err(error) })
    }

    fn complete(
        &self,
        mut secret: Value,
        missing: Missing,
        key: &ObjectKey,
        name: &str,
        uid: &str,
    ) -> Result<Value> {
        if missing.authority {
            secret["data"]["ca.crt"] = self.authority.as_str().into();
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

    /// A token without an end, which is good for as long as the Secret holds it.
    fn token(&self, key: &ObjectKey, name: &str, uid: &str) -> Result<String> {
        let Some(signing) = &self.settings.signing_key else {
            return Err(Error::other("there is no key to sign tokens with"));
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

    /// Takes a Secret that is gone from the list of an account.
    async fn forget(&self, account: &ObjectKey, secret: &str) -> Result<()> {
        let secrets = Objects::new(&self.client, &SECRETS.resource(), account.namespace());
        if secrets.get_metadata::<There>(secret).await?.is_some() {
            return Ok(());
        }
        let accounts = Objects::new(&self.client, &SERVICE_ACCOUNTS.resource(), account.namespace());
        let Some(mut object) = accounts.get::<Value>(&account.name).await? else { return Ok(()) };
        let Some(named) = object["secrets"].as_array_mut() else { return Ok(()) };
        let before = named.len();
        named.retain(|reference| reference["name"] != secret);
        if named.len() == before {
            return Ok(());
        }
        accounts.replace::<Value>(&account.name, &object).await?;
        Ok(())
    }
}
