//! The protection finalizers of PersistentVolumes and PersistentVolumeClaims in use.

use serde_json::{Value, json};

use super::views::Metadata;
use controller::{Objects, Result};

/// The decision about a protection finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProtectionStep {
    /// The finalizer is correct.
    Nothing,
    /// The finalizer is missing.
    Add,
    /// The object is being deleted: remove the finalizer unless the object is in use.
    RemoveIfUnused,
}

/// Decides about the finalizer of an object.
pub(super) fn decide(object: &Metadata, finalizer: &str) -> ProtectionStep {
    let has_it = object.finalizers.iter().any(|known| known == finalizer);
    match (object.deletion_timestamp.is_some(), has_it) {
        (false, false) => ProtectionStep::Add,
        (true, true) => ProtectionStep::RemoveIfUnused,
        _ => ProtectionStep::Nothing,
    }
}

/// Executes the step on the present state of the object.
pub(super) async fn execute(
    objects: &Objects,
    name: &str,
    finalizer: &str,
    step: ProtectionStep,
) -> Result<()> {
    if step == ProtectionStep::Nothing {
        return Ok(());
    }
    let Some(mut object) = objects.get::<Value>(name).await? else { return Ok(()) };
    let metadata: Metadata = serde_json::from_value(object["metadata"].clone())?;
    // The decision was about an older state: the change adds the key again.
    if decide(&metadata, finalizer) != step {
        return Ok(());
    }
    let mut finalizers = metadata.finalizers;
    match step {
        ProtectionStep::Add => finalizers.push(finalizer.to_owned()),
        _ => finalizers.retain(|known| known != finalizer),
    }
    object["metadata"]["finalizers"] = json!(finalizers);
    match objects.replace::<Value>(name, &object).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_finalizer_is_added_and_removed_on_deletion() {
        for (deleted, finalizers, expected) in [
            (false, vec!["x"], ProtectionStep::Add),
            (false, vec!["f"], ProtectionStep::Nothing),
            (true, vec!["x", "f"], ProtectionStep::RemoveIfUnused),
            (true, vec!["x"], ProtectionStep::Nothing),
        ] {
            let time = deleted.then_some("2026-01-01T00:00:00Z");
            let object: Metadata =
                serde_json::from_value(json!({"deletionTimestamp": time, "finalizers": finalizers})).unwrap();
            assert_eq!(decide(&object, "f"), expected, "{object:?}");
        }
    }
}
