//! The persistentvolumeclaim-protection controller: keeps PersistentVolumeClaims while Pods use them.

mod decide;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use controller::{
    Context, Controller, Delta, DeltaHandler, ListWatch, ObjectKey, Objects, Outcome, ReconcileKey,
    Reconciler, Result,
};
use jiff::Timestamp;
use kube::Client;
use kube::api::ListParams;

use self::decide::{Pod, may_free, named, uses};
use crate::Setup;
use crate::kinds::{CLAIMS, PODS};
use crate::protection::{self, ProtectionStep};
use crate::views::{Metadata, MetadataOnly};

const FINALIZER: &str = "kubernetes.io/pvc-protection";

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = ObjectKey> + use<>> {
    let (client, used) = (&setup.client, Used::default());
    let claims = Claims { client: client.clone(), used: used.clone() };
    let controller = Controller::new("persistentvolumeclaim-protection-controller", claims)
        .watch::<MetadataOnly, _>(&setup.informers, ListWatch::all(CLAIMS).metadata_only(), |delta| {
            let step = protection::decide(&delta.object.metadata, FINALIZER);
            (delta.is_deleted || step != ProtectionStep::Nothing).then(|| delta.key.clone())
        });
    let (queue, again, all) = (controller.context().queue, controller.context().queue, used.clone());
    let each = move |delta: &Delta<'_, Pod>| {
        if delta.is_deleted || may_free(delta.object) {
            let keys = named(delta.object).map(|name| ObjectKey::new(&delta.key.namespace, name));
            keys.filter(|key| used.keys().contains(key)).for_each(|key| queue.add(key));
        }
    };
    let synced = move || all.keys().iter().for_each(|key| again.add(key.clone()));
    controller.handle(&setup.informers, ListWatch::all(PODS), DeltaHandler::<Pod, _, _>::new(each, synced))
}

/// The claims being deleted that were in use at the last reconciliation.
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

/// A claim, and whether a Pod uses it if that matters.
struct Observed {
    claim: Option<Metadata>,
    is_used: bool,
}

impl Reconciler for Claims {
    type Key = ObjectKey;
    type Observed = Observed;
    type Step = ProtectionStep;

    async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<Observed>> {
        let claim =
            self.objects(key).get_metadata::<MetadataOnly>(&key.name).await?.map(|claim| claim.metadata);
        let step =
            claim.as_ref().map_or(ProtectionStep::Nothing, |claim| protection::decide(claim, FINALIZER));
        let mut is_used = false;
        if let (ProtectionStep::RemoveIfUnused, Some(claim)) = (step, &claim) {
            // From here on finished Pods enqueue the key, so that none is missed between the list of Pods and this
            // entry.
            self.used.keys().insert(key.clone());
            is_used = self.is_used(key, claim).await?;
        }
        Ok(Some(Observed { claim, is_used }))
    }

    fn decide(Observed { claim, is_used }: &Observed, _: Timestamp) -> ProtectionStep {
        let step =
            claim.as_ref().map_or(ProtectionStep::Nothing, |claim| protection::decide(claim, FINALIZER));
        if *is_used && step == ProtectionStep::RemoveIfUnused { ProtectionStep::Nothing } else { step }
    }

    async fn execute(
        &self,
        key: &ObjectKey,
        Observed { is_used, .. }: Observed,
        step: ProtectionStep,
        _: &Context<ObjectKey>,
    ) -> Result<Outcome> {
        if !is_used {
            self.used.keys().remove(key);
        }
        protection::execute(&self.objects(key), &key.name, FINALIZER, step).await?;
        Ok(Outcome::Done)
    }
}

impl Claims {
    fn objects(&self, key: &ObjectKey) -> Objects {
        Objects::new(&self.client, &CLAIMS.resource(), key.namespace())
    }

    async fn is_used(&self, key: &ObjectKey, claim: &Metadata) -> Result<bool> {
        let pods = Objects::new(&self.client, &PODS.resource(), key.namespace());
        let mut pages = pods.pages::<Pod>(ListParams::default());
        while let Some(page) = pages.next().await? {
            if page.iter().any(|pod| uses(pod, claim)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
