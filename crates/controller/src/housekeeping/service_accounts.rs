//! Gives every namespace the service account that its Pods run as.

use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use super::kinds::{NAMESPACES, SERVICE_ACCOUNTS};
use super::views::{There, is_ending};
use crate::manager::Setup;
use crate::{Cache, Context, Controller, Next, ObjectKey, Objects, Reconcile, Result, Target};

const ACCOUNT: &str = "default";

/// What is read of a namespace.
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
    /// Whether objects can be made in it.
    pub fn is_active(&self) -> bool {
        self.status.phase == "Active"
    }
}

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = String> + use<>> {
    let (client, accounts) = (setup.client.clone(), Cache::<There>::default());
    let target = Target::all(SERVICE_ACCOUNTS).fields(format!("metadata.name={ACCOUNT}")).metadata();
    Controller::new("serviceaccount-controller", ServiceAccounts { client, accounts: accounts.clone() })
        .watch::<Namespace, _>(&setup.watches, Target::all(NAMESPACES), |change| {
            (!change.is_gone && change.object.is_active()).then(|| change.key.name.clone())
        })
        .watch_into(&accounts, &setup.watches, target, |change| {
            change.is_gone.then(|| change.key.namespace.clone())
        })
}

struct ServiceAccounts {
    client: Client,
    /// Those with the name in question.
    accounts: Cache<There>,
}

impl Reconcile for ServiceAccounts {
    type Key = String;

    async fn reconcile(&self, namespace: &String, _: &Context<String>) -> Result<Next> {
        if self.accounts.get(&ObjectKey::new(namespace, ACCOUNT)).is_some() {
            return Ok(Next::Done);
        }
        let accounts = Objects::new(&self.client, &SERVICE_ACCOUNTS.resource(), Some(namespace));
        match accounts.create::<Value>(&json!({"metadata": {"name": ACCOUNT}})).await {
            Err(error) if !(error.is_not_found() || error.is_conflict() || is_ending(&error)) => Err(error),
            _ => Ok(Next::Done),
        }
    }
}
