//! The root-ca-certificate-publisher controller: publishes the CA of the server in every namespace.

mod decide;

use std::sync::Arc;

use controller::{
    Cache, Context, Controller, ListWatch, ObjectKey, Objects, Outcome, ReconcileKey, Reconciler, Result,
};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use self::decide::{NAME, Published, RootCaStep, correct_config_map, decide};
use crate::kinds::{CONFIG_MAPS, NAMESPACES};
use crate::serviceaccount::Namespace;
use crate::{Settings, Setup};

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = String> + use<>> {
    let published = Cache::<Published>::default();
    let publisher = Publisher {
        client: setup.client.clone(),
        reader: setup.manager.clone(),
        settings: Arc::clone(&setup.settings),
        published: published.clone(),
    };
    let target = ListWatch::all(CONFIG_MAPS).fields(format!("metadata.name={NAME}"));
    Controller::new("root-ca-certificate-publisher-controller", publisher)
        .watch::<Namespace, _>(&setup.informers, ListWatch::all(NAMESPACES), |delta| {
            (!delta.is_deleted && delta.object.is_active()).then(|| delta.key.name.clone())
        })
        .watch_into(&published, &setup.informers, target, |delta| [delta.key.namespace.clone()])
}

struct Publisher {
    client: Client,
    reader: Client,
    settings: Arc<Settings>,
    published: Cache<Published>,
}

/// The ConfigMap of a namespace, and the CA that it should have.
struct Observed {
    published: Option<Arc<Published>>,
    settings: Arc<Settings>,
}

impl Reconciler for Publisher {
    type Key = String;
    type Observed = Observed;
    type Step = RootCaStep;

    async fn observe(&self, namespace: &String, _: &Context<String>) -> Result<Option<Observed>> {
        let published = self.published.get(&ObjectKey::new(namespace, NAME));
        Ok(Some(Observed { published, settings: Arc::clone(&self.settings) }))
    }

    fn decide(Observed { published, settings }: &Observed, _: Timestamp) -> RootCaStep {
        decide(published.as_deref().copied(), &settings.root_ca)
    }

    async fn execute(
        &self,
        namespace: &String,
        Observed { settings, .. }: Observed,
        step: RootCaStep,
        _: &Context<String>,
    ) -> Result<Outcome> {
        let ca = &settings.root_ca;
        let maps = |client| Objects::new(client, &CONFIG_MAPS.resource(), Some(namespace));
        let written = match step {
            RootCaStep::Nothing => return Ok(Outcome::Done),
            RootCaStep::Create => maps(&self.client).create::<Value>(&correct_config_map(None, ca)).await,
            RootCaStep::Repair => {
                let Some(map) = maps(&self.reader).get(NAME).await? else { return Ok(Outcome::Done) };
                maps(&self.client).replace(NAME, &correct_config_map(Some(map), ca)).await
            }
        };
        match written {
            // A concurrent change by another client enqueues the key again.
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            Err(error) if error.is_namespace_terminating() => {}
            written => drop(written?),
        }
        Ok(Outcome::Done)
    }
}
