//! The built-in kinds: rows of a table, and one strategy that uses the schema and the rules of a kind.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use kinds::apply::{Node, Reset};
use kinds::conversion::conversion;
use kinds::resources::{self, Row, SubresourceRow, Version};
use kinds::schema::{self, Schema, TypeId, check};
use kinds::structural::rules::Verdict;
use kinds::validation::validate_standard_finalizers;
use kinds::{Claim, Dependents, KindRules, Pool, Refusal, Writer};
use model::error::FieldError;
use model::names::NameRule;
use serde_json::{Value, json};

use crate::registry::{Object, ResourceType, StoredAs, Strategy, Subresource, TableRenderer};
use crate::request::verb::{Verb, Verbs};
use crate::reviews;
use crate::verbs::nodes;

/// The built-in resource types that are served by default.
pub(crate) fn all() -> Vec<ResourceType> {
    of_table(resources::TABLE)
}

/// The built-in resource types of an API that is off by default.
pub(crate) fn on_request(group: &str, version: &str) -> Vec<ResourceType> {
    let found = resources::ON_REQUEST.iter().position(|of| of.group == group && of.version == version);
    found.map(|at| of_table(&resources::ON_REQUEST[at..=at])).unwrap_or_default()
}

fn of_table(table: &'static [Version]) -> Vec<ResourceType> {
    let of_version = |entry: &'static Version| {
        let is_served = |row: &&Row| {
            let is_answered = reviews::built_in(entry.group, row.kind).is_some()
                || matches!(row.kind, "Binding" | "ComponentStatus");
            row.verbs.contains(&"watch") || is_answered
        };
        entry.resources.iter().filter(is_served).map(|row| resource_type(entry, row))
    };
    table.iter().flat_map(of_version).collect()
}

fn resource_type(of: &Version, row: &'static Row) -> ResourceType {
    let has_status = row.subresources.iter().any(|entry| entry.name == "status");
    let rules = kinds::rules(of.group, row.kind).unwrap_or_else(|| kinds::plain_rules(has_status));
    let type_id = schema::builtin()
        .by_kind(of.group, of.version, row.kind)
        .expect("a test reads every row of the table from the schema");
    let mut resource_type = ResourceType::new(of.group, of.version, row.kind, row.plural);
    resource_type.short_names = texts(row.short_names);
    resource_type.categories = texts(row.categories);
    resource_type.namespaced = row.namespaced;
    resource_type.verbs = verbs(row.verbs);
    // A subresource without rules cannot be served.
    let is_served = |entry: &&SubresourceRow| {
        entry.name == "scale"
            || nodes::needs_node(of.group, entry.name)
            || rules.subresource(entry.name).is_some()
    };
    let served = row.subresources.iter().filter(is_served);
    resource_type.subresources = served.map(subresource).collect();
    resource_type.stored_as = row.stored_as.map(|(group, version)| StoredAs {
        group: group.to_owned(),
        version: version.to_owned(),
        conversion: conversion(of.group, of.version, row.kind),
    });
    resource_type.shows_deleted = row.shows_deleted;
    resource_type.protobuf = true;
    resource_type.review = reviews::built_in(of.group, row.kind);
    let selectable = rules.selectable.iter().map(|field| field.path.into()).collect();
    resource_type.strategy = Arc::new(BuiltIn {
        rules,
        type_id,
        selectable,
        kind: (of.group, row.kind, has_status),
        empty: OnceLock::new(),
    });
    resource_type.table = Arc::new(Columns(rules));
    resource_type
}

/// A `v1` type without a path: its objects are subresource objects such as Scale, Binding or Eviction.
pub(crate) fn without_path(group: &'static str, kind: &'static str) -> ResourceType {
    let type_id = schema::builtin()
        .by_kind(group, "v1", kind)
        .expect("a test reads them from the schema with all others");
    let rules = kinds::rules(group, kind).unwrap_or_else(|| kinds::plain_rules(false));
    let mut alone = ResourceType::new(group, "v1", kind, &format!("{}s", kind.to_lowercase()));
    alone.protobuf = true;
    let (selectable, kind, empty) = (Vec::new(), (group, kind, false), OnceLock::new());
    alone.strategy = Arc::new(BuiltIn { rules, type_id, selectable, kind, empty });
    alone.table = Arc::new(Columns(rules));
    alone
}

fn subresource(entry: &SubresourceRow) -> Subresource {
    let text = str::to_owned;
    Subresource {
        name: text(entry.name),
        kind: entry.kind.map(|(group, version, kind)| (text(group), text(version), text(kind))),
        verbs: verbs(entry.verbs),
    }
}

