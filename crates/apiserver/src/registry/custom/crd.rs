//! A CRD: from the stored object to the types that it serves.

use std::sync::Arc;

use bytes::Bytes;
use kinds::structural::{Columns, Selectable};
use model::condition::is_condition_true;
use model::object::{items, text_in};
use model::{ObjectKey, Resource, Revision, Uid};
use process::Shutdown;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::conversion::Conversion;
use super::strategy::Custom;
use super::version::{CrdVersion, ScalePaths, Schema, Version, Versions, deprecation};
use crate::crds::conditions::CLEANUP;
use crate::registry::{Object, ResourceType, Served, StoredAs, Subresource};
use crate::request::verb::{Verb, Verbs};
use crate::webhook::Services;

/// A parsed CRD, before its types are built.
pub(crate) struct ParsedCrd {
    pub group: Arc<str>,
    pub plural: Arc<str>,
    pub uid: Uid,
    pub revision: Revision,
    pub object: Object,
    /// Resolves the Service of its conversion webhook.
    pub services: Services,
}

impl ParsedCrd {
    /// `None` if the object is invalid, which validation prevents.
    pub fn new(uid: Uid, revision: Revision, value: &[u8], services: &Services) -> Option<Self> {
        let object: Object = serde_json::from_slice(value).ok()?;
        let spec = object.get("spec")?;
        let group = spec.get("group")?.as_str()?.into();
        let plural = spec.pointer("/names/plural")?.as_str()?.into();
        Some(Self { group, plural, uid, revision, object, services: services.clone() })
    }

    fn is_true(&self, condition: &str) -> bool {
        is_condition_true(items(&self.object, &["status", "conditions"]), condition)
    }

    fn accepted_names(&self) -> &Value {
        self.object.get("status").and_then(|status| status.get("acceptedNames")).unwrap_or(&Value::Null)
    }
}

/// The state of a CRD that a write of its objects requires: an object shaped by an older schema must not be stored.
pub(crate) fn state(crd: &Object) -> String {
    let metadata = crd.get("metadata").unwrap_or(&Value::Null);
    let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
    let ending = if text_in(metadata, "deletionTimestamp").is_empty() { "" } else { " ending" };
    format!("{generation}{ending}")
}

/// A CRD with its types.
pub struct Crd {
    /// The group of its types.
    pub group: Arc<str>,
    /// The plural name of its types.
    pub plural: Arc<str>,
    /// `status.acceptedNames`.
    pub accepted_names: Value,
    /// The uid of the object.
    pub uid: Uid,
    /// The revision of the object.
    pub revision: Revision,
    /// The state that a write of its objects requires.
    pub state: String,
    /// Whether it is terminating: no objects are created.
    pub is_terminating: bool,
    /// Whether it has the cleanup finalizer and waits for the deletion of its objects.
    pub needs_finalizing: bool,
    /// Whether all of its names are accepted.
    pub has_all_names: bool,
    /// The versions that its types share.
    pub versions: Arc<Versions>,
    /// A digest of the spec.
    spec: Vec<u8>,
    types: Vec<Arc<Served>>,
}

impl Crd {
    /// Builds the types of a CRD. Types of the previous CRD are reused if nothing about them changed.
    pub(crate) fn new(read: ParsedCrd, known: Option<&Self>, views: &mut u32) -> Self {
        let spec = encoded(read.object.get("spec").unwrap_or(&Value::Null));
        let spec = digest(&SHA256, &spec).as_ref().to_vec();
        let is_served = read.is_true("Established") || read.is_true("NamesAccepted");
        let accepted_names = read.accepted_names().clone();
        let state = state(&read.object);
        let is_terminating = state.ends_with("ending") || read.is_true("Terminating");
        let finalizers = read.object.get("metadata").and_then(|metadata| metadata.get("finalizers"));
        let mut finalizers = finalizers.and_then(Value::as_array).into_iter().flatten();
        let needs_finalizing = state.ends_with("ending") && finalizers.any(|name| name == CLEANUP);
        let names = read.object.get("spec").and_then(|spec| spec.get("names"));
        let has_all_names = names == Some(&accepted_names);
        let same = known.filter(|known| {
            known.spec == spec && known.accepted_names == accepted_names && known.uid == read.uid
        });
        let versions = match (same, known) {
            (Some(same), _) => same.versions.clone(),
            (None, known) => {
                match known {
                    Some(known) if known.uid == read.uid => known.versions.changed.request(),
                    Some(known) => known.end(),
                    None => {}
                }
                Arc::new(versions(&read, known.filter(|known| known.uid == read.uid)))
            }
        };
        let types = match same {
            _ if !is_served => Vec::new(),
            Some(same) if !same.types.is_empty() => same.types.clone(),
            _ => types(&read, &versions, views),
        };
        let ParsedCrd { group, plural, uid, revision, .. } = read;
        Self {
            group,
            plural,
            accepted_names,
            uid,
            revision,
            state,
            is_terminating,
            needs_finalizing,
            has_all_names,
            versions,
            spec,
            types,
        }
    }

