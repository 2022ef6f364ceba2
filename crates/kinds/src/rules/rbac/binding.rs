//! RoleBinding and ClusterRoleBinding. Their role is immutable.

use model::Object;
use model::error::{FieldError, Path};
use model::names::{NameRule, dns1123_subdomain, path_segment};
use model::object::{items, map_mut, text};
use serde_json::{Value, json};

use super::GROUP;
use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::label_selector::invalid;

const SUBJECT_KINDS: [&str; 3] = ["ServiceAccount", "User", "Group"];

pub(super) const ROLE_BINDING: KindRules = KindRules {
    group: GROUP,
    kind: "RoleBinding",
    name: NameRule::PathSegment,
    default,
    validate_create: |object| validate(object, true),
    validate_update: |new, old| validate_update(new, old, true),
    create_on_update: true,
    columns: &[
        NAME,
        Column::new("Role", "string", "The role that it grants."),
        AGE,
        Column::new("Users", "string", "The users that it grants the role to.").wide(),
        Column::new("Groups", "string", "The groups that it grants the role to.").wide(),
        Column::new("ServiceAccounts", "string", "The service accounts that it grants the role to.").wide(),
    ],
    cells,
    ..KindRules::PLAIN
};

pub(super) const CLUSTER_ROLE_BINDING: KindRules = KindRules {
    kind: "ClusterRoleBinding",
    validate_create: |object| validate(object, false),
    validate_update: |new, old| validate_update(new, old, false),
    ..ROLE_BINDING
};

fn default(object: &mut Object) {
    let subjects = object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten();
    for subject in subjects.filter_map(Value::as_object_mut) {
        if matches!(text(subject, &["kind"]), "User" | "Group") {
            default_group(subject);
        }
    }
    default_group(map_mut(object, "roleRef"));
}

fn default_group(reference: &mut Object) {
    if text(reference, &["apiGroup"]).is_empty() {
        reference.insert("apiGroup".to_owned(), GROUP.into());
    }
}

fn validate_update(new: &Object, old: &Object, namespaced: bool) -> Vec<FieldError> {
    let mut errors = validate(new, namespaced);
    let map_at = |object, field| text(object, &["roleRef", field]);
    if ["apiGroup", "kind", "name"].into_iter().any(|field| map_at(new, field) != map_at(old, field)) {
        let role = json!({
            "APIGroup": map_at(new, "apiGroup"), "Kind": map_at(new, "kind"), "Name": map_at(new, "name"),
        });
        errors.push(FieldError::invalid("roleRef", role, "cannot change roleRef"));
    }
    errors
}

fn validate(object: &Object, namespaced: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let map_at = |field| text(object, &["roleRef", field]);
    let role_kinds = if namespaced { ["Role", "ClusterRole"].as_slice() } else { &["ClusterRole"] };
    for (field, supported) in [("apiGroup", [GROUP].as_slice()), ("kind", role_kinds)] {
        if !supported.contains(&map_at(field)) {
            errors.push(FieldError::not_supported(format!("roleRef.{field}"), map_at(field), supported));
        }
    }
    match map_at("name") {
        "" => errors.push(FieldError::required("roleRef.name", "")),
        name => errors.extend(invalid(&Path::root("roleRef.name"), name, path_segment(name))),
    }
    for (index, subject) in items(object, &["subjects"]).iter().filter_map(Value::as_object).enumerate() {
        errors.extend(bad_subject(&Path::OBJECT.item("subjects", index), subject, namespaced));
    }
    errors
}

fn bad_subject(path: &Path<'_>, subject: &Object, namespaced: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (kind, name, group) =
        (text(subject, &["kind"]), text(subject, &["name"]), text(subject, &["apiGroup"]));
    if name.is_empty() {
        errors.push(FieldError::required(path.field("name"), ""));
    }
    match kind {
        "ServiceAccount" => {
            if !name.is_empty() {
                errors.extend(invalid(&path.field("name"), name, dns1123_subdomain(name)));
            }
            if !group.is_empty() {
                errors.push(FieldError::not_supported(path.field("apiGroup"), group, &[""]));
            }
            if !namespaced && text(subject, &["namespace"]).is_empty() {
                errors.push(FieldError::required(path.field("namespace"), ""));
            }
        }
        "User" | "Group" if group == GROUP => {}
        "User" | "Group" => errors.push(FieldError::not_supported(path.field("apiGroup"), group, &[GROUP])),
        _ => errors.push(FieldError::not_supported(path.field("kind"), kind, &SUBJECT_KINDS)),
    }
    errors
}

fn cells(object: &Object, now: jiff::Timestamp) -> Vec<Value> {
    let role = format!("{}/{}", text(object, &["roleRef", "kind"]), text(object, &["roleRef", "name"]));
    let named = |kind: &str| -> Value {
        let subjects = items(object, &["subjects"]).iter().filter_map(Value::as_object);
        let names = subjects.filter(|subject| text(subject, &["kind"]) == kind).map(shown_subject);
        names.collect::<Vec<_>>().join(", ").into()
    };
    vec![name(object), role.into(), age(object, now), named("User"), named("Group"), named("ServiceAccount")]
}

fn shown_subject(subject: &Object) -> String {
    let name = text(subject, &["name"]);
    match text(subject, &["kind"]) {
        "ServiceAccount" => format!("{}/{name}", text(subject, &["namespace"])),
        _ => name.to_owned(),
    }
}
