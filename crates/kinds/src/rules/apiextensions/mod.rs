//! CustomResourceDefinition of `apiextensions.k8s.io`.

mod approval;
mod conversion;
mod lists;
mod names;
mod openapi;
mod schema;
mod shown;
mod spec;
mod structural;

use model::Object;
use model::error::{FieldError, Path, quote};
use model::object::{is_true, items, map_mut, maps, text, texts, value};
use serde_json::{Map, Value, json};

use super::{KindRules, Subresource};
use crate::rules::common::keep_all_but_status;
use crate::structural::{Format, numbers};
use spec::Layout;

pub use approval::approval_condition;

const SERVICE_PORT: i64 = 443;

pub(super) const RULES: &[KindRules] = &[KindRules {
    group: "apiextensions.k8s.io",
    kind: "CustomResourceDefinition",
    default,
    prepare_create: |object| {
        let names = json!({"kind": "", "plural": ""});
        let status = json!({"acceptedNames": names, "conditions": null, "storedVersions": null});
        object.insert("status".to_owned(), status);
        store_version(object);
    },
    prepare_update: |new, old| {
        model::object::copy(new, old, "status");
        store_version(new);
    },
    validate_create: |object| spec::validate(object, None),
    validate_update: |new, old| spec::validate(new, Some(old)),
    canonicalize,
    warnings,
    subresources: &[Subresource {
        name: "status",
        prepare_update: keep_all_but_status,
        validate_update: |new, _| bad_status(new),
    }],
    unconditional_update: false,
    ..KindRules::WITH_STATUS
}];

fn default(object: &mut Object) {
    let spec = map_mut(object, "spec");
    let names = map_mut(spec, "names");
    let kind = text(names, &["kind"]).to_owned();
    for field in ["singular", "listKind"] {
        if text(names, &[field]).is_empty() && !kind.is_empty() {
            let name = if field == "singular" { kind.to_lowercase() } else { format!("{kind}List") };
            names.insert(field.to_owned(), name.into());
        }
    }
    let conversion = spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    if let Some(Value::Object(service)) = conversion.pointer_mut("/webhook/clientConfig/service") {
        service.entry("port").or_insert_with(|| SERVICE_PORT.into());
    }
    let is_empty =
        |webhook: &Value| webhook.as_object().is_some_and(|fields| fields.values().all(Value::is_null));
    if let Value::Object(conversion) = conversion {
        conversion.retain(|key, value| key != "webhook" || !is_empty(value));
    }
    if items(object, &["status", "storedVersions"]).is_empty() {
        store_version(object);
    }
}

/// Formats the numbers of defaults and other values in schemas as Kubernetes does: `1.0` becomes `1`.
fn canonicalize(object: &mut Object) {
    let versions = object.get_mut("spec").and_then(|spec| spec.get_mut("versions"));
    let versions = versions.and_then(Value::as_array_mut).into_iter().flatten();
    for schema in versions.filter_map(|version| version.get_mut("schema")) {
        schema.as_object_mut().into_iter().for_each(numbers::normalize);
    }
}

/// Adds the storage version to `status.storedVersions`.
fn store_version(object: &mut Object) {
    let storage = maps(object, &["spec", "versions"]).find(|(_, version)| is_true(version, &["storage"]));
    let Some(name) = storage.map(|(_, version)| text(version, &["name"]).to_owned()) else { return };
    if !texts(object, &["status", "storedVersions"]).contains(&name.as_str()) {
        let stored = map_mut(object, "status").entry("storedVersions").or_insert(Value::Null);
        match stored {
            Value::Array(stored) => stored.push(name.into()),
            other => *other = json!([name]),
        }
    }
}

fn bad_status(object: &Object) -> Vec<FieldError> {
    let nothing = Map::new();
    let accepted = value(object, &["status", "acceptedNames"]).and_then(Value::as_object);
    names::bad_names(&Path::root("status.acceptedNames"), accepted.unwrap_or(&nothing))
}

/// Warnings about unknown formats, unless they were there before.
fn warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    let before = old.map(unknown_formats).unwrap_or_default();
    let added = unknown_formats(new).into_iter().filter(|format| !before.contains(format));
    added.map(|format| format!("unrecognized format {}", quote(&format))).collect()
}

fn unknown_formats(object: &Object) -> Vec<String> {
    let mut formats = Vec::new();
    for (_, schema) in Layout::of(object).schemas() {
        openapi::visit(schema, &mut |schema| {
            let format = text(schema, &["format"]);
            let is_text = text(schema, &["type"]) == "string";
            if !format.is_empty() && is_text && !Format::named(format).is_checked() {
                formats.push(format.to_owned());
            }
        });
    }
    formats
}
