//! Keeps volumes for as long as claims are bound to them.

use kube::Client;
use serde::Deserialize;

use super::kinds::VOLUMES;
use super::protection::{self, Step};
use super::views::Metadata;
use crate::manager::Setup;
use crate::{Context, Controller, Next, ObjectKey, Objects, Reconcile, Result, Target};

const FINALIZER: &str = "kubernetes.io/pv-protection";

/// A volume, as far as it counts.
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

/// What becomes of the finalizer of a volume.
fn decide(volume: &Volume) -> Step {
    match protection::decide(&volume.metadata, FINALIZER) {
        Step::RemoveIfUnused if volume.status.phase == "Bound" => Step::Nothing,
        step => step,
    }
}

/// The controller.
pub(super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = ObjectKey> + use<>> {
    let client = &setup.client;
    Controller::new("persistentvolume-protection-controller", Volumes { client: client.clone() })
        .watch::<Volume, _>(&setup.watches, Target::all(VOLUMES), |change| {
            (!change.is_gone && decide(change.object) != Step::Nothing).then(|| change.key.clone())
        })
}

struct Volumes {
    client: Client,
}

impl Reconcile for Volumes {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> Result<Next> {
        let volumes = Objects::new(&self.client, &VOLUMES.resource(), None);
        if let Some(volume) = volumes.get::<Volume>(&key.name).await? {
            protection::execute(&volumes, &key.name, FINALIZER, decide(&volume)).await?;
        }
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_volume_that_is_bound_stays() {
        for (phase, expected) in [
            ("Bound", Step::Nothing),
            ("Available", Step::RemoveIfUnused),
            ("Released", Step::RemoveIfUnused),
        ] {
            let metadata = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]});
            let volume =
                serde_json::from_value(json!({"metadata": metadata, "status": {"phase": phase}})).unwrap();
            assert_eq!(decide(&volume), expected, "{phase}");
        }
    }
}
