//! The versions of a CRD, each with its schema, which is compiled when it is first needed.

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

/// What the types of one CRD share.
pub struct Versions {
    /// The group of all of them.
    pub group: Arc<str>,
    /// The kind of their objects.
    pub kind: String,
    /// The kind of their lists.
    pub list_kind: String,
    /// All versions, served or not, in the order of the CRD.
    pub all: Vec<Version>,
    /// Which of them objects are stored in: one of them, for a CRD without versions has no types.
    pub storage: usize,
    /// Objects that were written later are as their schema wants them; older ones are brought into its shape when they are read.
    pub since: Revision,
    /// How they become each other.
    pub(crate) conversion: Conversion,
    /// Rings when the CRD has changed or is gone: what is under way with the objects ends.
    pub ended: Shutdown,
    /// Rings before that if the CRD is gone, and all objects before it.
    pub gone: Shutdown,
}

impl Versions {
    /// The version that objects are stored in.
    pub fn storage(&self) -> &Version {
        &self.all[self.storage]
    }

    /// The version of this name, with its group.
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
    /// Whether requests may name it.
    pub served: bool,
    /// What clients are told who use it, if it is deprecated.
    pub warning: Option<String>,
    /// Whether the status is written by itself.
    pub has_status: bool,
    /// The paths of its scale, if it has one.
    pub scale: Option<ScalePaths>,
    /// What field selectors may name.
    pub selectable: Selectable,
    /// How its objects look as rows.
    pub columns: Columns,
    /// What its objects look like.
    pub schema: Arc<Schema>,
}

impl Version {
    /// The version as apply sees it. Objects of every version are taken to have the same fields, which is so unless somebody
    /// else converts them.
    pub fn as_applied(&self) -> apply::Version<'_> {
        static EMPTY: LazyLock<Object> = LazyLock::new(Object::new);
        let structural = self.schema.structural();
        let types = apply::Node::of_custom(structural.root(), structural.keeps_everything());
        apply::Version { types, empty: &EMPTY, conversion: None }
    }
}

/// Where an object has what its scale shows, without the dot in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The wanted number.
    pub replicas: String,
    /// The number that there is.
    pub status_replicas: String,
    /// What selects the pods, if there is such a field.
    pub selector: Option<String>,
}

/// A schema as it was written, and compiled once it is needed.
pub struct Schema {
    /// The `openAPIV3Schema`, or nothing.
    source: Compressed,
    /// Stands for the text of the schema.
    digest: String,
    preserve_unknown_fields: bool,
    /// Whether it says of all unknown fields, at the top, that they are kept.
    pub keeps_unknown: bool,
    compiled: OnceLock<Structural>,
}

impl Schema {
    /// The schema of a version, which is compiled when it is first asked for; one of the known ones if it is the same.
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

    /// The compiled form.
    pub fn structural(&self) -> &Structural {
        let compile = || Structural::compile_text(&self.source.text(), self.preserve_unknown_fields);
        self.compiled.get_or_init(compile)
    }

    /// Stands for the text of the schema.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The schema as a tree.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.source.text()).unwrap_or_default()
    }
}

/// One version of a CRD, as types have it.
#[derive(Clone)]
pub struct CrdVersion {
    /// All versions.
    pub versions: Arc<Versions>,
    /// Which of them it is.
    pub index: usize,
}

impl CrdVersion {
    /// The version itself.
    pub fn version(&self) -> &Version {
        &self.versions.all[self.index]
    }

    /// The compiled schema of the version.
    pub fn structural(&self) -> &Structural {
        self.version().schema.structural()
    }
}

/// What Kubernetes tells clients who use a deprecated version for which the CRD has no words of its own.
pub fn deprecation(group: &str, kind: &str, version: &str, versions: &[(&str, bool)]) -> String {
    let newer = versions.iter().filter(|(name, is_good)| *is_good && version_order(name, version).is_lt());
    match newer.map(|(name, _)| *name).min_by(|a, b| version_order(a, b)) {
        Some(newer) => format!("{group}/{version} {kind} is deprecated; use {group}/{newer} {kind}"),
        None => format!("{group}/{version} {kind} is deprecated"),
    }
}
