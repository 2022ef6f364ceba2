//! The serviceaccount controller: creates the ServiceAccount `default` in every namespace.

use controller::{
    Cache, Context, Controller, ListWatch, ObjectKey, Objects, Outcome, ReconcileKey, Reconciler, Result,
};
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Setup;
use crate::kinds::{NAMESPACES, SERVICE_ACCOUNTS};
use crate::views::Existence;

const ACCOUNT: &str = "default";

/// The fields of a Namespace that this controller reads.
#[derive(Deserialize)]
pub(super) struct Namespace {
    #[serde(default)]
    status: NamespaceStatus,
}

#[derive(Default, Deserialize)]
struct NamespaceStatus {
    #[serde(default)]
    phase: String,
}

impl Namespace {
    /// Whether objects can be created in it.
    pub fn is_active(&self) -> bool {
        self.status.phase == "Active"
    }
}

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = String> + use<>> {
    let (client, accounts) = (setup.client.clone(), Cache::<Existence>::default());
    let target = ListWatch::all(SERVICE_ACCOUNTS).fields(format!("metadata.name={ACCOUNT}")).metadata_only();
    Controller::new("serviceaccount-controller", ServiceAccounts { client, accounts: accounts.clone() })
        .watch::<Namespace, _>(&setup.informers, ListWatch::all(NAMESPACES), |delta| {
            (!delta.is_deleted && delta.object.is_active()).then(|| delta.key.name.clone())
        })
        .watch_into(&accounts, &setup.informers, target, |delta| {
            delta.is_deleted.then(|| delta.key.namespace.clone())
        })
}

struct ServiceAccounts {
    client: Client,
    /// The ServiceAccounts named `default`.
    accounts: Cache<Existence>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServiceAccountStep {
    Keep,
    Create,
}

impl Reconciler for ServiceAccounts {
    type Key = String;
    /// Whether the account exists.
    type Observed = bool;
    type Step = ServiceAccountStep;

    async fn observe(&self, namespace: &String, _: &Context<String>) -> Result<Option<bool>> {
        Ok(Some(self.accounts.get(&ObjectKey::new(namespace, ACCOUNT)).is_some()))
    }

    fn decide(exists: &bool, _: Timestamp) -> ServiceAccountStep {
        if *exists { ServiceAccountStep::Keep } else { ServiceAccountStep::Create }
    }

    async fn execute(
        &self,
        namespace: &String,
        _: bool,
        step: ServiceAccountStep,
        _: &Context<String>,
    ) -> Result<Outcome> {
        if step == ServiceAccountStep::Create {
            let accounts = Objects::new(&self.client, &SERVICE_ACCOUNTS.resource(), Some(namespace));
            match accounts.create::<Value>(&json!({"metadata": {"name": ACCOUNT}})).await {
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                Err(error) if error.is_namespace_terminating() => {}
                made => drop(made?),
            }
        }
        Ok(Outcome::Done)
    }
}
