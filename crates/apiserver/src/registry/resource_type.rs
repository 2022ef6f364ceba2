//! A resource type: one entry of the registry, built-in or custom alike.

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

/// Everything the server knows about a resource in one version. A plain value: make one, change fields, register it.
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
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// What may be done with it: any combination.
    pub verbs: Verbs,
    /// The parts that are read or written by themselves, in the order of their names.
    pub subresources: Vec<Subresource>,
    /// Where its objects are those of another type, or of another version of it.
    pub stored_as: Option<StoredAs>,
    /// Whether a deletion is answered with the object that is gone, instead of a `Status`.
    pub shows_deleted: bool,
    /// Whether bodies may be protobuf.
    pub protobuf: bool,
    /// What is checked, completed and computed when objects are written.
    pub strategy: Arc<dyn Strategy>,
    /// Answers its objects, none of which is stored then.
    pub review: Option<Arc<dyn Review>>,
    /// How objects look as rows.
    pub table: Arc<dyn TableRenderer>,
    /// What a CRD says of it, where it comes from one.
    pub custom: Option<CrdVersion>,
}

/// The stored form of objects that several types, or several versions of one, show each in its own way.
#[derive(Clone, Debug)]
pub struct StoredAs {
    /// The group that the objects are stored under.
    pub group: String,
    /// The version whose shape they are stored in.
    pub version: String,
    /// How that differs from this version; `None` where the fields are the same.
    pub conversion: Option<&'static Conversion>,
}

/// A part of an object with a path of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// Its name in the path.
    pub name: String,
    /// Group, version and kind of what it gives; `None` for the object itself.
    pub kind: Option<(String, String, String)>,
    /// What may be done with it.
    pub verbs: Verbs,
}

impl Subresource {
    /// The status, which is read, updated and patched apart from the rest.
    pub fn status() -> Self {
        let verbs = Verbs::of(&[Verb::Get, Verb::Patch, Verb::Update]);
        Self { name: "status".to_owned(), kind: None, verbs }
    }
}

impl ResourceType {
    /// A namespaced type with all verbs, no rules of its own, and names made from its kind.
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

    /// Under which name its objects are stored.
    pub fn resource(&self) -> Resource {
        Resource::new(self.stored_as.as_ref().map_or(&self.group, |stored| &stored.group), &self.plural)
    }

    /// How its fields differ from those that are stored, if they do.
    pub fn conversion(&self) -> Option<&'static Conversion> {
        self.stored_as.as_ref().and_then(|stored| stored.conversion)
    }

    /// In which encodings bodies may come and go.
    pub fn offer(&self) -> Offer {
        Offer { protobuf: self.protobuf, tables: self.review.is_none(), metadata: true }
    }

    /// What may be done at a path below an object, or with the object itself (an empty name); `None`: there is no such path.
    pub fn verbs_of(&self, subresource: &str) -> Option<Verbs> {
        if subresource.is_empty() {
            return Some(self.verbs);
        }
        self.subresources.iter().find(|sub| sub.name == subresource).map(|sub| sub.verbs)
    }

    /// Whether it is the type of the namespaces themselves.
    pub fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.plural == "namespaces"
    }

    /// Whether it is the type of the CRDs of others.
    pub fn is_crd(&self) -> bool {
        self.group == "apiextensions.k8s.io" && self.plural == "customresourcedefinitions"
    }

    /// Whether it is the type of parts of the control plane, none of which is stored.
    pub fn is_component_status(&self) -> bool {
        self.group.is_empty() && self.plural == "componentstatuses"
    }

    /// Whether it is the type of bindings, none of which is stored: they give pods to nodes.
    pub fn is_binding(&self) -> bool {
        self.group.is_empty() && self.kind == "Binding"
    }

    /// Whether its objects are kept, and not only answered.
    pub fn is_stored(&self) -> bool {
        self.review.is_none() && !self.is_binding() && !self.is_component_status()
    }

    /// "There is no such object."
    pub fn not_found(&self, name: &str) -> Error {
        Error::NotFound { group: self.group.clone(), resource: self.plural.clone(), name: name.to_owned() }
    }

    /// "This breaks these rules."
    pub fn invalid(&self, name: &str, errors: Vec<FieldError>) -> Error {
        // The rules are those of the stored form, and Kubernetes says so.
        let group = self.stored_as.as_ref().map_or(&self.group, |stored| &stored.group).clone();
        Error::Invalid { group, kind: self.kind.clone(), name: name.to_owned(), errors }
    }

    /// "Somebody else was faster", in the words of the reason given.
    pub fn conflict(&self, name: &str, message: impl Into<String>) -> Error {
        Error::Conflict {
            group: self.group.clone(),
            resource: self.plural.clone(),
            name: name.to_owned(),
            message: message.into(),
        }
    }

    /// Whether a path has the shape that its scope asks for: a namespace for one object of a namespaced type, none else.
    pub fn fits(&self, path: &ResourcePath) -> bool {
        if self.namespaced {
            path.name.is_empty() || !path.namespace.is_empty()
        } else {
            self.is_namespace() || path.namespace.is_empty()
        }
    }
}
