//! The persistentvolume-protection controller: keeps PersistentVolumes while a claim is bound to them.

use controller::{
    Context, Controller, ListWatch, ObjectKey, Objects, Outcome, ReconcileKey, Reconciler, Result,
};
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;

use crate::Setup;
use crate::kinds::VOLUMES;
use crate::protection::{self, ProtectionStep};
use crate::views::Metadata;

const FINALIZER: &str = "kubernetes.io/pv-protection";

/// The fields of a PersistentVolume that this controller reads.
#[derive(Deserialize)]
struct Volume {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    phase: String,
}

/// Decides about the finalizer of a volume.
fn decide(volume: &Volume) -> ProtectionStep {
    match protection::decide(&volume.metadata, FINALIZER) {
        ProtectionStep::RemoveIfUnused if volume.status.phase == "Bound" => ProtectionStep::Nothing,
        step => step,
    }
}

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = ObjectKey> + use<>> {
    let client = &setup.client;
    Controller::new("persistentvolume-protection-controller", Volumes { client: client.clone() })
        .watch::<Volume, _>(&setup.informers, ListWatch::all(VOLUMES), |delta| {
            (!delta.is_deleted && decide(delta.object) != ProtectionStep::Nothing).then(|| delta.key.clone())
        })
}

struct Volumes {
    client: Client,
}

impl Volumes {
    fn objects(&self) -> Objects {
        Objects::new(&self.client, &VOLUMES.resource(), None)
    }
}

impl Reconciler for Volumes {
    type Key = ObjectKey;
    type Observed = Volume;
    type Step = ProtectionStep;

    async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Option<Volume>> {
        self.objects().get(&key.name).await
    }

    fn decide(volume: &Volume, _: Timestamp) -> ProtectionStep {
        decide(volume)
    }

    async fn execute(
        &self,
        key: &ObjectKey,
        _: Volume,
        step: ProtectionStep,
        _: &Context<ObjectKey>,
    ) -> Result<Outcome> {
        protection::execute(&self.objects(), &key.name, FINALIZER, step).await?;
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bound_volume_is_kept() {
        for (phase, expected) in [
            ("Bound", ProtectionStep::Nothing),
            ("Available", ProtectionStep::RemoveIfUnused),
            ("Released", ProtectionStep::RemoveIfUnused),
        ] {
            let metadata = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]});
            let volume =
                serde_json::from_value(json!({"metadata": metadata, "status": {"phase": phase}})).unwrap();
            assert_eq!(decide(&volume), expected, "{phase}");
        }
    }
}
