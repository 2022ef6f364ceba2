//! The versions of a CRD with their schemas, which are compiled on first use.

use std::sync::{Arc, LazyLock, OnceLock};

use kinds::apply;
use kinds::structural::{Columns, Selectable, Structural};
use model::Revision;
use process::Shutdown;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::compressed::Compressed;
use super::conversion::Conversion;
use super::version_priority::version_order;
use crate::registry::Object;

/// The versions of a CRD.
pub struct Versions {
    /// The group.
    pub group: Arc<str>,
    /// The kind of the objects.
    pub kind: String,
    /// The kind of lists.
    pub list_kind: String,
    /// All versions, served or not, in the order of the CRD.
    pub all: Vec<Version>,
    /// The index of the storage version.
    pub storage: usize,
    /// Objects of later revisions conform to the schema; older ones are pruned and defaulted when they are read.
    pub since: Revision,
    /// The conversion between versions.
    pub(crate) conversion: Conversion,
    /// Cancelled when the CRD is changed or deleted: ends watches of its objects.
    pub changed: Shutdown,
    /// Cancelled before `changed` if the CRD is deleted, after all of its objects.
    pub deleted: Shutdown,
}

impl Versions {
    /// The storage version.
    pub fn storage(&self) -> &Version {
        &self.all[self.storage]
    }

    /// The version of this apiVersion.
    pub fn find(&self, api_version: &str) -> Option<&Version> {
        self.all.iter().find(|version| version.api_version == api_version)
    }
}

/// One version.
pub struct Version {
    /// For instance `v1`.
    pub name: String,
    /// For instance `example.io/v1`.
    pub api_version: String,
    /// Whether it is served.
    pub served: bool,
    /// The deprecation warning.
    pub warning: Option<String>,
    /// Whether it has a status subresource.
    pub has_status: bool,
    /// The paths of its scale subresource.
    pub scale: Option<ScalePaths>,
    /// Its selectable fields.
    pub selectable: Selectable,
    /// Its printer columns.
    pub columns: Columns,
    /// Its schema.
    pub schema: Arc<Schema>,
}

impl Version {
    /// The version for server-side apply. All versions are assumed to have the same fields, as without a conversion webhook.
    pub fn as_applied(&self) -> apply::Version<'_> {
        static EMPTY: LazyLock<Object> = LazyLock::new(Object::new);
        let structural = self.schema.structural();
        let types = apply::Node::of_custom(structural.root(), structural.preserves_unknown_fields());
        apply::Version { types, empty: &EMPTY, conversion: None }
    }
}

/// The JSON paths of the scale subresource, without the leading dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The path of `spec.replicas`.
    pub replicas: String,
    /// The path of `status.replicas`.
    pub status_replicas: String,
    /// The path of the label selector.
    pub selector: Option<String>,
}

/// A schema, compiled on first use.
pub struct Schema {
    /// The `openAPIV3Schema`; empty if absent.
    source: Compressed,
    /// The digest of the schema.
    digest: String,
    preserve_unknown_fields: bool,
    /// Whether the root preserves unknown fields.
    pub keeps_unknown: bool,
    compiled: OnceLock<Structural>,
}

impl Schema {
    /// The schema of a version; an identical one of `known` is reused.
    pub fn of(schema: Option<&Value>, preserve_unknown_fields: bool, known: &[Arc<Self>]) -> Arc<Self> {
        let source = schema.map(ToString::to_string).unwrap_or_default();
        let digest = format!("{:?}", digest(&SHA256, source.as_bytes()));
        let is_same = |known: &&Arc<Self>| {
            known.digest == digest && known.preserve_unknown_fields == preserve_unknown_fields
        };
        if let Some(same) = known.iter().find(is_same) {
            return same.clone();
        }
        let at_root = schema.and_then(|schema| schema.get("x-kubernetes-preserve-unknown-fields"));
        let keeps_unknown = preserve_unknown_fields || at_root == Some(&Value::Bool(true));
        let (source, compiled) = (Compressed::new(source.as_bytes()), OnceLock::new());
        Arc::new(Self { source, digest, preserve_unknown_fields, keeps_unknown, compiled })
    }

    /// The compiled schema.
    pub fn structural(&self) -> &Structural {
        let compile = || Structural::compile_text(&self.source.text(), self.preserve_unknown_fields);
        self.compiled.get_or_init(compile)
    }

    /// The digest of the schema.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The schema as JSON.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.source.text()).unwrap_or_default()
    }
}

/// One version of a CRD.
#[derive(Clone)]
pub struct CrdVersion {
    /// All versions.
    pub versions: Arc<Versions>,
    /// The index of this version.
    pub index: usize,
}

impl CrdVersion {
    /// The version.
    pub fn version(&self) -> &Version {
        &self.versions.all[self.index]
    }

    /// The compiled schema.
    pub fn structural(&self) -> &Structural {
        self.version().schema.structural()
    }
}

/// Kubernetes' default deprecation warning.
pub fn deprecation(group: &str, kind: &str, version: &str, versions: &[(&str, bool)]) -> String {
    let newer = versions.iter().filter(|(name, is_good)| *is_good && version_order(name, version).is_lt());
    match newer.map(|(name, _)| *name).min_by(|a, b| version_order(a, b)) {
        Some(newer) => format!("{group}/{version} {kind} is deprecated; use {group}/{newer} {kind}"),
        None => format!("{group}/{version} {kind} is deprecated"),
    }
}