    /// Its key in the store.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&Resource::new("apiextensions.k8s.io", "customresourcedefinitions"), "", &self.name())
    }

    /// Its object name.
    pub fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Its served types.
    pub fn types(&self) -> impl Iterator<Item = &Arc<Served>> {
        let is_served = |of: &&Arc<Served>| of.custom.as_ref().is_some_and(|view| view.version().served);
        self.types.iter().filter(is_served)
    }

    /// The type of a version.
    pub fn served(&self, version: &str) -> Option<&Arc<Served>> {
        self.types().find(|served| served.version == version)
    }

    /// The type of the storage version, served or not; `None` if no type is served.
    pub fn stored(&self) -> Option<&Arc<Served>> {
        self.types.get(self.versions.storage)
    }

    /// Ends watches and waits on its objects.
    pub(crate) fn end(&self) {
        self.versions.deleted.request();
        self.versions.changed.request();
    }
}

fn versions(read: &ParsedCrd, known: Option<&Crd>) -> Versions {
    let ParsedCrd { group, object, .. } = read;
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let list = spec.get("versions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let keeps_unknown = spec.get("preserveUnknownFields").and_then(Value::as_bool).unwrap_or(false);
    let names = read.accepted_names();
    let kind = text_in(names, "kind").to_owned();
    let mut schemas: Vec<Arc<Schema>> = known
        .map(|known| known.versions.all.iter().map(|version| version.schema.clone()).collect())
        .unwrap_or_default();
    let mut all: Vec<Version> = Vec::new();
    for entry in list {
        // A schema that several versions, or the previous CRD, share is compiled once.
        let schema = Schema::of(entry.pointer("/schema/openAPIV3Schema"), keeps_unknown, &schemas);
        schemas.push(schema.clone());
        all.push(version(group, &kind, entry, list, schema));
    }
    let is_storage = |entry: &Value| flag(entry, "storage");
    let storage = list.iter().position(is_storage).unwrap_or_default();
    let same_shapes = |known: &&Crd| {
        let same = |a: &Version, b: &Version| a.name == b.name && Arc::ptr_eq(&a.schema, &b.schema);
        let known = &known.versions.all;
        known.len() == all.len() && known.iter().zip(&all).all(|(a, b)| same(a, b))
    };
    let since = known.filter(same_shapes).map_or(read.revision, |known| known.versions.since);
    let list_kind = text_in(names, "listKind").to_owned();
    let conversion = Conversion::read(spec.get("conversion").unwrap_or(&Value::Null), &read.services);
    let (group, changed, deleted) = (group.clone(), Shutdown::new(), Shutdown::new());
    Versions { group, kind, list_kind, all, storage, since, conversion, changed, deleted }
}

fn version(group: &str, kind: &str, entry: &Value, all: &[Value], schema: Arc<Schema>) -> Version {
    let name = text_in(entry, "name").to_owned();
    let list = |key: &str| entry.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let good: Vec<(&str, bool)> = all
        .iter()
        .map(|other| (text_in(other, "name"), flag(other, "served") && !flag(other, "deprecated")))
        .collect();
    let warning = flag(entry, "deprecated").then(|| match text_in(entry, "deprecationWarning") {
        "" => deprecation(group, kind, &name, &good),
        own => own.to_owned(),
    });
    let path = |scale: &Value, key: &str| text_in(scale, key).trim_start_matches('.').to_owned();
    let scale = entry.pointer("/subresources/scale").map(|scale| ScalePaths {
        replicas: path(scale, "specReplicasPath"),
        status_replicas: path(scale, "statusReplicasPath"),
        selector: scale.get("labelSelectorPath").map(|_| path(scale, "labelSelectorPath")),
    });
    Version {
        api_version: format!("{group}/{name}"),
        served: flag(entry, "served"),
        warning,
        has_status: entry.pointer("/subresources/status").is_some(),
        scale,
        selectable: Selectable::compile(list("selectableFields")),
        columns: Columns::compile(list("additionalPrinterColumns")),
        schema,
        name,
    }
}

/// The types of all versions.
fn types(read: &ParsedCrd, versions: &Arc<Versions>, views: &mut u32) -> Vec<Arc<Served>> {
    let names = read.accepted_names();
    let texts = |key: &str| {
        let list = names.get(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let storage = versions.all.get(versions.storage).map(|version| version.name.clone()).unwrap_or_default();
    let namespaced = read.object.get("spec").is_some_and(|spec| text_in(spec, "scope") == "Namespaced");
    let all = versions.all.iter().enumerate();
    all.map(|(index, version)| {
        let view = CrdVersion { versions: versions.clone(), index };
        let mut of = ResourceType::new(&read.group, &version.name, &versions.kind, &read.plural);
        text_in(names, "singular").clone_into(&mut of.singular);
        of.short_names = texts("shortNames");
        of.categories = texts("categories");
        of.namespaced = namespaced;
        of.subresources = subresources(version);
        of.stored_as =
            Some(StoredAs { group: read.group.to_string(), version: storage.clone(), conversion: None });
        let strategy = Arc::new(Custom::new(view.clone()));
        of.strategy = strategy.clone();
        of.table = strategy;
        of.custom = Some(view);
        *views += 1;
        Arc::new(Served::new(of, *views))
    })
    .collect()
}

fn subresources(version: &Version) -> Vec<Subresource> {
    let scale = || Subresource {
        name: "scale".to_owned(),
        kind: Some(("autoscaling".to_owned(), "v1".to_owned(), "Scale".to_owned())),
        verbs: Verbs::of(&[Verb::Get, Verb::Patch, Verb::Update]),
    };
    let status = version.has_status.then(Subresource::status);
    status.into_iter().chain(version.scale.is_some().then(scale)).collect()
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn encoded(value: &Value) -> Bytes {
    serde_json::to_vec(value).expect("a JSON value always encodes").into()
}
