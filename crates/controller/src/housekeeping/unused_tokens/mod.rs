//! Refuses tokens that accounts once got by themselves when nobody has used them for long, and deletes them later.
//!
//! A Secret is looked at when it changes and when its time may be over. Who is kept then because of others is looked at again a day
//! later: Pods and accounts are not watched for the sake of what is hardly ever there.

mod decide;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::ListParams;
use serde::Deserialize;
use serde_json::{Value, json};

use self::decide::{Account, INVALID_SINCE, Step, Surroundings, decide, due, mentions};
use super::account_tokens::account;
use super::kinds::{CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS};
use super::views::{Bare, Metadata, There, wait_until};
use crate::manager::{Settings, Setup};
use crate::{Context, Controller, Next, ObjectKey, Objects, Reconcile, Result, Target};

/// Where the server says since when it notes the use of tokens.
const TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";
/// How long a token may be unused where nobody says.
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Pods that are read at once.
const PAGE: u32 = 500;

#[derive(Deserialize)]
struct Tracking {
    #[serde(default)]
    data: Since,
}

#[derive(Default, Deserialize)]
struct Since {
    since: Option<String>,
}

#[derive(Deserialize)]
struct Pod {
    spec: Value,
}

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = ObjectKey> + use<>> {
    let cleaner = Cleaner {
        client: setup.client.clone(),
        reader: setup.manager.clone(),
        settings: Arc::clone(&setup.settings),
    };
    let secrets = Target::all(SECRETS).fields("type=kubernetes.io/service-account-token").metadata();
    Controller::new("legacy-serviceaccount-token-cleaner-controller", cleaner).watch::<There, _>(
        &setup.watches,
        secrets,
        |change| (!change.is_gone).then(|| change.key.clone()),
    )
}

struct Cleaner {
    /// May change and delete Secrets.
    client: Client,
    reader: Client,
    settings: Arc<Settings>,
}

impl Reconcile for Cleaner {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Next> {
        let period = self.settings.unused_tokens.unwrap_or(A_YEAR);
        let period = SignedDuration::try_from(period).unwrap_or(SignedDuration::MAX);
        let secrets = Objects::new(&self.reader, &SECRETS.resource(), key.namespace());
        let Some(Bare { metadata }) = secrets.get_metadata(&key.name).await? else { return Ok(Next::Done) };
        let now = Timestamp::now();
        let Some(due) = due(&metadata, period) else { return Ok(Next::Done) };
        if let Some(wait) = wait_until(due, now) {
            return Ok(Next::After(wait));
        }
        let maps = Objects::new(&self.client, &CONFIG_MAPS.resource(), Some("kube-system"));
        let since = maps.get::<Tracking>(TRACKING).await?.and_then(|tracking| tracking.data.since);
        let account = self.account_of(key, &metadata).await?;
        let is_mounted = self.is_mounted(key).await?;
        let around = Surroundings { since: since.as_deref(), account: account.as_ref(), is_mounted };
        let secrets = Objects::new(&self.client, &SECRETS.resource(), key.namespace());
        match decide(&metadata, &around, now, period) {
            Step::Wait(until) => return Ok(Next::After(wait_until(until, now).unwrap_or(A_DAY))),
            Step::Keep => return Ok(Next::After(A_DAY)),
            Step::Refuse(day) => {
                let Metadata { uid, resource_version, .. } = &metadata;
                let labels = json!({INVALID_SINCE: day});
                let patch = json!({"uid": uid, "resourceVersion": resource_version, "labels": labels});
                secrets.merge::<Value>(&key.name, &json!({"metadata": patch})).await?;
            }
            Step::Delete => drop(secrets.delete(&key.name, &metadata.deletion()).await?),
        }
        Ok(Next::Done)
    }
}

impl Cleaner {
    /// The account that a Secret is for, if it is still the same.
    async fn account_of(&self, key: &ObjectKey, secret: &Metadata) -> Result<Option<Account>> {
        let Some((name, uid)) = account(secret) else { return Ok(None) };
        let accounts = Objects::new(&self.reader, &SERVICE_ACCOUNTS.resource(), key.namespace());
        let found = accounts.get::<Account>(name).await?;
        Ok(found.filter(|account| uid.is_empty() || account.metadata.uid == uid))
    }

    /// Whether a Pod names a Secret. One that has another thing of this name keeps it, too.
    async fn is_mounted(&self, key: &ObjectKey) -> Result<bool> {
        let pods = Objects::new(&self.reader, &PODS.resource(), key.namespace());
        let mut selection = ListParams::default().limit(PAGE);
        loop {
            let page = pods.list::<Pod>(&selection).await?;
            if page.items.iter().any(|pod| mentions(&pod.spec, &key.name)) {
                return Ok(true);
            }
            if page.metadata.continue_token.is_empty() {
                return Ok(false);
            }
            selection.continue_token = Some(page.metadata.continue_token);
        }
    }
}
