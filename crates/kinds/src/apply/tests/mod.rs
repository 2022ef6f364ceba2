//! Server-side apply compared with recorded results of kube-apiserver 1.35.

mod configs;
mod properties;
mod sets;
mod tracking;

use model::Object;
use serde_json::{Value, json};

use super::*;
use crate::conversion::conversion;
use crate::schema::{builtin, check};

const NOW: &str = "2026-01-02T03:04:05Z";
const LATER: &str = "2026-01-02T03:04:06Z";

/// The versions of a built-in kind.
struct KindVersions {
    kind: &'static str,
    empty: Object,
}

impl KindVersions {
    fn new(kind: &'static str) -> Self {
        Self { kind, empty: Object::new() }
    }
}

impl Versions for KindVersions {
    fn version(&self, api_version: &str) -> Option<Version<'_>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let id = builtin().by_kind(group, version, self.kind)?;
        let conversion = conversion(group, version, self.kind);
        Some(Version { types: Node::of_type(builtin(), id), empty: &self.empty, conversion })
    }
}

/// An object that tests write repeatedly.
struct Live {
    api_version: &'static str,
    kind: KindVersions,
    object: Option<Object>,
}

impl Live {
    fn new(api_version: &'static str, kind: &'static str) -> Self {
        Self { api_version, kind: KindVersions::new(kind), object: None }
    }

    fn context<'a>(&'a self, manager: &'a str, now: &'a str) -> WriteContext<'a> {
        WriteContext {
            versions: &self.kind,
            api_version: self.api_version,
            subresource: "",
            reset: Reset::Nothing,
            manager,
            now,
        }
    }

    /// The object as Go encodes it, without kind and version.
    fn shaped(&self, object: Object) -> Object {
        let (group, version) = self.api_version.split_once('/').unwrap_or(("", self.api_version));
        let id = builtin().by_kind(group, version, self.kind.kind).unwrap();
        let mut value = Value::Object(object);
        check(builtin(), id, &mut value).unwrap();
        let mut object = value.as_object().cloned().unwrap();
        object.remove("kind");
        object.remove("apiVersion");
        object
    }

    fn store(&mut self, mut object: Object, tracked: &Tracked) {
        let metadata = object.entry("metadata").or_insert_with(|| json!({})).as_object_mut().unwrap();
        metadata.remove("managedFields");
        if let Some(json) = &tracked.json {
            metadata.insert("managedFields".to_owned(), serde_json::from_str(json).unwrap());
        }
        self.object = Some(object);
    }

    /// Replaces the object.
    fn update(&mut self, manager: &str, now: &str, object: Value) {
        let object = self.shaped(object.as_object().cloned().unwrap());
        let tracked = track(&self.context(manager, now), self.object.as_ref(), &object);
        self.store(object, &tracked);
    }

    fn try_apply(
        &mut self,
        manager: &str,
        now: &str,
        config: Value,
        force: bool,
    ) -> Result<bool, ApplyError> {
        let mut config = config.as_object().cloned().unwrap();
        config.insert("apiVersion".to_owned(), self.api_version.into());
        config.insert("kind".to_owned(), self.kind.kind.into());
        let applied = apply(&self.context(manager, now), self.object.as_ref(), &config, force)?;
        let is_changed = applied.object.is_some();
        let object = applied.object.or_else(|| self.object.clone()).unwrap_or_default();
        let object = self.shaped(object);
        self.store(object, &applied.tracked);
        Ok(is_changed)
    }

    /// Applies a configuration that must not conflict.
    fn apply(&mut self, manager: &str, config: Value) {
        self.try_apply(manager, NOW, config, false).unwrap();
    }

    fn get(&self, pointer: &str) -> Value {
        let value = Value::Object(self.object.clone().unwrap_or_default());
        value.pointer(pointer).cloned().unwrap_or(Value::Null)
    }

    /// The fields of a manager.
    fn owned(&self, manager: &str) -> Value {
        let entries = self.get("/metadata/managedFields");
        let entry = entries.as_array().into_iter().flatten().find(|entry| entry["manager"] == manager);
        entry.map_or(Value::Null, |entry| entry["fieldsV1"].clone())
    }
}

/// The message of a conflict.
fn refusal(result: Result<bool, ApplyError>) -> String {
    model::error::Error::from(result.unwrap_err()).to_string()
}
