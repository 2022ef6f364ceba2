//! Validates the spec of a CRD, in Kubernetes' order.

use std::collections::BTreeSet;

use model::Object;
use model::condition::is_condition_true;
use model::error::{FieldError, Path, is_printable};
use model::names::dns1123_subdomain;
use model::object::{is_true, items, maps, text, texts, value};
use serde_json::{Map, Value};

use super::names::{bad_label, bad_names, missing_names};
use super::schema::bad_schema;
use super::shown::shown_versions;
use super::{approval, bad_status, conversion, openapi};
use crate::rules::common::unsupported;
use crate::structural::{Node, field_path};

const SELECTABLE_MAX: usize = 8;
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// The paths of version properties in messages: Kubernetes hoists those that are the same in all versions to the spec.
pub struct Layout<'a> {
    versions: &'a [Value],
}

impl<'a> Layout<'a> {
    /// The layout of a CRD.
    pub fn of(crd: &'a Object) -> Self {
        Self { versions: items(crd, &["spec", "versions"]) }
    }

    /// Whether a property is the same in all versions.
    fn is_shared(&self, property: &str) -> bool {
        let get = |version: &'a Value| version.get(property).filter(|value| !value.is_null());
        self.versions.iter().all(|version| get(version) == get(&self.versions[0]))
    }

    /// A property of the versions with its paths in messages: one per version, or one for all of them.
    fn properties(&self, property: &'a str, shared_name: &str) -> Vec<(PropertyPath, &'a Value)> {
        let is_shared = self.is_shared(property);
        let properties = self.versions.iter().enumerate().filter_map(|(index, version)| {
            let value = version.get(property).filter(|value| !value.is_null())?;
            let place = if is_shared {
                PropertyPath { version: None, path: Path::SPEC.field(shared_name).into() }
            } else {
                PropertyPath {
                    version: Some(index),
                    path: Path::SPEC.item("versions", index).field(property).into(),
                }
            };
            Some((place, value))
        });
        let properties: Vec<_> = properties.collect();
        if is_shared { properties.into_iter().take(1).collect() } else { properties }
    }

    /// The schemas with their paths.
    pub fn schemas(&self) -> Vec<(PropertyPath, &'a Object)> {
        let properties = self.properties("schema", "validation").into_iter();
        properties
            .filter_map(|(mut place, schema)| {
                place.path.push_str(".openAPIV3Schema");
                Some((place, schema.get("openAPIV3Schema")?.as_object()?))
            })
            .collect()
    }

    fn has_defaults(&self) -> bool {
        let mut found = false;
        for (_, schema) in self.schemas() {
            openapi::visit(schema, &mut |schema| {
                found |= schema.get("default").is_some_and(|value| !value.is_null())
            });
        }
        found
    }

    /// Whether the schema belongs to a version with a status subresource.
    fn has_status(&self, place: &PropertyPath) -> bool {
        let has_status = |version: &Value| version.pointer("/subresources/status").is_some();
        match place.version {
            Some(index) if !self.is_shared("subresources") => has_status(&self.versions[index]),
            _ => self.versions.iter().any(has_status),
        }
    }
}

/// The path of a version's property in messages.
pub struct PropertyPath {
    /// The index of the version, unless the property is shared.
    version: Option<usize>,
    /// The path.
    pub path: String,
}

/// Whether a CRD is established.
pub fn is_established(crd: &Object) -> bool {
    is_condition_true(items(crd, &["status", "conditions"]), "Established")
}

/// Validates a CRD.
pub fn validate(new: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let nothing = Map::new();
    let spec = value(new, &["spec"]).and_then(Value::as_object).unwrap_or(&nothing);
    let names = value(spec, &["names"]).and_then(Value::as_object).unwrap_or(&nothing);
    let mut errors = Vec::new();
    let name = text(new, &["metadata", "name"]);
    let required = format!("{}.{}", text(names, &["plural"]), text(spec, &["group"]));
    if old.is_none() && !name.is_empty() && name != required {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, detail));
    }
    errors.extend(bad_group(text(spec, &["group"])));
    match text(spec, &["scope"]) {
        "" => errors.push(FieldError::required("spec.scope", "")),
        scope => errors.extend(unsupported(&Path::root("spec.scope"), scope, &["Cluster", "Namespaced"])),
    }
    let layout = Layout::of(new);
    errors.extend(missing_schemas(&layout));
    let preserves = |crd: &Object| is_true(crd, &["spec", "preserveUnknownFields"]);
    if preserves(new) && layout.has_defaults() {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, detail));
    }
    for index in 0..layout.versions.len() {
        errors.extend(bad_version(&layout, index));
    }
    errors.extend(bad_version_set(&layout));
    errors.extend(missing_names(&Path::root("spec.names"), names));
    errors.extend(bad_names(&Path::root("spec.names"), names));
    errors.extend(bad_properties(&layout, None));
    errors.extend(conversion::bad_conversion(new, old));
    errors.extend(old.map(|old| bad_change(new, old)).unwrap_or_default());
    errors.extend(bad_status(new));
    errors.extend(bad_stored_versions(new));
    errors.extend(approval::bad_approval(new, old));
    if preserves(new) && !old.is_some_and(preserves) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, detail));
    }
    errors
}

