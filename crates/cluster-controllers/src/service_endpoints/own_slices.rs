//! The slices of a controller: the cache of its informer, and its own writes that the informer has not observed yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use controller::{Cache, Index, ObjectKey, Objects, Result};
use kube::Client;
use kube::api::{DeleteParams, Preconditions};

use super::SLICES;
use super::objects::{SERVICE_NAME, Slice, SliceStep};

/// The slices that a controller wrote.
pub(crate) struct OwnSlices {
    /// The informer's cache.
    pub(crate) cache: Cache<Slice>,
    /// The cached slices by Service, as `namespace/name`.
    by_service: Index<Slice>,
    /// The resource versions of the last writes. An older event may arrive after the response to a write.
    written: Mutex<HashMap<ObjectKey, u64>>,
}

impl Default for OwnSlices {
    fn default() -> Self {
        let cache = Cache::<Slice>::default();
        let by_service = cache.index(|key, slice| {
            let service = slice.label(SERVICE_NAME);
            service.map(|service| ObjectKey::new(&key.namespace, service).to_string()).into_iter().collect()
        });
        Self { cache, by_service, written: Mutex::default() }
    }
}

impl OwnSlices {
    /// The slices of a Service, without those being deleted. `None` while the cache has not observed the last write of
    /// one of them: its event enqueues the key again.
    pub(crate) fn of(&self, service: &ObjectKey) -> Option<Vec<Arc<Slice>>> {
        let own = self.by_service.get(&service.to_string());
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_behind = false;
        for (key, slice) in &own {
            match written.get(key) {
                Some(expected) if revision(slice).is_some_and(|known| known < *expected) => is_behind = true,
                Some(_) => drop(written.remove(key)),
                None => {}
            }
        }
        let slices = own.into_iter().map(|(_, slice)| slice);
        let staying = slices.filter(|slice| slice.metadata.deletion_timestamp.is_none());
        (!is_behind).then(|| staying.collect())
    }

    /// Executes the writes and records them in the cache at once: otherwise the next decision could create a slice
    /// twice.
    pub(crate) async fn execute(
        &self,
        client: &Client,
        service: &ObjectKey,
        steps: Vec<SliceStep>,
    ) -> Result<()> {
        let objects = Objects::new(client, &SLICES.resource(), service.namespace());
        for step in steps {
            match step {
                SliceStep::Create(slice) => match objects.create(&slice).await {
                    Ok(made) => self.keep(service, made),
                    // The namespace controller deletes the slices.
                    Err(error) if error.is_namespace_terminating() => return Ok(()),
                    Err(error) => return Err(error),
                },
                SliceStep::Update(slice) => self.keep(service, objects.replace(slice.name(), &slice).await?),
                SliceStep::Delete(slice) => {
                    let preconditions = Preconditions {
                        uid: slice.metadata.uid.clone(),
                        resource_version: slice.metadata.resource_version.clone(),
                    };
                    let how = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
                    objects.delete(slice.name(), &how).await?;
                    let key = ObjectKey::new(&service.namespace, slice.name());
                    self.cache.remove(&key);
                    self.written.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
                }
            }
        }
        Ok(())
    }

    fn keep(&self, service: &ObjectKey, slice: Slice) {
        let key = ObjectKey::new(&service.namespace, slice.name());
        if let Some(revision) = revision(&slice) {
            self.written.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), revision);
        }
        self.cache.insert(key, Arc::new(slice));
    }
}

fn revision(slice: &Slice) -> Option<u64> {
    slice.metadata.resource_version.as_ref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(revision: u64) -> Slice {
        let labels = json!({SERVICE_NAME: "web"});
        let metadata = json!({"name": "web-1", "resourceVersion": revision.to_string(), "labels": labels});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    #[test]
    fn slices_are_not_decided_about_before_the_last_write_is_observed() {
        let (service, key) = (ObjectKey::new("default", "web"), ObjectKey::new("default", "web-1"));
        let own = OwnSlices::default();
        own.keep(&service, slice(7));
        assert_eq!(own.of(&service).map(|slices| slices.len()), Some(1));
        own.keep(&service, slice(9));
        own.cache.insert(key.clone(), Arc::new(slice(7)));
        assert_eq!(own.of(&service), None, "an event from before the last write");
        own.cache.insert(key.clone(), Arc::new(slice(10)));
        assert_eq!(own.of(&service).map(|slices| slices.len()), Some(1));
        own.keep(&service, slice(12));
        own.cache.remove(&key);
        assert_eq!(own.of(&service), Some(vec![]), "another client deleted it");
    }
}
