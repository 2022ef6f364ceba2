//! The strategy of a resource type: hooks for validation, defaults, deletion and selectable fields.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use kinds::apply::{Node, Reset};
use kinds::schema::{Schema, TypeId};
use kinds::structural::rules::Verdict;
use kinds::{Claim, Dependents, Pool, Refusal, Writer, keep_all_but_status};
use model::error::FieldError;
use model::names::NameRule;
use serde_json::Value;

pub use model::Object;

/// The hooks of a write, in order of execution. Every hook has a default that does nothing.
///
/// Only `decode`, `default`, `allocate`, `stamp` and the two `prepare` hooks may change the object.
pub trait Strategy: Send + Sync {
    /// Checks the types of a decoded body and drops unknown fields. Returns a warning per dropped field.
    fn decode(&self, _object: &mut Object) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    /// Like `decode`, for the result of server-side apply.
    fn decode_applied(&self, object: &mut Object) -> Result<Vec<String>, String> {
        self.decode(object)
    }

    /// Sets defaults.
    fn default(&self, _object: &mut Object) {}

    /// Whether its objects get allocated values, such as IPs and ports.
    fn allocates(&self) -> bool {
        false
    }

    /// Sets allocated values, before the `prepare` hooks. `old` is absent for a create.
    fn allocate(
        &self,
        _new: &mut Object,
        _old: Option<&Object>,
        _pool: &mut Pool<'_>,
    ) -> Result<(), Refusal> {
        Ok(())
    }

    /// The values that a valid object holds exclusively.
    fn allocations(&self, _object: &Object) -> BTreeSet<Claim> {
        BTreeSet::new()
    }

    /// Resources, by group and plural, whose object of the same name is deleted together with one of this type.
    fn ends_with(&self) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Sets the server's fields of a new object. Name, uid and times are set already.
    fn prepare_create(&self, _object: &mut Object) {}

    /// Validates a new object, except its metadata.
    fn validate_create(&self, _object: &Object) -> Vec<FieldError> {
        Vec::new()
    }

    /// Sets the server's fields of an update, or of a subresource update (`subresource` is empty for the object itself). By
    /// default a status update changes only status and metadata.
    fn prepare_update(&self, new: &mut Object, old: &Object, subresource: &str) {
        if subresource == "status" {
            keep_all_but_status(new, old);
        }
    }

    /// Sets fields that depend on caller and time, after the `prepare` hooks. `old` is absent for a create.
    fn stamp(&self, _new: &mut Object, _old: Option<&Object>, _writer: &Writer) {}

    /// Validates an update, except its metadata. Existing errors may be tolerated.
    fn validate_update(&self, _new: &Object, _old: &Object, _subresource: &str) -> Verdict {
        Verdict::default()
    }

    /// Normalizes a valid object.
    fn canonicalize(&self, _object: &mut Object) {}

    /// The deprecation warning of the type.
    fn deprecated(&self) -> Option<&str> {
        None
    }

    /// Warnings about a valid object.
    fn warnings(&self, _new: &Object, _old: Option<&Object>) -> Vec<String> {
        Vec::new()
    }

    /// The grace period of a deletion in seconds, given the requested one. `None`: the type has no graceful deletion.
    fn grace(&self, _object: &Object, _asked: Option<i64>) -> Option<i64> {
        None
    }

    /// Sets the server's fields when a graceful deletion begins.
    fn prepare_delete(&self, _object: &mut Object) {}

    /// Whether the deletion is blocked by something other than `metadata.finalizers`.
    fn holds_deletion(&self, _object: &Object) -> bool {
        false
    }

    /// The reason why an object cannot be deleted.
    fn forbids_deletion(&self, _name: &str) -> Option<&'static str> {
        None
    }

    /// The default propagation policy.
    fn dependents(&self) -> Dependents {
        Dependents::Collected
    }

    /// The schema of the type, for strategic merge patches and OpenAPI. Without one there are neither.
    fn schema(&self) -> Option<(&'static Schema, TypeId)> {
        None
    }

    /// The ownership of fields: by default maps by entry and lists as a whole.
    fn field_ownership(&self) -> Node<'_> {
        Node::Deduced
    }

    /// The object whose fields a create owns; `None` for the object itself.
    fn seen(&self, _new: &Object) -> Option<Object> {
        None
    }

    /// An object with only the fields that every object has.
    fn empty(&self) -> &Object {
        static EMPTY: LazyLock<Object> = LazyLock::new(Object::new);
        &EMPTY
    }

    /// The fields that a write cannot change (`subresource` is empty for the object itself).
    fn reset(&self, _subresource: &str) -> Reset {
        Reset::Nothing
    }

    /// The naming rule.
    fn name_rule(&self) -> NameRule {
        NameRule::Dns1123Subdomain
    }

    /// Whether `metadata.generation` counts changes of other fields than metadata and status.
    fn counts_generations(&self) -> bool {
        false
    }

    /// Whether it counts changes of the status, too: for types without a status subresource.
    fn counts_status(&self) -> bool {
        false
    }

    /// Whether it counts changes of annotations, too.
    fn counts_annotations(&self) -> bool {
        false
    }

    /// Whether an update creates a missing object.
    fn creates_on_update(&self) -> bool {
        false
    }

    /// Whether an update may omit the resourceVersion.
    fn unconditional_update(&self) -> bool {
        true
    }

    /// Refuses a field in field selectors, with a reason.
    fn check_field(&self, path: &str) -> Result<(), String> {
        let is_selectable = || self.selectable_fields().iter().any(|field| *field == path);
        if matches!(path, "metadata.name" | "metadata.namespace") || is_selectable() {
            return Ok(());
        }
        Err(format!("field label not supported: {path}"))
    }

    /// The selectable fields, beside `metadata.name` and `metadata.namespace`.
    fn selectable_fields(&self) -> &[Cow<'static, str>] {
        &[]
    }

    /// The value of a selectable field; by default the value at its path.
    fn field(&self, object: &Object, path: &str) -> String {
        let mut segments = path.split('.');
        let first = segments.next().and_then(|segment| object.get(segment));
        let value = segments.fold(first, |value, segment| value.and_then(|value| value.get(segment)));
        match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        }
    }
}

/// A strategy without rules.
pub struct Plain;

impl Strategy for Plain {}
