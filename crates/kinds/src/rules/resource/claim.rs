//! ResourceClaim and ResourceClaimTemplate. Their spec is immutable.

use model::Object;
use model::error::{FieldError, Path};
use model::names::dns1123_subdomain;
use model::object::{has, items, map_mut, maps_mut, number, text, value};
use serde_json::{Map, Value};

use super::GROUP;
use super::allocation::{bad_status, drop_gone_devices};
use super::checks::{
    RequestNames, bad_configuration, bad_label, bad_list, bad_qualified_name, bad_selectors,
};
use super::device_class::CONFIGURATIONS_MAX;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::{immutable, keep_all_but_status, keep_metadata};
use crate::rules::core::check_claim_metadata;
use crate::rules::label_selector::invalid;
use crate::rules::{KindRules, Subresource};

pub(super) const REQUESTS_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const CONSTRAINTS_MAX: usize = 32;
const MODES: [&str; 2] = ["All", "ExactCount"];

pub(super) const CLAIM: KindRules = KindRules {
    group: GROUP,
    kind: "ResourceClaim",
    default: |object| default_claim(map_mut(object, "spec")),
    prepare_create: |object| {
        object.insert("status".to_owned(), Value::Object(Map::new()));
        drop_disabled(map_mut(object, "spec"));
    },
    prepare_update: |new, old| {
        drop_disabled(map_mut(new, "spec"));
        model::object::copy(new, old, "status");
    },
    validate_create: |object| bad_spec(&Path::SPEC, object),
    validate_update: |new, old| immutable(new, old, "spec").into_iter().collect(),
    subresources: &[Subresource {
        name: "status",
        prepare_update: |new, old| {
            keep_all_but_status(new, old);
            keep_metadata(new, old);
            drop_gone_devices(new, old);
        },
        validate_update: bad_status,
    }],
    counts_generations: false,
    columns: &[NAME, Column::new("State", "string", "The state of the claim."), AGE],
    cells: |object, now| vec![name(object), state(object).into(), age(object, now)],
    ..KindRules::WITH_STATUS
};

pub(super) const TEMPLATE: KindRules = KindRules {
    group: GROUP,
    kind: "ResourceClaimTemplate",
    default: |object| default_claim(map_mut(map_mut(object, "spec"), "spec")),
    prepare_create: |object| drop_disabled(map_mut(map_mut(object, "spec"), "spec")),
    prepare_update: |new, _| drop_disabled(map_mut(map_mut(new, "spec"), "spec")),
    validate_create: bad_template,
    validate_update: |new, old| bad_template(new).into_iter().chain(immutable(new, old, "spec")).collect(),
    columns: &[NAME, AGE],
    cells: |object, now| vec![name(object), age(object, now)],
    ..KindRules::PLAIN
};

/// Defaults of device requests: exactly one device.
fn default_claim(spec: &mut Object) {
    for_each_request(spec, |request| {
        if text(request, &["allocationMode"]).is_empty() {
            request.insert("allocationMode".to_owned(), MODES[1].into());
        }
        if text(request, &["allocationMode"]) == MODES[1] && number(request, &["count"]) == 0 {
            request.insert("count".to_owned(), 1.into());
        }
    });
}

fn drop_disabled(spec: &mut Object) {
    for_each_request(spec, |request| {
        for field in ["tolerations", "capacity"] {
            request.remove(field);
        }
    });
    for constraint in maps_mut(map_mut(spec, "devices"), "constraints") {
        constraint.remove("distinctAttribute");
    }
}

/// Calls `act` with every exact request and every subrequest.
fn for_each_request(spec: &mut Object, act: impl Fn(&mut Object)) {
    for request in maps_mut(map_mut(spec, "devices"), "requests") {
        if let Some(Value::Object(exactly)) = request.get_mut("exactly") {
            act(exactly);
        }
        maps_mut(request, "firstAvailable").for_each(&act);
    }
}

/// Validates a ResourceClaimTemplate.
fn bad_template(object: &Object) -> Vec<FieldError> {
    let Some(spec) = value(object, &["spec"]).and_then(Value::as_object) else { return Vec::new() };
    let mut errors = Vec::new();
    if let Some(metadata) = value(spec, &["metadata"]).and_then(Value::as_object) {
        check_claim_metadata(&mut errors, metadata, &Path::SPEC.field("metadata"));
    }
    errors.extend(bad_spec(&Path::SPEC.field("spec"), spec));
    errors
}