fn verbs(names: &[&str]) -> Verbs {
    let verbs: Vec<Verb> = names.iter().copied().filter_map(Verb::from_name).collect();
    Verbs::of(&verbs)
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The strategy of all built-in kinds.
struct BuiltIn {
    rules: &'static KindRules,
    type_id: TypeId,
    selectable: Vec<Cow<'static, str>>,
    /// Group, kind, and whether it has a status subresource.
    kind: (&'static str, &'static str, bool),
    empty: OnceLock<Object>,
}

/// The groups whose finalizers may have any name.
const FREE_FINALIZERS: [&str; 3] =
    ["admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"];

impl BuiltIn {
    fn finalizers(&self, object: &Object) -> Vec<FieldError> {
        let is_free = FREE_FINALIZERS.contains(&self.kind.0);
        if is_free { Vec::new() } else { validate_standard_finalizers(object) }
    }
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

    fn allocates(&self) -> bool {
        self.rules.allocate.is_some()
    }

    fn allocate(&self, new: &mut Object, old: Option<&Object>, pool: &mut Pool<'_>) -> Result<(), Refusal> {
        self.rules.allocate.map_or(Ok(()), |allocate| allocate(new, old, pool))
    }

    fn allocations(&self, object: &Object) -> BTreeSet<Claim> {
        (self.rules.claims)(object)
    }

    fn ends_with(&self) -> &[(&'static str, &'static str)] {
        self.rules.ends_with
    }

    fn prepare_create(&self, object: &mut Object) {
        (self.rules.prepare_create)(object);
    }

    fn validate_create(&self, object: &Object) -> Vec<FieldError> {
        let mut errors = self.finalizers(object);
        errors.extend((self.rules.validate_create)(object));
        errors
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, subresource: &str) {
        match self.rules.subresource(subresource) {
            Some(entry) => (entry.prepare_update)(new, old),
            None => (self.rules.prepare_update)(new, old),
        }
    }

    fn stamp(&self, new: &mut Object, old: Option<&Object>, writer: &Writer) {
        (self.rules.stamp)(new, old, writer);
    }

    fn validate_update(&self, new: &Object, old: &Object, subresource: &str) -> Verdict {
        let mut errors = self.finalizers(new);
        errors.extend(match self.rules.subresource(subresource) {
            Some(entry) => (entry.validate_update)(new, old),
            None => (self.rules.validate_update)(new, old),
        });
        errors.into()
    }

    fn canonicalize(&self, object: &mut Object) {
        (self.rules.canonicalize)(object);
    }

    fn deprecated(&self) -> Option<&str> {
        self.rules.deprecated
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        (self.rules.warnings)(new, old)
    }

    fn grace(&self, object: &Object, asked: Option<i64>) -> Option<i64> {
        self.rules.grace.map(|grace| grace(object, asked))
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

    fn dependents(&self) -> Dependents {
        self.rules.dependents
    }

    fn schema(&self) -> Option<(&'static Schema, TypeId)> {
        Some((schema::builtin(), self.type_id))
    }

    fn field_ownership(&self) -> Node<'_> {
        Node::of_type(schema::builtin(), self.type_id)
    }

    fn seen(&self, new: &Object) -> Option<Object> {
        self.rules.seen.map(|complete| {
            let mut seen = new.clone();
            complete(&mut seen);
            seen
        })
    }

    fn empty(&self) -> &Object {
        self.empty.get_or_init(|| {
            let mut empty = Object::new();
            self.decode(&mut empty).map_or_else(|_| Object::new(), |_| empty)
        })
    }

    fn reset(&self, subresource: &str) -> Reset {
        let (group, kind, has_status) = self.kind;
        Reset::of_kind(group, kind, has_status, subresource)
    }

    fn name_rule(&self) -> NameRule {
        self.rules.name
    }

    fn counts_generations(&self) -> bool {
        self.rules.counts_generations
    }

    fn counts_annotations(&self) -> bool {
        self.rules.counts_annotations
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

    fn selectable_fields(&self) -> &[Cow<'static, str>] {
        &self.selectable
    }

    fn field(&self, object: &Object, path: &str) -> String {
        let field = self.rules.selectable.iter().find(|field| field.path == path);
        field.map(|field| (field.value)(object).into_owned()).unwrap_or_default()
    }
}

/// The printer columns of a kind.
struct Columns(&'static KindRules);

impl TableRenderer for Columns {
    fn columns(&self) -> Vec<Value> {
        let columns = self.0.columns().iter();
        let column = |c: &kinds::Column| {
            json!({
                "name": c.name, "type": c.kind, "format": c.format, "description": c.description, "priority": c.priority,
            })
        };
        columns.map(column).collect()
    }

    fn cells(&self, object: &Object, now: Timestamp) -> Vec<Value> {
        self.0.cells(object, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_schema() {
        for entry in resources::TABLE {
            for row in entry.resources {
                let found = schema::builtin().by_kind(entry.group, entry.version, row.kind);
                assert!(found.is_some(), "{} {} {}", entry.group, entry.version, row.kind);
            }
        }
        assert!(all().len() > 50);
        for (group, kind) in [("autoscaling", "Scale"), ("policy", "Eviction"), ("", "Binding")] {
            assert_eq!(without_path(group, kind).kind, kind);
        }
    }
}
