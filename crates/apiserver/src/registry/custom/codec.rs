//! Decoding of stored custom objects into a version, and encoding.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use model::encoded::split_version;
use model::error::Error;
use model::{Encoded, Revision};
use store::Stored;

use super::conversion::Conversion;
use super::version::{CrdVersion, Version};
use crate::registry::Object;

impl CrdVersion {
    /// Whether stored bytes need no conversion for this version, except its name.
    pub fn fits(&self, stored: &[u8], revision: Revision) -> bool {
        let (version, _) = split_version(stored);
        let own = self.version();
        let is_alike = |other: &Version| {
            matches!(self.versions.conversion, Conversion::None) && Arc::ptr_eq(&other.schema, &own.schema)
        };
        revision > self.versions.since
            && (version == own.api_version || self.versions.find(version).is_some_and(is_alike))
    }

    /// Decodes a stored object into this version and the current schema.
    pub(crate) async fn open(&self, stored: &[u8], revision: Revision) -> Result<Object, Error> {
        let (source, object) = self.parse(stored, revision)?;
        let mut converted = self.convert(source, self.version(), vec![object]).await?;
        Ok(converted.pop().unwrap_or_default())
    }

    /// Like [`CrdVersion::open`], as bytes.
    pub(crate) async fn opened(&self, stored: &Bytes, revision: Revision) -> Result<Bytes, Error> {
        Ok(encoded(&self.open(stored, revision).await?))
    }

    /// Like [`CrdVersion::opened`] for many: objects stored in the same version are converted in one call.
    pub(crate) async fn open_all(&self, items: &mut [Stored]) -> Result<(), Error> {
        for source in &self.versions.all {
            let mut positions = Vec::new();
            let mut objects = Vec::new();
            for (position, item) in items.iter().enumerate() {
                let (version, _) = split_version(&item.value);
                if version == source.api_version && !self.fits(&item.value, item.revision) {
                    positions.push(position);
                    objects.push(self.parse(&item.value, item.revision)?.1);
                }
            }
            for (position, object) in
                positions.into_iter().zip(self.convert(source, self.version(), objects).await?)
            {
                items[position].value = encoded(&object);
            }
        }
        Ok(())
    }

    /// Encodes an object of this version in the storage version, with these managedFields.
    pub(crate) async fn sealed(
        &self,
        object: &Object,
        managed_fields: Option<&str>,
    ) -> Result<Encoded, Error> {
        let storage = self.versions.storage();
        if storage.name == self.version().name {
            return Ok(Encoded::of_version(&storage.api_version, object, managed_fields));
        }
        let mut converted = self.convert(self.version(), storage, vec![object.clone()]).await?;
        // Stored objects have all defaults, so that reads do not need the schema.
        converted.iter_mut().for_each(|object| storage.schema.structural().default(object));
        let empty = Object::new();
        Ok(Encoded::of_version(&storage.api_version, converted.first().unwrap_or(&empty), managed_fields))
    }

    /// The object as it reads after the write: a status that the write dropped has its default.
    pub(crate) fn completed<'a>(&self, object: &'a Object) -> Cow<'a, Object> {
        let version = self.version();
        // Other versions get their defaults in the conversion.
        let is_stored_as_is = version.has_status && self.versions.storage().name == version.name;
        let status = || self.structural().root().field("status");
        if !is_stored_as_is
            || object.contains_key("status")
            || status().is_none_or(|status| status.default.is_none())
        {
            return Cow::Borrowed(object);
        }
        let mut completed = object.clone();
        self.structural().default(&mut completed);
        Cow::Owned(completed)
    }

    /// Parses a stored object, and returns the version that it is stored in.
    fn parse(&self, stored: &[u8], revision: Revision) -> Result<(&Version, Object), Error> {
        let (version, _) = split_version(stored);
        let source = self.versions.find(version).unwrap_or_else(|| self.version());
        let mut object: Object = serde_json::from_slice(stored).map_err(|error| {
            tracing::error!(%error, "cannot parse a stored custom object");
            Error::Internal { message: "cannot parse a stored object".to_owned() }
        })?;
        object.remove("apiVersion");
        if revision <= self.versions.since {
            source.schema.structural().prune(&mut object);
            source.schema.structural().default(&mut object);
        }
        Ok((source, object))
    }

    async fn convert(
        &self,
        from: &Version,
        to: &Version,
        objects: Vec<Object>,
    ) -> Result<Vec<Object>, Error> {
        if from.name == to.name || objects.is_empty() {
            return Ok(objects);
        }
        let mut objects = match &self.versions.conversion {
            Conversion::None => objects,
            Conversion::Webhook(webhook) => {
                let typed = |mut object: Object| {
                    object.insert("kind".to_owned(), self.versions.kind.clone().into());
                    object.insert("apiVersion".to_owned(), from.api_version.clone().into());
                    object
                };
                let typed = objects.into_iter().map(typed).collect();
                webhook.convert(&self.versions.kind, typed, &to.api_version).await?
            }
        };
        for object in &mut objects {
            object.remove("kind");
            object.remove("apiVersion");
            to.schema.structural().prune(object);
        }
        Ok(objects)
    }
}

fn encoded(object: &Object) -> Bytes {
    serde_json::to_vec(object).expect("a JSON value always encodes").into()
}
