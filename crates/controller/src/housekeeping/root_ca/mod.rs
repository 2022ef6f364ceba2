//! Publishes the certificates by which clients know the server in every namespace.

mod decide;

use std::sync::Arc;

use kube::Client;
use serde_json::Value;

use self::decide::{NAME, Published, Step, decide, right};
use super::kinds::{CONFIG_MAPS, NAMESPACES};
use super::service_accounts::Namespace;
use super::views::is_ending;
use crate::manager::{Settings, Setup};
use crate::{Cache, Context, Controller, Next, ObjectKey, Objects, Reconcile, Result, Target};

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = String> + use<>> {
    let published = Cache::<Published>::default();
    let publisher = Publisher {
        client: setup.client.clone(),
        reader: setup.manager.clone(),
        settings: Arc::clone(&setup.settings),
        published: published.clone(),
    };
    let target = Target::all(CONFIG_MAPS).fields(format!("metadata.name={NAME}"));
    Controller::new("root-ca-certificate-publisher-controller", publisher)
        .watch::<Namespace, _>(&setup.watches, Target::all(NAMESPACES), |change| {
            (!change.is_gone && change.object.is_active()).then(|| change.key.name.clone())
        })
        .watch_into(&published, &setup.watches, target, |change| [change.key.namespace.clone()])
}

struct Publisher {
    client: Client,
    reader: Client,
    settings: Arc<Settings>,
    published: Cache<Published>,
}

impl Reconcile for Publisher {
    type Key = String;

    async fn reconcile(&self, namespace: &String, _: &Context<String>) -> Result<Next> {
        let authority = &self.settings.root_ca;
        let maps = |client| Objects::new(client, &CONFIG_MAPS.resource(), Some(namespace));
        let published = self.published.get(&ObjectKey::new(namespace, NAME));
        let written = match decide(published.as_deref().copied(), authority) {
            Step::Nothing => return Ok(Next::Done),
            Step::Create => maps(&self.client).create::<Value>(&right(None, authority)).await,
            Step::Repair => {
                let Some(map) = maps(&self.reader).get(NAME).await? else { return Ok(Next::Done) };
                maps(&self.client).replace(NAME, &right(Some(map), authority)).await
            }
        };
        match written {
            // What somebody else wrote meanwhile comes by again.
            Err(error) if !(error.is_not_found() || error.is_conflict() || is_ending(&error)) => Err(error),
            _ => Ok(Next::Done),
        }
    }
}
