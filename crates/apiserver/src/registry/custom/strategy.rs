//! The strategy and the table of custom objects.

use std::borrow::Cow;

use jiff::Timestamp;
use kinds::apply::{Node, Reset};
use kinds::structural::Structural;
use kinds::structural::rules::Verdict;
use model::error::FieldError;

use serde_json::Value;

use super::finalizers::finalizer_warnings;
use super::scale;
use super::version::CrdVersion;
use crate::registry::{Object, Strategy, TableRenderer};

/// The strategy of the types of CRDs.
pub struct Custom {
    view: CrdVersion,
    /// The selectable fields of all versions, since they share one index.
    selectable: Vec<Cow<'static, str>>,
}

impl Custom {
    /// The strategy of a version.
    pub fn new(view: CrdVersion) -> Self {
        let all = view.versions.all.iter().flat_map(|version| version.selectable.names());
        let mut selectable: Vec<Cow<'static, str>> = all.map(|name| name.to_owned().into()).collect();
        selectable.sort();
        selectable.dedup();
        Self { view, selectable }
    }

    fn structural(&self) -> &Structural {
        self.view.structural()
    }

    fn has_status(&self) -> bool {
        self.view.version().has_status
    }

    fn check_scale(&self, object: &Object, subresource: &str) -> Vec<FieldError> {
        let paths = self.view.version().scale.as_ref();
        paths.map(|paths| scale::validate(paths, object, subresource == "status")).unwrap_or_default()
    }
}

impl Strategy for Custom {
    fn decode(&self, object: &mut Object) -> Result<Vec<String>, String> {
        self.structural().decode(object)
    }

    fn decode_applied(&self, object: &mut Object) -> Result<Vec<String>, String> {
        self.structural().decode_applied(object)
    }

    fn default(&self, object: &mut Object) {
        self.structural().default(object);
    }

    fn prepare_create(&self, object: &mut Object) {
        if self.has_status() {
            object.remove("status");
        }
    }

    fn validate_create(&self, object: &Object) -> Vec<FieldError> {
        let mut errors = self.structural().validate(object, None).errors;
        errors.extend(self.check_scale(object, ""));
        errors
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, subresource: &str) {
        if subresource == "status" {
            let status = new.remove("status");
            *new = old.clone();
            match status {
                Some(status) => new.insert("status".to_owned(), status),
                None => new.remove("status"),
            };
        } else if self.has_status() {
            match old.get("status") {
                Some(status) => new.insert("status".to_owned(), status.clone()),
                None => new.remove("status"),
            };
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, subresource: &str) -> Verdict {
        let mut verdict = match subresource {
            "status" => self.structural().validate_status(new, old),
            _ => self.structural().validate(new, Some(old)),
        };
        verdict.errors.extend(self.check_scale(new, subresource));
        verdict
    }

    fn canonicalize(&self, object: &mut Object) {
        self.structural().canonicalize(object);
    }

    fn deprecated(&self) -> Option<&str> {
        self.view.version().warning.as_deref()
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        finalizer_warnings(new, old)
    }

    fn field_ownership(&self) -> Node<'_> {
        self.view.version().as_applied().types
    }

    fn reset(&self, subresource: &str) -> Reset {
        Reset::of_custom(self.has_status(), subresource)
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn counts_status(&self) -> bool {
        !self.has_status()
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn check_field(&self, path: &str) -> Result<(), String> {
        let mut own = self.view.version().selectable.names();
        if matches!(path, "metadata.name" | "metadata.namespace") || own.any(|name| name == path) {
            return Ok(());
        }
        Err(format!("field label not supported: {path}"))
    }

    fn selectable_fields(&self) -> &[Cow<'static, str>] {
        &self.selectable
    }

    fn field(&self, object: &Object, path: &str) -> String {
        let has = self.view.versions.all.iter().find(|v| v.selectable.names().any(|name| name == path));
        has.map(|version| version.selectable.value(object, path)).unwrap_or_default()
    }
}

impl TableRenderer for Custom {
    fn columns(&self) -> Vec<Value> {
        self.view.version().columns.definitions()
    }

    fn cells(&self, object: &Object, now: Timestamp) -> Vec<Value> {
        self.view.version().columns.cells(object, now)
    }
}
