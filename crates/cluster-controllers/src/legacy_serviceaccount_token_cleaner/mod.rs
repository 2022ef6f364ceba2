//! The legacy-serviceaccount-token-cleaner controller: invalidates auto-generated token Secrets that were not used for
//! long, and deletes them later.
//!
//! A Secret is reconciled when it changes and when it may have expired. One that is kept because of other objects is
//! reconciled again a day later: Pods and ServiceAccounts are not watched for Secrets that hardly exist any more.

mod decide;

use std::sync::Arc;
use std::time::Duration;

use controller::{
    Context, Controller, ListWatch, ObjectKey, Objects, Outcome, ReconcileKey, Reconciler, Result,
};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::ListParams;
use serde::Deserialize;
use serde_json::{Value, json};

use self::decide::{Account, INVALID_SINCE, Surroundings, TokenCleanupStep, decide, due, mentions};
use crate::kinds::{CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS};
use crate::serviceaccount_token::account;
use crate::views::{Existence, Metadata, MetadataOnly, wait_until};
use crate::{Settings, Setup};

/// The ConfigMap with the day since which the server tracks the use of tokens.
const TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";
/// The default time after which an unused token is invalidated.
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

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
pub(super) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = ObjectKey> + use<>> {
    let cleaner = Cleaner {
        client: setup.client.clone(),
        reader: setup.manager.clone(),
        settings: Arc::clone(&setup.settings),
    };
    let secrets = ListWatch::all(SECRETS).fields("type=kubernetes.io/service-account-token").metadata_only();
    Controller::new("legacy-serviceaccount-token-cleaner-controller", cleaner).watch::<Existence, _>(
        &setup.informers,
        secrets,
        |delta| (!delta.is_deleted).then(|| delta.key.clone()),
    )
}

struct Cleaner {
    /// A client that may update and delete Secrets.
    client: Client,
    reader: Client,
    settings: Arc<Settings>,
}

struct Observed {
    secret: Metadata,
    period: SignedDuration,
    /// The other objects that the decision depends on; they are read only for a Secret that is due.
    around: Option<Surroundings>,
}

impl Reconciler for Cleaner {
    type Key = ObjectKey;
    type Observed = Observed;
    type Step = TokenCleanupStep;

    async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<Observed>> {
        let period = self.settings.unused_tokens.unwrap_or(A_YEAR);
        let period = SignedDuration::try_from(period).unwrap_or(SignedDuration::MAX);
        let secrets = Objects::new(&self.reader, &SECRETS.resource(), key.namespace());
        let Some(MetadataOnly { metadata: secret }) = secrets.get_metadata(&key.name).await? else {
            return Ok(None);
        };
        let is_due = due(&secret, period).is_some_and(|due| due <= Timestamp::now());
        let around = if is_due { Some(self.surroundings(key, &secret).await?) } else { None };
        Ok(Some(Observed { secret, period, around }))
    }

    fn decide(Observed { secret, period, around }: &Observed, now: Timestamp) -> TokenCleanupStep {
        match (due(secret, *period), around) {
            (None, _) => TokenCleanupStep::Keep,
            (Some(due), None) => TokenCleanupStep::Wait(due),
            (Some(_), Some(around)) => decide(secret, around, now, *period),
        }
    }

    async fn execute(
        &self,
        key: &ObjectKey,
        Observed { secret, .. }: Observed,
        step: TokenCleanupStep,
        _: &Context<ObjectKey>,
    ) -> Result<Outcome> {
        let secrets = Objects::new(&self.client, &SECRETS.resource(), key.namespace());
        match step {
            TokenCleanupStep::Keep => {}
            TokenCleanupStep::Wait(until) => {
                let wait = wait_until(until, Timestamp::now()).unwrap_or_default();
                return Ok(Outcome::RequeueAfter(wait));
            }
            TokenCleanupStep::KeepForNow => return Ok(Outcome::RequeueAfter(A_DAY)),
            TokenCleanupStep::Refuse(day) => {
                let Metadata { uid, resource_version, .. } = &secret;
                let labels = json!({INVALID_SINCE: day});
                let patch = json!({"uid": uid, "resourceVersion": resource_version, "labels": labels});
                secrets.merge_patch::<Value>(&key.name, &json!({"metadata": patch})).await?;
            }
            TokenCleanupStep::Delete => drop(secrets.delete(&key.name, &secret.deletion()).await?),
        }
        Ok(Outcome::Done)
    }
}

impl Cleaner {
    async fn surroundings(&self, key: &ObjectKey, secret: &Metadata) -> Result<Surroundings> {
        let maps = Objects::new(&self.client, &CONFIG_MAPS.resource(), Some("kube-system"));
        let since = maps.get::<Tracking>(TRACKING).await?.and_then(|tracking| tracking.data.since);
        let account = self.account_of(key, secret).await?;
        Ok(Surroundings { since, account, is_mounted: self.is_mounted(key).await? })
    }

    /// The ServiceAccount of a Secret, if its uid still matches.
    async fn account_of(&self, key: &ObjectKey, secret: &Metadata) -> Result<Option<Account>> {
        let Some((name, uid)) = account(secret) else { return Ok(None) };
        let accounts = Objects::new(&self.reader, &SERVICE_ACCOUNTS.resource(), key.namespace());
        let found = accounts.get::<Account>(name).await?;
        Ok(found.filter(|account| uid.is_empty() || account.metadata.uid == uid))
    }

    /// Whether a Pod refers to a Secret. Any other value with this name counts, too.
    async fn is_mounted(&self, key: &ObjectKey) -> Result<bool> {
        let pods = Objects::new(&self.reader, &PODS.resource(), key.namespace());
        let mut pages = pods.pages::<Pod>(ListParams::default());
        while let Some(page) = pages.next().await? {
            if page.iter().any(|pod| mentions(&pod.spec, &key.name)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
