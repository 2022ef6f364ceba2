//! Keeps claims for as long as Pods use them.

mod decide;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use kube::api::ListParams;

use self::decide::{Pod, may_free, named, uses};
use super::following::Following;
use super::kinds::{CLAIMS, PODS};
use super::protection::{self, Step};
use super::views::{Bare, Metadata};
use crate::manager::Setup;
use crate::{Context, Controller, Next, ObjectKey, Objects, Reconcile, Result, Target};

const FINALIZER: &str = "kubernetes.io/pvc-protection";
/// Pods that are read at once.
const PAGE: u32 = 500;

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = ObjectKey> + use<>> {
    let (client, used) = (&setup.client, Used::default());
    let claims = Claims { client: client.clone(), used: used.clone() };
    let controller = Controller::new("persistentvolumeclaim-protection-controller", claims).watch::<Bare, _>(
        &setup.watches,
        Target::all(CLAIMS).metadata(),
        |change| {
            let step = protection::decide(&change.object.metadata, FINALIZER);
            (change.is_gone || step != Step::Nothing).then(|| change.key.clone())
        },
    );
    let (queue, again, all) = (controller.context().queue, controller.context().queue, used.clone());
    let each = move |change: &crate::Change<'_, Pod>| {
        if change.is_gone || may_free(change.object) {
            let keys = named(change.object).map(|name| ObjectKey::new(&change.key.namespace, name));
            keys.filter(|key| used.keys().contains(key)).for_each(|key| queue.add(key));
        }
    };
    let synced = move || all.keys().iter().for_each(|key| again.add(key.clone()));
    controller.listen(&setup.watches, Target::all(PODS), Following::<Pod, _, _>::new(each, synced))
}

/// The claims that are to go, but were in use when they were last looked at.
#[derive(Clone, Default)]
struct Used(Arc<Mutex<BTreeSet<ObjectKey>>>);

impl Used {
    fn keys(&self) -> MutexGuard<'_, BTreeSet<ObjectKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Claims {
    client: Client,
    used: Used,
}

impl Reconcile for Claims {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Next> {
        let claims = Objects::new(&self.client, &CLAIMS.resource(), key.namespace());
        let claim: Option<Bare> = claims.get_metadata(&key.name).await?;
        let step =
            claim.as_ref().map_or(Step::Nothing, |claim| protection::decide(&claim.metadata, FINALIZER));
        if let (Step::RemoveIfUnused, Some(claim)) = (step, &claim) {
            // From here on Pods that go are told of, so that none is missed between the look at them and the note.
            self.used.keys().insert(key.clone());
            if self.is_used(key, &claim.metadata).await? {
                return Ok(Next::Done);
            }
        }
        self.used.keys().remove(key);
        protection::execute(&claims, &key.name, FINALIZER, step).await?;
        Ok(Next::Done)
    }
}

impl Claims {
    async fn is_used(&self, key: &ObjectKey, claim: &Metadata) -> Result<bool> {
        let pods = Objects::new(&self.client, &PODS.resource(), key.namespace());
        let mut selection = ListParams::default().limit(PAGE);
        loop {
            let page = pods.list::<Pod>(&selection).await?;
            if page.items.iter().any(|pod| uses(pod, claim)) {
                return Ok(true);
            }
            if page.metadata.continue_token.is_empty() {
                return Ok(false);
            }
            selection.continue_token = Some(page.metadata.continue_token);
        }
    }
}