/// Validates the claim spec in a field of an object.
fn bad_spec(path: &Path<'_>, object: &Object) -> Vec<FieldError> {
    let Some(devices) = value(object, &["spec", "devices"]).and_then(Value::as_object) else {
        return Vec::new();
    };
    let path = path.field("devices");
    let names = RequestNames::of(devices);
    let mut errors = bad_list(
        &path.field("requests"),
        items(devices, &["requests"]),
        REQUESTS_MAX,
        Some("name"),
        bad_request,
    );
    let constraints = items(devices, &["constraints"]);
    errors.extend(bad_list(
        &path.field("constraints"),
        constraints,
        CONSTRAINTS_MAX,
        None,
        |path, constraint| {
            let mut errors = names.bad_references(&path.field("requests"), constraint, REQUESTS_MAX);
            errors.extend(bad_attribute(&path.field("matchAttribute"), constraint));
            errors
        },
    ));
    let configurations = items(devices, &["config"]);
    errors.extend(bad_list(
        &path.field("config"),
        configurations,
        CONFIGURATIONS_MAX,
        None,
        |path, configuration| {
            let mut errors = names.bad_references(&path.field("requests"), configuration, REQUESTS_MAX);
            errors.extend(bad_configuration(path, configuration));
            errors
        },
    ));
    errors
}

fn bad_attribute(path: &Path<'_>, constraint: &Object) -> Vec<FieldError> {
    if !has(constraint, &["matchAttribute"]) {
        return vec![FieldError::required(path, "")];
    }
    let attribute = text(constraint, &["matchAttribute"]);
    let mut errors = bad_qualified_name(path, attribute);
    if !attribute.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(FieldError::invalid(path, attribute, detail));
    }
    errors
}

fn bad_request(path: &Path<'_>, request: &Object) -> Vec<FieldError> {
    let mut errors = bad_label(&path.field("name"), text(request, &["name"]));
    let exactly = value(request, &["exactly"]).and_then(Value::as_object);
    let alternatives = items(request, &["firstAvailable"]);
    let rule = "exactly one of `exactly` or `firstAvailable` is required";
    match (exactly, alternatives) {
        (None, []) => errors.push(FieldError::required(path, rule)),
        (Some(_), [_, ..]) => {
            let detail = format!("{rule}, but multiple fields are set");
            errors.push(FieldError::invalid(path, Value::Null, detail));
        }
        (Some(exactly), []) => errors.extend(bad_exact_request(&path.field("exactly"), exactly)),
        (None, alternatives) => {
            let check = |path: &Path<'_>, alternative: &Object| {
                let mut errors = bad_label(&path.field("name"), text(alternative, &["name"]));
                errors.extend(bad_exact_request(path, alternative));
                errors
            };
            let path = path.field("firstAvailable");
            errors.extend(bad_list(&path, alternatives, ALTERNATIVES_MAX, Some("name"), check));
        }
    }
    errors
}

fn bad_exact_request(path: &Path<'_>, request: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let class_path = path.field("deviceClassName");
    match text(request, &["deviceClassName"]) {
        "" => errors.push(FieldError::required(class_path, "")),
        class => errors.extend(invalid(&class_path, class, dns1123_subdomain(class))),
    }
    errors.extend(bad_selectors(&path.field("selectors"), request));
    let count = number(request, &["count"]);
    let refuse = |detail: &str| FieldError::invalid(path.field("count"), count, detail);
    match text(request, &["allocationMode"]) {
        "All" if count != 0 => errors.push(refuse("must not be specified when allocationMode is 'All'")),
        "ExactCount" if count <= 0 => errors.push(refuse("must be greater than zero")),
        "All" | "ExactCount" => {}
        mode => errors.push(FieldError::not_supported(path.field("allocationMode"), mode, &MODES)),
    }
    errors
}

fn state(object: &Object) -> String {
    let deleted = has(object, &["metadata", "deletionTimestamp"]);
    let allocated = has(object, &["status", "allocation"]);
    let reserved = allocated && !items(object, &["status", "reservedFor"]).is_empty();
    let states = [
        (deleted, "deleted"),
        (!allocated && !deleted, "pending"),
        (allocated, "allocated"),
        (reserved, "reserved"),
    ];
    let shown: Vec<&str> = states.iter().filter(|(holds, _)| *holds).map(|(_, word)| *word).collect();
    shown.join(",")
}
