//! The registry: every resource type that the server serves, found by group, version and plural.

pub mod resource_type;
pub mod strategy;
pub mod table;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use model::Resource;
use model::error::Error;

pub use resource_type::{ResourceType, StoredAs, Subresource};
pub use strategy::{Object, Strategy};
pub use table::TableRenderer;

/// A resource type, with what every request to it needs made ready.
pub struct Served {
    resource_type: ResourceType,
    /// Under which name its objects are stored.
    pub resource: Resource,
    /// Which of the types that show the same stored objects it is.
    pub view: u32,
    /// How an object begins on the wire. Objects are stored without kind and version, so that a list shows them as Kubernetes
    /// does and several versions can be views of the same bytes.
    pub opening: Bytes,
}

impl Served {
    fn new(resource_type: ResourceType, view: u32) -> Self {
        let opening = format!(
            "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",",
            resource_type.kind,
            resource_type.api_version()
        );
        Self { resource: resource_type.resource(), view, opening: opening.into(), resource_type }
    }

    /// A type that no path leads to, of objects that are made of others.
    pub(crate) fn alone(resource_type: ResourceType) -> Self {
        Self::new(resource_type, 0)
    }

    /// Stored bytes in the shape of this version; only where that differs are they parsed.
    pub(crate) fn shown<'a>(&self, stored: &'a [u8]) -> Result<Cow<'a, [u8]>, Error> {
        let Some(conversion) = self.conversion() else { return Ok(Cow::Borrowed(stored)) };
        let unreadable = |error: serde_json::Error| {
            tracing::error!(%error, "a stored object cannot be read");
            Error::Internal { message: "a stored object cannot be read".to_owned() }
        };
        let mut object: Object = serde_json::from_slice(stored).map_err(unreadable)?;
        (conversion.from_stored)(&mut object);
        serde_json::to_vec(&object).map(Cow::Owned).map_err(unreadable)
    }
}

impl Deref for Served {
    type Target = ResourceType;

    fn deref(&self) -> &ResourceType {
        &self.resource_type
    }
}

/// All resource types, in the order in which they were registered. Immutable: a change makes another one.
#[derive(Clone, Default)]
pub struct Registry {
    types: Vec<Arc<Served>>,
    by_path: HashMap<String, HashMap<String, HashMap<String, Arc<Served>>>>,
}

impl Registry {
    /// Adds a type; one of the same group, version and plural is replaced.
    pub fn register(&mut self, resource_type: ResourceType) {
        let view = self.types.iter().filter(|other| other.resource == resource_type.resource()).count();
        let view = u32::try_from(view).unwrap_or(u32::MAX);
        let resource_type = Arc::new(Served::new(resource_type, view));
        let same = |other: &Arc<Served>| {
            (&other.group, &other.version, &other.plural)
                == (&resource_type.group, &resource_type.version, &resource_type.plural)
        };
        match self.types.iter().position(same) {
            Some(at) => self.types[at] = resource_type.clone(),
            None => self.types.push(resource_type.clone()),
        }
        let versions = self.by_path.entry(resource_type.group.clone()).or_default();
        let plurals = versions.entry(resource_type.version.clone()).or_default();
        plurals.insert(resource_type.plural.clone(), resource_type);
    }

    /// The type that is served at a path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Served>> {
        self.by_path.get(group)?.get(version)?.get(plural)
    }

    /// Whether there is any type of a group.
    pub fn has_group(&self, group: &str) -> bool {
        self.by_path.contains_key(group)
    }

    /// All types.
    pub fn types(&self) -> &[Arc<Served>] {
        &self.types
    }

    /// Groups with their versions, in the order of registration; the core group has the empty name.
    pub fn groups(&self) -> Vec<(&str, Vec<&str>)> {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for resource_type in &self.types {
            let group = match groups.iter_mut().find(|(name, _)| *name == resource_type.group) {
                Some(group) => group,
                None => {
                    groups.push((&resource_type.group, Vec::new()));
                    groups.last_mut().expect("it was pushed just now")
                }
            };
            if !group.1.contains(&resource_type.version.as_str()) {
                group.1.push(&resource_type.version);
            }
        }
        groups
    }

    /// The types of one group version.
    pub fn of_version<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a ResourceType> {
        let of_version = move |t: &&'a Arc<Served>| t.group == group && t.version == version;
        self.types.iter().filter(of_version).map(|served| &***served)
    }
}
