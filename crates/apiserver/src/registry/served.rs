//! A resource type, with what every request to it needs made ready.

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

/// A resource type, with what every request to it needs made ready.
pub struct Served {
    resource_type: ResourceType,
    /// Under which name its objects are stored.
    pub resource: Resource,
    /// A number of its own among all that show the same stored objects.
    pub view: u32,
    /// How an object begins on the wire. Objects are stored without kind, and without version or with the one that they are
    /// stored in, so that a list shows them as Kubernetes does and several versions can be views of the same bytes.
    pub opening: Bytes,
    /// Which plugins have something to say about it.
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

    /// A type that no path leads to, of objects that are made of others.
    pub(crate) fn alone(resource_type: ResourceType) -> Self {
        Self::new(resource_type, 0)
    }

    /// Stored bytes in the shape of this version; only where that differs are they parsed.
    pub(crate) fn shown<'a>(&self, stored: &'a [u8]) -> Result<Cow<'a, [u8]>, Error> {
        let Some(conversion) = self.conversion() else { return Ok(Cow::Borrowed(stored)) };
        let mut object = parse(stored)?;
        (conversion.from_stored)(&mut object);
        Ok(Cow::Owned(serde_json::to_vec(&object).expect("a JSON value always encodes")))
    }
}

impl Served {
    /// A stored object as a tree, in this version. Only writes and transformations pay for this.
    pub(crate) async fn read(&self, stored: &Stored) -> Result<Object, Error> {
        match &self.custom {
            Some(view) => view.open(&stored.value, stored.revision).await,
            None => parse(&stored.value),
        }
    }

    /// As [`Served::read`], for who need not know who manages its fields, which is half of many objects: they may be missing.
    pub(crate) async fn read_unmanaged(&self, stored: &Stored) -> Result<Object, Error> {
        match &self.custom {
            Some(view) => view.open(&stored.value, stored.revision).await,
            None => json::without_managers(&stored.value).map_err(unreadable),
        }
    }

    /// Whether a stored object is read as it is stored. One that was stored before its CRD changed may be read otherwise.
    pub(crate) fn reads_as_stored(&self, stored: &Stored) -> bool {
        self.custom.as_ref().is_none_or(|view| view.fits(&stored.value, stored.revision))
    }

    /// Stored bytes as those of this version. Of a type without a CRD all versions are views of the same bytes.
    pub(crate) async fn of_version(&self, value: Bytes, revision: Revision) -> Result<Bytes, Error> {
        match &self.custom {
            Some(view) if !view.fits(&value, revision) => view.opened(&value, revision).await,
            _ => Ok(value),
        }
    }

    /// As [`Served::of_version`], for many.
    pub(crate) async fn all_of_version(&self, mut items: Vec<Stored>) -> Result<Vec<Stored>, Error> {
        if let Some(view) = &self.custom {
            view.open_all(&mut items).await?;
        }
        Ok(items)
    }

    /// An object of this version as it is stored.
    pub(crate) async fn sealed(&self, object: &Object) -> Result<Encoded, Error> {
        self.sealed_with(object, own_managers(object).as_deref()).await
    }

    /// An object that was prepared and validated, as it is read once it is stored.
    pub(crate) fn completed<'a>(&self, object: &'a Object) -> Cow<'a, Object> {
        self.custom.as_ref().map_or(Cow::Borrowed(object), |view| view.completed(object))
    }

    /// As [`Served::sealed`], with these managers in the place of those that it has.
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
    tracing::error!(%error, "a stored object cannot be read");
    Error::Internal { message: "a stored object cannot be read".to_owned() }
}

impl Deref for Served {
    type Target = ResourceType;

    fn deref(&self) -> &ResourceType {
        &self.resource_type
    }
}
