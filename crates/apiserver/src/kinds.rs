//! The built-in kinds: rows of a table, and one strategy that asks the schema and the rules of the kind.

use std::sync::Arc;

use jiff::Timestamp;
use model::error::FieldError;
use model::kinds::{self, KindRules};
use model::names::NameRule;
use model::schema::{self, Schema, TypeId, check};
use model::validation::validate_standard_finalizers;
use serde_json::{Value, json};

use crate::registry::{Object, ResourceType, Strategy, Subresource, TableRenderer};
use crate::request::verb::{Verb, Verbs};

/// One built-in resource.
struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    namespaced: bool,
}

const fn row(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    namespaced: bool,
) -> Row {
    Row { group, version, kind, plural, short_names, namespaced }
}

/// In the order in which discovery lists groups.
const TABLE: [Row; 8] = [
    row("", "v1", "ConfigMap", "configmaps", &["cm"], true),
    row("", "v1", "Event", "events", &["ev"], true),
    row("", "v1", "Namespace", "namespaces", &["ns"], false),
    row("", "v1", "Secret", "secrets", &[], true),
    row("", "v1", "ServiceAccount", "serviceaccounts", &["sa"], true),
    row("storage.k8s.io", "v1", "StorageClass", "storageclasses", &["sc"], false),
    row("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", &["pc"], false),
    row("coordination.k8s.io", "v1", "Lease", "leases", &[], true),
];

/// Every built-in resource type.
pub(crate) fn built_in() -> Vec<ResourceType> {
    TABLE.iter().map(resource_type).collect()
}

fn resource_type(row: &Row) -> ResourceType {
    let rules = kinds::rules(row.group, row.kind).expect("a test reads the rules of every row of this table");
    let type_id = schema::builtin()
        .by_kind(row.group, row.version, row.kind)
        .expect("a test reads every row of this table from the schema");
    let mut resource_type = ResourceType::new(row.group, row.version, row.kind, row.plural);
    resource_type.short_names = row.short_names.iter().map(|name| (*name).to_owned()).collect();
    resource_type.namespaced = row.namespaced;
    resource_type.protobuf = true;
    resource_type.subresources = rules.subresources.iter().map(|sub| subresource(sub.name)).collect();
    if resource_type.is_namespace() {
        resource_type.verbs = Verbs::ALL.without(Verb::DeleteCollection);
    }
    let selectable = rules.selectable.iter().map(|field| field.path).collect();
    resource_type.strategy = Arc::new(BuiltIn { rules, type_id, selectable });
    resource_type.table = Arc::new(Columns(rules));
    resource_type
}

fn subresource(name: &str) -> Subresource {
    match name {
        "status" => Subresource::status(),
        other => Subresource { name: other.to_owned(), verbs: Verbs::of(&[Verb::Update]) },
    }
}

/// The strategy of all built-in kinds.
struct BuiltIn {
    rules: &'static KindRules,
    type_id: TypeId,
    selectable: Vec<&'static str>,
}

impl Strategy for BuiltIn {
    fn decode(&self, object: &mut Object) -> Result<Vec<String>, String> {
        let mut value = Value::Object(std::mem::take(object));
        let checked =
            check(schema::builtin(), self.type_id, &mut value).map_err(|mismatch| mismatch.to_string())?;
        if let Value::Object(fields) = value {
            *object = fields;
        }
        Ok(checked.unknown)
    }

    fn default(&self, object: &mut Object) {
        (self.rules.default)(object);
    }

    fn prepare_create(&self, object: &mut Object) {
        (self.rules.prepare_create)(object);
    }

    fn validate_create(&self, object: &Object) -> Vec<FieldError> {
        let mut errors = validate_standard_finalizers(object);
        errors.extend((self.rules.validate_create)(object));
        errors
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, subresource: &str) {
        match self.rules.subresource(subresource) {
            Some(part) => (part.prepare_update)(new, old),
            None => (self.rules.prepare_update)(new, old),
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, subresource: &str) -> Vec<FieldError> {
        let mut errors = validate_standard_finalizers(new);
        errors.extend(match self.rules.subresource(subresource) {
            Some(part) => (part.validate_update)(new, old),
            None => (self.rules.validate_update)(new, old),
        });
        errors
    }

    fn canonicalize(&self, object: &mut Object) {
        (self.rules.canonicalize)(object);
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        (self.rules.warnings)(new, old)
    }

    fn prepare_delete(&self, object: &mut Object) {
        (self.rules.prepare_delete)(object);
    }

    fn holds_deletion(&self, object: &Object) -> bool {
        (self.rules.holds_deletion)(object)
    }

    fn forbids_deletion(&self, name: &str) -> Option<&'static str> {
        (self.rules.forbids_deletion)(name)
    }

    fn schema(&self) -> Option<(&'static Schema, TypeId)> {
        Some((schema::builtin(), self.type_id))
    }

    fn name_rule(&self) -> NameRule {
        self.rules.name
    }

    fn counts_generations(&self) -> bool {
        self.rules.counts_generations
    }

    fn creates_on_update(&self) -> bool {
        self.rules.create_on_update
    }

    fn unconditional_update(&self) -> bool {
        self.rules.unconditional_update
    }

    fn check_field(&self, path: &str) -> Result<(), String> {
        kinds::check_selectable(self.rules.group, self.rules.kind, path)
    }

    fn selectable_fields(&self) -> &[&str] {
        &self.selectable
    }

    fn field(&self, object: &Object, path: &str) -> String {
        let field = self.rules.selectable.iter().find(|field| field.path == path);
        field.map(|field| (field.value)(object).into_owned()).unwrap_or_default()
    }
}

/// The columns that Kubernetes prints for a kind.
struct Columns(&'static KindRules);

impl TableRenderer for Columns {
    fn columns(&self) -> Vec<Value> {
        let columns = kinds::columns(self.0.group, self.0.kind).iter();
        let column = |c: &kinds::Column| {
            json!({
                "name": c.name, "type": c.kind, "format": c.format, "description": c.description, "priority": c.priority,
            })
        };
        columns.map(column).collect()
    }

    fn cells(&self, object: &Object, now: Timestamp) -> Vec<Value> {
        kinds::cells(self.0.group, self.0.kind, object, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_schema_and_rules() {
        assert_eq!(built_in().len(), TABLE.len());
    }
}
