//! Finalizers: added before the first effect outside of the object, removed after the clean-up of all of them.
//!
//! [`stage`] belongs into a reconciler's `decide`, [`add`] and [`finish`] into its `execute`. All writes have the version of the object that the
//! decision was made about as their precondition.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::IgnoredAny;
use serde_json::json;

use crate::{Objects, Result};

/// The place of an object between its creation and its end, for one finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The object has not got the finalizer yet: [`add`] it before any effect that has to be cleaned up.
    Add,
    /// The object has the finalizer, and is to exist.
    Reconcile,
    /// The deletion of the object has begun: clean up and [`finish`]. It comes until the finalizer is removed, so that the clean-up has to be
    /// safe to do twice, and is not done again afterwards.
    CleanUp,
    /// The deletion has begun, and this finalizer is not (or no longer) part of it.
    Finished,
}

/// The stage of an object.
#[must_use]
pub fn stage(object: &ObjectMeta, finalizer: &str) -> Stage {
    let has_it = object.finalizers.iter().flatten().any(|known| known == finalizer);
    match (object.deletion_timestamp.is_some(), has_it) {
        (false, false) => Stage::Add,
        (false, true) => Stage::Reconcile,
        (true, true) => Stage::CleanUp,
        (true, false) => Stage::Finished,
    }
}

/// Adds a finalizer to an object as it was observed.
///
/// # Errors
/// A conflict when the object has changed since; when the server refuses.
pub async fn add(objects: &Objects, object: &ObjectMeta, finalizer: &str) -> Result<()> {
    let mut finalizers = object.finalizers.clone().unwrap_or_default();
    if !finalizers.iter().any(|known| known == finalizer) {
        finalizers.push(finalizer.to_owned());
        write(objects, object, &finalizers).await?;
    }
    Ok(())
}

/// Waits for the clean-up, then removes the finalizer from the object as it was observed. A clean-up that fails keeps it.
///
/// # Errors
/// Those of the clean-up; a conflict when the object has changed since; when the server refuses. That the object is gone is none.
pub async fn finish(
    objects: &Objects,
    object: &ObjectMeta,
    finalizer: &str,
    clean_up: impl Future<Output = Result<()>>,
) -> Result<()> {
    clean_up.await?;
    let others = object.finalizers.iter().flatten().filter(|known| *known != finalizer);
    let others: Vec<String> = others.cloned().collect();
    match write(objects, object, &others).await {
        Err(error) if error.is_not_found() => Ok(()),
        written => written,
    }
}

async fn write(objects: &Objects, object: &ObjectMeta, finalizers: &[String]) -> Result<()> {
    let ObjectMeta { name, uid, resource_version, .. } = object;
    let metadata = json!({"uid": uid, "resourceVersion": resource_version, "finalizers": finalizers});
    let name = name.as_deref().unwrap_or_default();
    objects.merge_patch::<IgnoredAny>(name, &json!({"metadata": metadata})).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finalizer_is_added_before_and_removed_after_the_work() {
        for (is_deleted, finalizers, expected) in [
            (false, &[][..], Stage::Add),
            (false, &["other"], Stage::Add),
            (false, &["other", "mine"], Stage::Reconcile),
            (true, &["mine"], Stage::CleanUp),
            (true, &["other"], Stage::Finished),
        ] {
            let deleted = is_deleted.then_some("2026-01-01T00:00:00Z");
            let object: ObjectMeta =
                serde_json::from_value(json!({"deletionTimestamp": deleted, "finalizers": finalizers}))
                    .unwrap();
            assert_eq!(stage(&object, "mine"), expected, "{object:?}");
        }
    }
}
