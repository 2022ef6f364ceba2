//! The parameters of operations, with their descriptions.

use serde_json::{Value, json};

use super::schemas::Dialect;

/// A parameter of query or path.
#[derive(Clone, Copy)]
pub struct Parameter {
    pub name: &'static str,
    kind: &'static str,
    description: &'static str,
}

impl Parameter {
    pub const fn new(name: &'static str, kind: &'static str, description: &'static str) -> Self {
        Self { name, kind, description }
    }
}

const DRY_RUN: Parameter = Parameter::new("dryRun", "string", "`All`: check everything, change nothing.");
const FIELD_MANAGER: Parameter = Parameter::new("fieldManager", "string", "The name of the field manager.");
const FIELD_VALIDATION: Parameter = Parameter::new(
    "fieldValidation",
    "string",
    "The treatment of unknown and duplicate fields: `Ignore`, `Warn` or `Strict`.",
);
const FORCE: Parameter =
    Parameter::new("force", "boolean", "Whether apply takes fields from other managers.");
pub const PRETTY: Parameter = Parameter::new("pretty", "string", "Whether JSON is indented.");
pub const OF_WRITES: [Parameter; 3] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
pub const OF_PATCHES: [Parameter; 4] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE];
const GRACE: Parameter = Parameter::new(
    "gracePeriodSeconds",
    "integer",
    "The grace period in seconds before the object is deleted.",
);
const IGNORE_ERRORS: Parameter = Parameter::new(
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "boolean",
    "Whether an object that cannot be decoded is deleted anyway.",
);
const ORPHAN: Parameter =
    Parameter::new("orphanDependents", "boolean", "Deprecated form of propagationPolicy.");
const PROPAGATION: Parameter = Parameter::new(
    "propagationPolicy",
    "string",
    "The treatment of dependents: `Orphan`, `Background` or `Foreground`.",
);
pub const OF_DELETIONS: [Parameter; 5] = [DRY_RUN, GRACE, IGNORE_ERRORS, ORPHAN, PROPAGATION];
const BOOKMARKS: Parameter =
    Parameter::new("allowWatchBookmarks", "boolean", "Whether a watch has bookmarks.");
const CONTINUE: Parameter = Parameter::new("continue", "string", "The continue token of the previous page.");
const FIELDS: Parameter =
    Parameter::new("fieldSelector", "string", "Restricts the list of returned objects by their fields.");
const LABELS: Parameter =
    Parameter::new("labelSelector", "string", "Restricts the list of returned objects by their labels.");
const LIMIT: Parameter = Parameter::new("limit", "integer", "The maximum number of objects per page.");
pub const VERSION: Parameter = Parameter::new("resourceVersion", "string", "The resource version to read.");
const MATCH: Parameter = Parameter::new(
    "resourceVersionMatch",
    "string",
    "The meaning of resourceVersion: `Exact` or `NotOlderThan`.",
);
const INITIAL: Parameter =
    Parameter::new("sendInitialEvents", "boolean", "Whether a watch begins with the existing objects.");
const TIMEOUT: Parameter =
    Parameter::new("timeoutSeconds", "integer", "The timeout of the request in seconds.");
const WATCH: Parameter =
    Parameter::new("watch", "boolean", "Watch for changes to the described resources, without an end.");
pub const OF_LISTS: [Parameter; 10] =
    [BOOKMARKS, CONTINUE, FIELDS, LABELS, LIMIT, VERSION, MATCH, INITIAL, TIMEOUT, WATCH];
pub const OF_COLLECTIONS: [Parameter; 13] = [
    CONTINUE,
    DRY_RUN,
    FIELDS,
    GRACE,
    IGNORE_ERRORS,
    LABELS,
    LIMIT,
    ORPHAN,
    PROPAGATION,
    VERSION,
    MATCH,
    INITIAL,
    TIMEOUT,
];

/// A parameter in a dialect.
pub fn written(dialect: Dialect, parameter: &Parameter, in_path: bool) -> Value {
    let Parameter { name, kind, description } = parameter;
    let location = if in_path { "path" } else { "query" };
    let mut parameter = json!({"name": name, "in": location, "description": description});
    if in_path {
        parameter["required"] = true.into();
    }
    match dialect {
        Dialect::V2 => {
            parameter["type"] = (*kind).into();
            parameter["uniqueItems"] = true.into();
        }
        Dialect::V3 => parameter["schema"] = json!({"type": kind, "uniqueItems": true}),
    }
    parameter
}
