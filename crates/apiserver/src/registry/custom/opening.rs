//! From stored bytes to an object of a version, and back.

use std::sync::Arc;

use bytes::Bytes;
use model::encoded::split_version;
use model::error::Error;
use model::{Encoded, Revision};
use store::Stored;

use super::version::{Version, View};
use crate::registry::Object;

impl View {
    /// Whether stored bytes are as this version shows them, but for the version in front.
    pub fn fits(&self, stored: &[u8], revision: Revision) -> bool {
        let (version, _) = split_version(stored);
        let own = self.version();
        let is_alike = |other: &Version| Arc::ptr_eq(&other.schema, &own.schema);
        revision > self.versions.since
            && (version == own.api_version || self.versions.find(version).is_some_and(is_alike))
    }

    /// A stored object as this version has it: in the shape that its definition asks for by now.
    pub(crate) async fn open(&self, stored: &[u8], revision: Revision) -> Result<Object, Error> {
        let (version, _) = split_version(stored);
        let mut object: Object = serde_json::from_slice(stored).map_err(|error| {
            tracing::error!(%error, "a stored object cannot be read");
            Error::Internal { message: "a stored object cannot be read".to_owned() }
        })?;
        object.remove("apiVersion");
        if self.fits(stored, revision) {
            return Ok(object);
        }
        let source = self.versions.find(version).unwrap_or_else(|| self.version());
        source.schema.structural().prune(&mut object);
        source.schema.structural().default(&mut object);
        if source.name != self.version().name {
            self.structural().prune(&mut object);
        }
        Ok(object)
    }

    /// As [`View::open`], as bytes.
    pub(crate) async fn opened(&self, stored: &Bytes, revision: Revision) -> Result<Bytes, Error> {
        let object = self.open(stored, revision).await?;
        Ok(serde_json::to_vec(&object).expect("a JSON value always encodes").into())
    }

    /// As [`View::opened`], for all that need it.
    pub(crate) async fn open_all(&self, items: &mut [Stored]) -> Result<(), Error> {
        for item in items.iter_mut().filter(|item| !self.fits(&item.value, item.revision)) {
            item.value = self.opened(&item.value, item.revision).await?;
        }
        Ok(())
    }

    /// An object of this version as it is stored, with these managers: in the storage version, which stands in front.
    pub(crate) async fn sealed(
        &self,
        object: &Object,
        managed_fields: Option<&str>,
    ) -> Result<Encoded, Error> {
        let storage = self.versions.storage();
        if storage.name == self.version().name {
            return Ok(Encoded::of_version(&storage.api_version, object, managed_fields));
        }
        let mut object = object.clone();
        storage.schema.structural().prune(&mut object);
        Ok(Encoded::of_version(&storage.api_version, &object, managed_fields))
    }
}
