//! IPAddress: the object that uses an IP address.

use model::Object;
use model::error::{FieldError, Path};
use model::names::{NameRule, dns1123_subdomain, path_segment};
use model::object::{text_in, value};
use serde_json::Value;

use super::{GROUP, required_segment};
use crate::rules::KindRules;
use crate::rules::columns::{Column, NAME, age, name};
use crate::rules::common::invalid_for;

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "IPAddress",
    name: NameRule::IpAddress,
    validate_create: validate,
    validate_update: |new, old| {
        let parent = |object| value(object, &["spec", "parentRef"]);
        let mut errors = validate(new);
        if parent(new) != parent(old) {
            let shown = parent(new).map_or_else(|| "null".to_owned(), shown);
            errors.push(FieldError::invalid("spec.parentRef", "", "field is immutable").showing(&shown));
        }
        errors
    },
    // Kubernetes returns a third cell, the age, without a column.
    columns: &[NAME, Column::new("ParentRef", "string", "The object that uses the address.")],
    cells: |object, now| vec![name(object), parent(object).into(), age(object, now)],
    ..KindRules::PLAIN
};

fn validate(object: &Object) -> Vec<FieldError> {
    const PATH: Path<'static> = Path::root("spec.parentRef");
    let Some(parent) = value(object, &["spec", "parentRef"]).filter(|parent| parent.is_object()) else {
        return vec![FieldError::required(PATH, "")];
    };
    let field = |field| (PATH.field(field), text_in(parent, field));
    let mut errors = Vec::new();
    let (path, group) = field("group");
    if !group.is_empty() {
        errors.extend(invalid_for(&path, group, dns1123_subdomain(group)));
    }
    for name in ["resource", "name"] {
        let (path, value) = field(name);
        errors.extend(required_segment(&path, value));
    }
    let (path, namespace) = field("namespace");
    errors.extend(invalid_for(&path, namespace, path_segment(namespace)));
    errors
}

fn shown(parent: &Value) -> String {
    let fields = [("Group", "group"), ("Resource", "resource"), ("Namespace", "namespace"), ("Name", "name")];
    let fields = fields.map(|(go, field)| format!("\"{go}\":\"{}\"", text_in(parent, field)));
    format!("{{{}}}", fields.join(","))
}

fn parent(object: &Object) -> String {
    let Some(parent) = value(object, &["spec", "parentRef"]) else { return "<none>".to_owned() };
    let mut shown = text_in(parent, "resource").to_owned();
    if !text_in(parent, "group").is_empty() {
        shown = format!("{shown}.{}", text_in(parent, "group"));
    }
    shown = shown.to_lowercase();
    if !text_in(parent, "namespace").is_empty() {
        shown = format!("{shown}/{}", text_in(parent, "namespace"));
    }
    format!("{shown}/{}", text_in(parent, "name"))
}