fn bad_group(group: &str) -> Option<FieldError> {
    const PATH: &str = "spec.group";
    if group.is_empty() {
        return Some(FieldError::required(PATH, ""));
    }
    let problems = dns1123_subdomain(group);
    if !problems.is_empty() {
        return Some(FieldError::invalid(PATH, group, problems.join(",")));
    }
    (!group.contains('.'))
        .then(|| FieldError::invalid(PATH, group, "should be a domain with at least one dot"))
}

fn missing_schemas(layout: &Layout<'_>) -> Vec<FieldError> {
    let lacks = |version: &Value| version.pointer("/schema/openAPIV3Schema").is_none_or(Value::is_null);
    let lacking = layout.versions.iter().enumerate().filter(|(_, version)| lacks(version));
    lacking
        .map(|(index, _)| {
            FieldError::required(Path::SPEC.item("versions", index).field("schema.openAPIV3Schema"), "")
        })
        .collect()
}

/// Validates a version on its own.
fn bad_version(layout: &Layout<'_>, index: usize) -> Vec<FieldError> {
    let Some(version) = layout.versions[index].as_object() else { return Vec::new() };
    let path = Path::SPEC.item("versions", index);
    let name = text(version, &["name"]);
    let mut errors: Vec<FieldError> = bad_label(&path.field("name"), name, name, "").into_iter().collect();
    if let Some(warning) = value(version, &["deprecationWarning"]).and_then(Value::as_str) {
        let problems = bad_warning(is_true(version, &["deprecated"]), warning).into_iter();
        let path = path.field("deprecationWarning");
        // Go formats the target of a pointer as JSON.
        let shown = Value::from(warning).to_string();
        errors.extend(problems.map(|p| FieldError::invalid(path, "", p).showing(&shown)));
    }
    errors.extend(bad_properties(layout, Some(index)));
    errors
}

fn bad_warning(deprecated: bool, warning: &str) -> Vec<String> {
    if !deprecated {
        return vec!["can only be set for deprecated versions".to_owned()];
    }
    let mut problems = Vec::new();
    if warning.len() > 256 {
        problems.push("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        problems.push("must not be an empty string".to_owned());
    }
    if let Some((at, _)) =
        warning.char_indices().find(|(_, c)| *c != ' ' && !c.is_ascii_graphic() && !is_printable(*c))
    {
        let rule = "must only contain printable UTF-8 characters; non-printable character found at index";
        problems.push(format!("{rule} {at}"));
    }
    problems
}

/// Validates schema, subresources, columns and selectable fields of a version, or the shared ones.
fn bad_properties(layout: &Layout<'_>, version: Option<usize>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (place, schema) in layout.schemas().into_iter().filter(|(place, _)| place.version == version) {
        errors.extend(bad_schema(&Path::root(&place.path), schema, layout.has_status(&place)));
    }
    let properties = |property, shared_name| {
        layout.properties(property, shared_name).into_iter().filter(|(place, _)| place.version == version)
    };
    for (place, subresources) in properties("subresources", "subresources") {
        errors.extend(bad_scale(&Path::root(&place.path), subresources));
    }
    for (place, columns) in properties("additionalPrinterColumns", "additionalPrinterColumns") {
        let path = Path::root(&place.path);
        let columns = columns.as_array().into_iter().flatten().filter_map(Value::as_object).enumerate();
        errors.extend(columns.flat_map(|(at, column)| bad_column(&path.at(at), column)));
    }
    for (place, fields) in properties("selectableFields", "selectableFields") {
        let problem = match (place.version, layout.is_shared("schema")) {
            (Some(_), true) => "may only be set when `version.schema.openAPIV3Schema` is not included",
            (None, false) => "may only be set when validations.schema is included",
            _ => "",
        };
        if !problem.is_empty() && fields.as_array().is_some_and(|fields| !fields.is_empty()) {
            errors.push(FieldError::invalid(Path::root(&place.path), "", problem));
            continue;
        }
        let index = place.version.unwrap_or(0);
        let schema = layout.versions[index].pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null);
        errors.extend(bad_selectable(&Path::root(&place.path), fields, schema));
    }
    errors
}

