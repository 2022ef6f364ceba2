//! The built-in kinds: rows of a table, and one strategy that asks the schema and the rules of the kind.

use std::sync::Arc;

use model::error::Error;
use model::schema::{self, TypeId, check};
use serde_json::Value;

use crate::registry::{Object, ResourceType, Strategy, Subresource};
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
    let mut resource_type = ResourceType::new(row.group, row.version, row.kind, row.plural);
    resource_type.short_names = row.short_names.iter().map(|name| (*name).to_owned()).collect();
    resource_type.namespaced = row.namespaced;
    resource_type.protobuf = true;
    if resource_type.is_namespace() {
        let finalize = Subresource { name: "finalize".to_owned(), verbs: Verbs::of(&[Verb::Update]) };
        resource_type.subresources = vec![finalize, Subresource::status()];
        resource_type.verbs = Verbs::ALL.without(Verb::DeleteCollection);
    }
    let schema = schema::builtin();
    let type_id = schema
        .by_kind(row.group, row.version, row.kind)
        .expect("a test reads every row of this table from the schema");
    resource_type.strategy = Arc::new(BuiltIn { type_id, kind: row.kind, version: resource_type.api_version() });
    resource_type
}

/// The strategy of all built-in kinds.
struct BuiltIn {
    type_id: TypeId,
    kind: &'static str,
    version: String,
}

impl Strategy for BuiltIn {
    fn decode(&self, object: &mut Object) -> Result<Vec<String>, Error> {
        let mut value = Value::Object(std::mem::take(object));
        let checked = check(schema::builtin(), self.type_id, &mut value)
            .map_err(|mismatch| Error::BadRequest { message: mismatch.of_body(&self.version, self.kind) })?;
        if let Value::Object(fields) = value {
            *object = fields;
        }
        Ok(checked.unknown)
    }
}
