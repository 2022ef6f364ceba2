//! Structural schemas: pruning, defaulting and validation of the objects of one CRD version.
//!
//! A schema is compiled once, when its CRD is written or loaded; all operations use the compiled form. Map keys are
//! visited in sorted order, where Kubernetes has none.

mod checks;
mod columns;
mod compile;
mod default;
mod default_values;
pub(crate) mod field_path;
mod format;
mod json_path;
mod metadata;
mod node;
pub(crate) mod numbers;
mod pattern;
mod prune;
mod read;
pub mod rules;
mod selectable;
#[cfg(test)]
mod tests;
mod validate;

use serde_json::{Map, Value};

use default::Nulls;
use model::error::{FieldError, FieldErrorKind};
use rules::{Rules, Verdict};

pub use checks::Checks;
pub use columns::Columns;
pub(crate) use default_values::bad_defaults;
pub use format::Format;
pub(crate) use format::is_request_uri;
pub use json_path::{JsonPath, JsonPathError, Selected};
pub use node::{ListType, Node, ValueType, Values};
pub use pattern::Pattern;
pub use selectable::Selectable;

/// The compiled schema of one version.
#[derive(Debug)]
pub struct Structural {
    root: Node,
    /// Whether pruning is off (`preserveUnknownFields`).
    preserves_unknown_fields: bool,
    /// The compiled `x-kubernetes-validations`, if there are any.
    rules: Option<Rules>,
}

impl Structural {
    /// Compiles the `openAPIV3Schema` of a version of a valid CRD; `preserve_unknown_fields` is that of its spec.
    pub fn compile(schema: &Value, preserve_unknown_fields: bool) -> Self {
        Self::new(compile::root(schema), preserve_unknown_fields)
    }

    /// Like [`Structural::compile`], from JSON text; parses node by node to limit memory.
    pub fn compile_text(schema: &[u8], preserve_unknown_fields: bool) -> Self {
        let mut schema = serde_json::Deserializer::from_slice(schema);
        Self::new(compile::root(&mut schema), preserve_unknown_fields)
    }

    fn new(root: Node, preserve_unknown_fields: bool) -> Self {
        let rules = Rules::compile(&root);
        Self { root, preserves_unknown_fields: preserve_unknown_fields, rules }
    }

    /// The schema of the root object.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Whether pruning is off.
    pub fn preserves_unknown_fields(&self) -> bool {
        self.preserves_unknown_fields
    }

    /// Decodes a request body: refuses metadata of wrong types, prunes unknown fields, and returns a message per
    /// unknown field.
    pub fn decode(&self, object: &mut Map<String, Value>) -> Result<Vec<String>, String> {
        self.decode_with(object, Nulls::All)
    }

    /// Like [`Structural::decode`], for the result of an apply: keeps disallowed nulls, for validation to report.
    pub fn decode_applied(&self, object: &mut Map<String, Value>) -> Result<Vec<String>, String> {
        self.decode_with(object, Nulls::Untyped)
    }

    fn decode_with(&self, object: &mut Map<String, Value>, nulls: Nulls) -> Result<Vec<String>, String> {
        let mut complaints = metadata::read(object).map_err(|mismatch| mismatch.0)?;
        let unknown = |path: String| format!("unknown field \"{path}\"");
        complaints.extend(self.prune_with(object, nulls).into_iter().map(unknown));
        let embedded = metadata::read_embedded(&self.root, object).map_err(|error| error.to_string())?;
        complaints.extend(embedded);
        Ok(complaints)
    }

    /// Drops unknown fields, and each disallowed `null` without a default. Returns the paths of the former, sorted:
    /// `spec.foo`, `spec.list[0].bar`. Kind, version and metadata are kept.
    pub fn prune(&self, object: &mut Map<String, Value>) -> Vec<String> {
        self.prune_with(object, Nulls::All)
    }

    fn prune_with(&self, object: &mut Map<String, Value>, nulls: Nulls) -> Vec<String> {
        if self.preserves_unknown_fields {
            return Vec::new();
        }
        let dropped = prune::prune(&self.root, object);
        default::drop_nulls(&self.root, object, nulls);
        dropped
    }

    /// Sets defaults, also in place of a disallowed `null`. For new objects, and for stored ones older than the CRD.
    pub fn default(&self, object: &mut Map<String, Value>) {
        default::fill(&self.root, object);
    }

    /// Formats the numbers of a valid object as Kubernetes does: `1.0` becomes `1`.
    pub fn canonicalize(&self, object: &mut Map<String, Value>) {
        numbers::normalize(object);
    }

    /// Validates an object except its metadata. On update, `old` is the stored object; errors of unchanged values are
    /// ratcheted.
    pub fn validate(&self, new: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Verdict {
        let errors = validate::object(&self.root, new, old);
        self.with_rules(errors, new, old)
    }

    /// Validates an update of the status subresource.
    pub fn validate_status(&self, new: &Map<String, Value>, old: &Map<String, Value>) -> Verdict {
        let errors = validate::status(&self.root, new, old);
        self.with_rules(errors, new, Some(old))
    }

    /// Adds the errors of the rules to those of the schema, if the rules can run.
    fn with_rules(
        &self,
        mut errors: Vec<FieldError>,
        new: &Map<String, Value>,
        old: Option<&Map<String, Value>>,
    ) -> Verdict {
        use FieldErrorKind::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
        let Some(rules) = &self.rules else { return errors.into() };
        let hides = |error: &FieldError| {
            matches!(error.kind, NotSupported | Required | TooLong | TooMany | TypeInvalid)
        };
        if errors.iter().any(hides) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                          errors to complete validation";
            errors.push(FieldError::invalid("<nil>", Value::Null, detail));
            return errors.into();
        }
        let said = rules.validate(&self.root, new, old);
        errors.extend(said.errors);
        Verdict { errors, warnings: said.warnings }
    }
}
