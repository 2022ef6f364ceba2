//! What is particular to a resource type when its objects are written: checks, defaults, validation, selectable fields.

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

/// The hooks of a write, in the order in which they are called. Every hook has a default that does nothing.
///
/// Only `decode`, `default`, `allocate`, `stamp` and the two `prepare` hooks may change the object.
pub trait Strategy: Send + Sync {
    /// Brings a decoded body into the shape of the type: refuses wrong types, drops unknown fields and says so,
    /// a sentence each.
    fn decode(&self, _object: &mut Object) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    /// The same for what an applied configuration makes of an object.
    fn decode_applied(&self, object: &mut Object) -> Result<Vec<String>, String> {
        self.decode(object)
    }

    /// Fills in what the client left out.
    fn default(&self, _object: &mut Object) {}

    /// Whether the server hands something out to its objects.
    fn allocates(&self) -> bool {
        false
    }

    /// Fills in what the server hands out, before anything else is prepared: the new version, and the old one unless the
    /// object is made.
    fn allocate(
        &self,
        _new: &mut Object,
        _old: Option<&Object>,
        _pool: &mut Pool<'_>,
    ) -> Result<(), Refusal> {
        Ok(())
    }

    /// What a valid object has for itself alone.
    fn allocations(&self, _object: &Object) -> BTreeSet<Claim> {
        BTreeSet::new()
    }

    /// The resources, by group and plural, of which the object with the same name ends with one of this type.
    fn ends_with(&self) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Sets what the server decides when an object is made. Names, uid and times are set already.
    fn prepare_create(&self, _object: &mut Object) {}

    /// What is wrong with a new object, metadata aside.
    fn validate_create(&self, _object: &Object) -> Vec<FieldError> {
        Vec::new()
    }

    /// Sets what the server decides when an object is replaced, or when only a subresource of it is written (`subresource` is
    /// empty for the object itself). By default a write of the status changes nothing else but metadata.
    fn prepare_update(&self, new: &mut Object, old: &Object, subresource: &str) {
        if subresource == "status" {
            keep_all_but_status(new, old);
        }
    }

    /// Sets what depends on who writes and when, after the `prepare` hooks; there is no old object when one is made.
    fn stamp(&self, _new: &mut Object, _old: Option<&Object>, _writer: &Writer) {}

    /// What is wrong with a changed object, metadata aside, and what was wrong already and may stay so.
    fn validate_update(&self, _new: &Object, _old: &Object, _subresource: &str) -> Verdict {
        Verdict::default()
    }

    /// Brings a valid object into its final form.
    fn canonicalize(&self, _object: &mut Object) {}

    /// What everybody is told who still uses the type.
    fn deprecated(&self) -> Option<&str> {
        None
    }

    /// What the client should be told though the object is valid.
    fn warnings(&self, _new: &Object, _old: Option<&Object>) -> Vec<String> {
        Vec::new()
    }

    /// For how many seconds an object goes on when its deletion begins, given what the client asked for. `None`: objects of
    /// this type never do.
    fn grace(&self, _object: &Object, _asked: Option<i64>) -> Option<i64> {
        None
    }

    /// Sets what the server decides when a deletion begins that does not end at once.
    fn prepare_delete(&self, _object: &mut Object) {}

    /// Whether something beside `metadata.finalizers` holds a deletion back.
    fn holds_deletion(&self, _object: &Object) -> bool {
        false
    }

    /// Why an object may not be deleted at all.
    fn forbids_deletion(&self, _name: &str) -> Option<&'static str> {
        None
    }

    /// What becomes of dependents where a deletion does not say it.
    fn dependents(&self) -> Dependents {
        Dependents::Collected
    }

    /// The type of its objects: what strategic merge patches and OpenAPI documents know of it. Without one there are neither.
    fn schema(&self) -> Option<(&'static Schema, TypeId)> {
        None
    }

    /// How the parts of its objects are owned; by default entry by entry, and lists as a whole.
    fn field_ownership(&self) -> Node<'_> {
        Node::Deduced
    }

    /// What is looked at when it is decided who owns which field of a new object; `None` for the object as it is.
    fn seen(&self, _new: &Object) -> Option<Object> {
        None
    }

    /// An object that has nothing but what every one of them has.
    fn empty(&self) -> &Object {
        static EMPTY: LazyLock<Object> = LazyLock::new(Object::new);
        &EMPTY
    }

    /// The fields that a write cannot change, whatever it says (`subresource` is empty for the object itself).
    fn reset(&self, _subresource: &str) -> Reset {
        Reset::Nothing
    }

    /// What names must look like.
    fn name_rule(&self) -> NameRule {
        NameRule::Dns1123Subdomain
    }

    /// Whether `metadata.generation` counts changes of anything but metadata and status.
    fn counts_generations(&self) -> bool {
        false
    }

    /// Whether it counts changes of the status too: where the status is not written by itself.
    fn counts_status(&self) -> bool {
        false
    }

    /// Whether it counts changes of annotations too.
    fn counts_annotations(&self) -> bool {
        false
    }

    /// Whether an update of an absent object makes it.
    fn creates_on_update(&self) -> bool {
        false
    }

    /// Whether an update may leave out the resourceVersion.
    fn unconditional_update(&self) -> bool {
        true
    }

    /// Why field selectors may not name a field.
    fn check_field(&self, path: &str) -> Result<(), String> {
        let is_selectable = || self.selectable_fields().iter().any(|field| *field == path);
        if matches!(path, "metadata.name" | "metadata.namespace") || is_selectable() {
            return Ok(());
        }
        Err(format!("field label not supported: {path}"))
    }

    /// The fields that field selectors may name, beside `metadata.name` and `metadata.namespace`.
    fn selectable_fields(&self) -> &[Cow<'static, str>] {
        &[]
    }

    /// The value of a selectable field; by default what stands at its path.
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

/// No rules at all.
pub struct Plain;

impl Strategy for Plain {}
