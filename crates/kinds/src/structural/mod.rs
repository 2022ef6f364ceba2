//! Structural schemas: what a CustomResourceDefinition says about the objects of one of its versions.
//!
//! A schema is compiled once, when its definition is written or read; objects are pruned, completed and checked by the
//! compiled form. Map keys are visited in the order of their names, where Kubernetes has none.

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
pub use json_path::{Found, JsonPath, JsonPathError};
pub use node::{Kind, ListType, Node, Values};
pub use pattern::Pattern;
pub use selectable::Selectable;

/// The compiled schema of one version.
#[derive(Debug)]
pub struct Structural {
    root: Node,
    /// Whether nothing is ever pruned.
    keeps_everything: bool,
    /// What else has to hold, if anything has.
    rules: Option<Rules>,
}

impl Structural {
    /// Compiles the `openAPIV3Schema` of a version of a valid definition; `preserve_unknown_fields` is that of its spec.
    pub fn compile(schema: &Value, preserve_unknown_fields: bool) -> Self {
        Self::new(compile::root(schema), preserve_unknown_fields)
    }

    /// The same from its text, of which never more than one place is held as a tree.
    pub fn compile_text(schema: &[u8], preserve_unknown_fields: bool) -> Self {
        let mut schema = serde_json::Deserializer::from_slice(schema);
        Self::new(compile::root(&mut schema), preserve_unknown_fields)
    }

    fn new(root: Node, preserve_unknown_fields: bool) -> Self {
        let rules = Rules::compile(&root);
        Self { root, keeps_everything: preserve_unknown_fields, rules }
    }

    /// The schema of the object itself.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Whether nothing is ever pruned.
    pub fn keeps_everything(&self) -> bool {
        self.keeps_everything
    }

    /// Brings a decoded body into the shape of the schema: refuses metadata of wrong types, drops what is unknown and
    /// says so, a sentence each.
    pub fn decode(&self, object: &mut Map<String, Value>) -> Result<Vec<String>, String> {
        self.decode_with(object, Nulls::All)
    }

    /// The same for what an applied configuration makes of an object: a `null` that is not allowed is an error, which
    /// validation finds.
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

    /// Drops what the schema does not know, and each `null` that it does not allow and has no default for. Returns the
    /// paths of the former, sorted: `spec.foo`, `spec.list[0].bar`. Kind, version and metadata are kept.
    pub fn prune(&self, object: &mut Map<String, Value>) -> Vec<String> {
        self.prune_with(object, Nulls::All)
    }

    fn prune_with(&self, object: &mut Map<String, Value>, nulls: Nulls) -> Vec<String> {
        if self.keeps_everything {
            return Vec::new();
        }
        let dropped = prune::prune(&self.root, object);
        default::drop_nulls(&self.root, object, nulls);
        dropped
    }

    /// Fills in defaults, also in the place of a `null` that is not allowed. For new objects, and for stored ones that
    /// are older than the definition.
    pub fn default(&self, object: &mut Map<String, Value>) {
        default::fill(&self.root, object);
    }

    /// Writes the numbers of a valid object as Kubernetes writes them again: `1.0` becomes `1`.
    pub fn canonicalize(&self, object: &mut Map<String, Value>) {
        numbers::normalize(object);
    }

    /// What is wrong with an object, its metadata aside. On update, `old` is the object as it is; what it has wrong
    /// already is not held against the new one.
    pub fn validate(&self, new: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Verdict {
        let errors = validate::object(&self.root, new, old);
        self.with_rules(errors, new, old)
    }

    /// The same for a write of the status alone.
    pub fn validate_status(&self, new: &Map<String, Value>, old: &Map<String, Value>) -> Verdict {
        let errors = validate::status(&self.root, new, old);
        self.with_rules(errors, new, Some(old))
    }

    /// What is wrong by the schema, and by its rules where they can be run.
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
