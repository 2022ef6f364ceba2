//! A registered resource type, with precomputed data for requests.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::OnceLock;

use bytes::Bytes;
use model::encoded::own_managers;
use model::error::Error;
use model::{Encoded, Resource, Revision, json};
use store::Stored;

use super::{Object, ResourceType};
use crate::admission::ResourcePlugins;

/// A registered resource type, with precomputed data for requests.
pub struct Served {
    resource_type: ResourceType,
    /// The resource in the store.
    pub resource: Resource,
    /// Unique among the types of the same stored objects.
    pub view: u32,
    /// The first bytes of an object in JSON: kind and apiVersion. Stored objects lack them, so that lists look as in
    /// Kubernetes and several versions share the same bytes.
    pub opening: Bytes,
    /// The admission plugins of the type.
    pub(crate) admission: OnceLock<ResourcePlugins>,
}

impl Served {
    pub(super) fn new(resource_type: ResourceType, view: u32) -> Self {
        let opening = format!(
            "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",",
            resource_type.kind,
            resource_type.api_version()
        );
        let (resource, admission) = (resource_type.resource(), OnceLock::new());
        Self { resource, view, opening: opening.into(), admission, resource_type }
    }

    /// A type without a path, for subresource objects.
    pub(crate) fn without_path(resource_type: ResourceType) -> Self {
        Self::new(resource_type, 0)
    }

    /// Stored bytes in this version. Parsed only if the version differs.
    pub(crate) fn shown<'a>(&self, stored: &'a [u8]) -> Result<Cow<'a, [u8]>, Error> {
        let Some(conversion) = self.conversion() else { return Ok(Cow::Borrowed(stored)) };
        let mut object = parse(stored)?;
        (conversion.from_stored)(&mut object);
        Ok(Cow::Owned(serde_json::to_vec(&object).expect("a JSON value always encodes")))
    }
}

impl Served {
    /// Parses a stored object in this version. Only writes and conversions need this.
    pub(crate) async fn read(&self, stored: &Stored) -> Result<Object, Error> {
        match &self.custom {
            Some(view) => view.open(&stored.value, stored.revision).await,
            None => parse(&stored.value),
        }
    }

    /// Like [`Served::read`], but may drop managedFields, which is half the size of many objects. For callers that do not use
    /// them.
    pub(crate) async fn read_unmanaged(&self, stored: &Stored) -> Result<Object, Error> {
        match &self.custom {
            Some(view) => view.open(&stored.value, stored.revision).await,
            None => json::without_managers(&stored.value).map_err(unreadable),
        }
    }

    /// Whether a stored object needs no conversion. An object stored before its CRD changed may need one.
    pub(crate) fn reads_as_stored(&self, stored: &Stored) -> bool {
        self.custom.as_ref().is_none_or(|view| view.fits(&stored.value, stored.revision))
    }

    /// Stored bytes in this version. All versions of a built-in type share the same bytes.
    pub(crate) async fn of_version(&self, value: Bytes, revision: Revision) -> Result<Bytes, Error> {
        match &self.custom {
            Some(view) if !view.fits(&value, revision) => view.opened(&value, revision).await,
            _ => Ok(value),
        }
    }

    /// Like [`Served::of_version`] for many objects.
    pub(crate) async fn all_of_version(&self, mut items: Vec<Stored>) -> Result<Vec<Stored>, Error> {
        if let Some(view) = &self.custom {
            view.open_all(&mut items).await?;
        }
        Ok(items)
    }

    /// Encodes an object of this version.
    pub(crate) async fn sealed(&self, object: &Object) -> Result<Encoded, Error> {
        self.sealed_with(object, own_managers(object).as_deref()).await
    }

    /// The object as it reads after the write.
    pub(crate) fn completed<'a>(&self, object: &'a Object) -> Cow<'a, Object> {
        self.custom.as_ref().map_or(Cow::Borrowed(object), |view| view.completed(object))
    }

    /// Like [`Served::sealed`], with these managedFields.
    pub(crate) async fn sealed_with(
        &self,
        object: &Object,
        managed_fields: Option<&str>,
    ) -> Result<Encoded, Error> {
        match &self.custom {
            Some(view) => view.sealed(object, managed_fields).await,
            None => Ok(Encoded::managed(object, managed_fields)),
        }
    }
}

fn parse(stored: &[u8]) -> Result<Object, Error> {
    serde_json::from_slice(stored).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> Error {
    tracing::error!(%error, "cannot parse a stored object");
    Error::Internal { message: "cannot parse a stored object".to_owned() }
}

impl Deref for Served {
    type Target = ResourceType;

    fn deref(&self) -> &ResourceType {
        &self.resource_type
    }
}
