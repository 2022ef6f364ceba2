//! Identity of an object: its resource, namespace and name, and the uid of one life of that name.

use std::fmt;
use std::sync::Arc;

/// A resource in its group, written as Kubernetes writes it: `configmaps`, `leases.coordination.k8s.io`.
///
/// The version is not part of it: all versions of a resource are views of the same stored objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(Arc<str>);

impl Resource {
    /// The resource `plural` of `group` (empty for the core group).
    pub fn new(group: &str, plural: &str) -> Self {
        if group.is_empty() { Self(plural.into()) } else { Self(format!("{plural}.{group}").into()) }
    }

    /// The inverse of [`Resource::as_str`].
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// `plural` or `plural.group`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of an object in the store. Keys order by bytes, in the order of the fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The resource of the object.
    pub resource: Resource,
    /// Empty for cluster-scoped resources.
    pub namespace: String,
    /// Unique within resource and namespace.
    pub name: String,
}

impl ObjectKey {
    /// The key of `name` in `namespace` (empty for cluster-scoped resources).
    pub fn new(resource: &Resource, namespace: &str, name: &str) -> Self {
        Self { resource: resource.clone(), namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.resource, self.namespace, self.name)
    }
}

/// One life of a name: a name that is deleted and created again has another uid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Uid(pub String);

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