fn bad_scale(path: &Path<'_>, subresources: &Value) -> Vec<FieldError> {
    let Some(scale) = subresources.get("scale").and_then(Value::as_object) else { return Vec::new() };
    let mut errors = Vec::new();
    let fields: [(&str, &[&str], &str); 3] = [
        ("specReplicasPath", &[".spec."], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."], "should be a json path under .status"),
        ("labelSelectorPath", &[".spec.", ".status."], "should be a json path under either .spec or .status"),
    ];
    for (field, prefixes, rule) in fields {
        let scale_path = path.field("scale");
        let at = scale_path.field(field);
        match text(scale, &[field]) {
            "" if field == "labelSelectorPath" => {}
            "" => errors.push(FieldError::required(at, "")),
            json_path => match bad_json_path(&at, json_path) {
                Some(error) => errors.push(error),
                None if prefixes.iter().any(|prefix| json_path.starts_with(prefix)) => {}
                None => errors.push(FieldError::invalid(at, json_path, rule)),
            },
        }
    }
    errors
}

fn bad_json_path(at: &Path<'_>, path: &str) -> Option<FieldError> {
    let detail = "must be a simple json path starting with .";
    (!path.starts_with('.')).then(|| FieldError::invalid(at, path, detail))
}

fn bad_column(path: &Path<'_>, column: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(column, &["name"]).is_empty() {
        errors.push(FieldError::required(path.field("name"), ""));
    }
    let rule = |allowed: &[&str]| format!("must be one of {}", allowed.join(","));
    match text(column, &["type"]) {
        "" => errors.push(FieldError::required(path.field("type"), rule(&COLUMN_TYPES))),
        kind if COLUMN_TYPES.contains(&kind) => {}
        kind => errors.push(FieldError::invalid(path.field("type"), kind, rule(&COLUMN_TYPES))),
    }
    let format = text(column, &["format"]);
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        errors.push(FieldError::invalid(path.field("format"), format, rule(&COLUMN_FORMATS)));
    }
    match text(column, &["jsonPath"]) {
        "" => errors.push(FieldError::required(path.field("JSONPath"), "")),
        json_path => errors.extend(bad_json_path(&path.field("JSONPath"), json_path)),
    }
    errors
}

fn bad_selectable(path: &Path<'_>, fields: &Value, schema: &Value) -> Vec<FieldError> {
    let root = schema.as_object().map(Node::of_schema).unwrap_or_default();
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    let all = fields.as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, field) in all.iter().enumerate() {
        let item = path.at(index);
        let at = item.field("jsonPath");
        let json_path = field.get("jsonPath").and_then(Value::as_str).unwrap_or_default();
        if json_path.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let (found, node) = match field_path::resolve(&root, json_path, false) {
            Ok(found) => found,
            Err(problem) => {
                errors.push(FieldError::invalid(at, json_path, format!("is an invalid path: {problem}")));
                continue;
            }
        };
        if found == "metadata" || found.starts_with("metadata.") {
            errors.push(FieldError::invalid(at, json_path, "must not point to fields in metadata"));
        }
        if !node.kind.is_some_and(|kind| ["string", "boolean", "integer"].contains(&kind.name())) {
            let rule = "must point to a field of type string, boolean or integer. Enum string fields and \
                        strings with formats are allowed.";
            errors.push(FieldError::invalid(at, json_path, rule));
        }
        if !seen.insert(found) {
            errors.push(FieldError::duplicate(at, json_path));
        }
    }
    if seen.len() > SELECTABLE_MAX {
        errors.push(FieldError::too_many(path, seen.len(), SELECTABLE_MAX));
    }
    errors
}

/// Validates the list of versions.
fn bad_version_set(layout: &Layout<'_>) -> Vec<FieldError> {
    let names: Vec<&str> =
        layout.versions.iter().map(|version| model::object::text_in(version, "name")).collect();
    let mut errors = Vec::new();
    let mut refuse = |detail: &str| {
        let shown = shown_versions(layout.versions, |property| layout.is_shared(property));
        errors.push(FieldError::invalid("spec.versions", "", detail).showing(&shown));
    };
    if names.iter().collect::<BTreeSet<_>>().len() != names.len() {
        refuse("must contain unique version names");
    }
    let is_storage = |version: &&Value| version.get("storage") == Some(&Value::Bool(true));
    if layout.versions.iter().filter(is_storage).count() != 1 {
        refuse("must have exactly one version marked as storage version");
    }
    let first = names.first().copied().unwrap_or_default();
    if !first.is_empty() {
        errors.extend(bad_label(&Path::root("spec.version"), first, first, ""));
    }
    errors
}

/// Validates immutable fields.
fn bad_change(new: &Object, old: &Object) -> Vec<FieldError> {
    let in_use: &[&[&str]] = &[&["spec", "scope"], &["spec", "names", "kind"]];
    let always: &[&[&str]] = &[&["spec", "group"], &["spec", "names", "plural"]];
    let fields = in_use.iter().filter(|_| is_established(old)).chain(always);
    let changed = fields.filter(|path| text(new, path) != text(old, path));
    changed.map(|path| FieldError::invalid(path.join("."), text(new, path), "field is immutable")).collect()
}

/// Validates `status.storedVersions`.
fn bad_stored_versions(crd: &Object) -> Vec<FieldError> {
    const PATH: &str = "status.storedVersions";
    let stored = texts(crd, &["status", "storedVersions"]);
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        return vec![FieldError::invalid(PATH, Value::Null, detail)];
    }
    let versions = || maps(crd, &["spec", "versions"]).map(|(_, version)| version);
    let mut errors = Vec::new();
    for version in versions().filter(|version| is_true(version, &["storage"])) {
        let name = text(version, &["name"]);
        if !stored.contains(&name) {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(PATH, stored.clone(), detail));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if !versions().any(|version| text(version, &["name"]) == *name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {name} and removes \
                 {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(format!("{PATH}[{index}]"), *name, detail));
        }
    }
    errors
}
