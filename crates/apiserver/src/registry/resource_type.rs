//! A resource type: one entry of the registry, built-in or custom.

use std::sync::Arc;

use kinds::conversion::Conversion;
use model::Resource;
use model::error::{Error, FieldError};

use super::custom::CrdVersion;
use super::strategy::{Plain, Strategy};
use super::table::{NameAndAge, TableRenderer};
use crate::request::negotiate::Offer;
use crate::request::path::ResourcePath;
use crate::request::verb::{Verb, Verbs};
use crate::reviews::Review;

/// A resource in one version. A plain value: create one, change fields, register it.
#[derive(Clone)]
pub struct ResourceType {
    /// Empty for the core group.
    pub group: String,
    /// For instance `v1`.
    pub version: String,
    /// For instance `ConfigMap`.
    pub kind: String,
    /// For instance `configmaps`.
    pub plural: String,
    /// For instance `configmap`.
    pub singular: String,
    /// For instance `cm`.
    pub short_names: Vec<String>,
    /// For instance `all`.
    pub categories: Vec<String>,
    /// Whether it is namespaced.
    pub namespaced: bool,
    /// The supported verbs.
    pub verbs: Verbs,
    /// The subresources, ordered by name.
    pub subresources: Vec<Subresource>,
    /// The stored form, if it differs from this type.
    pub stored_as: Option<StoredAs>,
    /// Whether a delete returns the object instead of a `Status`.
    pub shows_deleted: bool,
    /// Whether it supports protobuf.
    pub protobuf: bool,
    /// The hooks of a write.
    pub strategy: Arc<dyn Strategy>,
    /// Serves a review kind, whose objects are not stored.
    pub review: Option<Arc<dyn Review>>,
    /// The table columns.
    pub table: Arc<dyn TableRenderer>,
    /// The CRD version, for custom types.
    pub custom: Option<CrdVersion>,
}

/// The stored form of objects that several types or versions share.
#[derive(Clone, Debug)]
pub struct StoredAs {
    /// The group of the stored objects.
    pub group: String,
    /// The version of the stored objects.
    pub version: String,
    /// The conversion from the stored form; `None` if the fields are the same.
    pub conversion: Option<&'static Conversion>,
}

/// A subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// Its name in the path.
    pub name: String,
    /// Group, version and kind of its object; `None` for the parent type.
    pub kind: Option<(String, String, String)>,
    /// The supported verbs.
    pub verbs: Verbs,
}

impl Subresource {
    /// The status subresource: get, update, patch.
    pub fn status() -> Self {
        let verbs = Verbs::of(&[Verb::Get, Verb::Patch, Verb::Update]);
        Self { name: "status".to_owned(), kind: None, verbs }
    }
}

impl ResourceType {
    /// A namespaced type with all verbs, without rules, and with names derived from its kind.
    pub fn new(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            verbs: Verbs::ALL,
            subresources: Vec::new(),
            stored_as: None,
            shows_deleted: false,
            protobuf: false,
            strategy: Arc::new(Plain),
            review: None,
            table: Arc::new(NameAndAge),
            custom: None,
        }
    }

    /// `v1` or `group/version`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The path of its group version.
    pub fn base_path(&self) -> String {
        if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        }
    }

    /// The kind of a list of it.
    pub fn list_kind(&self) -> String {
        match &self.custom {
            Some(view) => view.versions.list_kind.clone(),
            None => format!("{}List", self.kind),
        }
    }

    /// The resource in the store.
    pub fn resource(&self) -> Resource {
        Resource::new(self.stored_as.as_ref().map_or(&self.group, |stored| &stored.group), &self.plural)
    }

    /// The conversion from the stored form, if the fields differ.
    pub fn conversion(&self) -> Option<&'static Conversion> {
        self.stored_as.as_ref().and_then(|stored| stored.conversion)
    }

    /// The supported media types.
    pub fn offer(&self) -> Offer {
        Offer { protobuf: self.protobuf, tables: self.review.is_none(), metadata: true }
    }

    /// The verbs of a subresource, or of the object itself (empty name); `None` if there is no such subresource.
    pub fn verbs_of(&self, subresource: &str) -> Option<Verbs> {
        if subresource.is_empty() {
            return Some(self.verbs);
        }
        self.subresources.iter().find(|sub| sub.name == subresource).map(|sub| sub.verbs)
    }

    /// Whether it is the type of Namespaces.
    pub fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.plural == "namespaces"
    }

    /// Whether it is the type of CRDs.
    pub fn is_crd(&self) -> bool {
        self.group == "apiextensions.k8s.io" && self.plural == "customresourcedefinitions"
    }

    /// Whether it is the type of ComponentStatuses, which are not stored.
    pub fn is_component_status(&self) -> bool {
        self.group.is_empty() && self.plural == "componentstatuses"
    }

    /// Whether it is the type of Bindings, which are not stored.
    pub fn is_binding(&self) -> bool {
        self.group.is_empty() && self.kind == "Binding"
    }

    /// Whether its objects are stored.
    pub fn is_stored(&self) -> bool {
        self.review.is_none() && !self.is_binding() && !self.is_component_status()
    }

    /// A 404 for this name.
    pub fn not_found(&self, name: &str) -> Error {
        Error::NotFound { group: self.group.clone(), resource: self.plural.clone(), name: name.to_owned() }
    }

    /// A 422 with field errors.
    pub fn invalid(&self, name: &str, errors: Vec<FieldError>) -> Error {
        // Kubernetes names the group of the stored form.
        let group = self.stored_as.as_ref().map_or(&self.group, |stored| &stored.group).clone();
        Error::Invalid { group, kind: self.kind.clone(), name: name.to_owned(), errors }
    }

    /// A 409 with this message.
    pub fn conflict(&self, name: &str, message: impl Into<String>) -> Error {
        Error::Conflict {
            group: self.group.clone(),
            resource: self.plural.clone(),
            name: name.to_owned(),
            message: message.into(),
        }
    }

    /// Whether a path fits the scope: a namespaced object needs a namespace, other types must have none.
    pub fn fits(&self, path: &ResourcePath) -> bool {
        if self.namespaced {
            path.name.is_empty() || !path.namespace.is_empty()
        } else {
            self.is_namespace() || path.namespace.is_empty()
        }
    }
}
