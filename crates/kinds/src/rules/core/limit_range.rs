//! LimitRange.

use std::collections::{BTreeMap, BTreeSet};

use model::Object;
use model::error::{FieldError, Path};
use model::names::qualified_name;
use model::object::{entries, has, map_mut, maps, maps_mut, text};
use serde_json::Value;

use super::resource_name::{allows_overcommit, bad_container_resource_name, bad_resource_name};
use crate::rules::KindRules;
use crate::rules::label_selector::invalid;
use quantity::Quantity;

const TYPES: [&str; 3] = ["Pod", "Container", "PersistentVolumeClaim"];

pub(super) const RULES: KindRules = KindRules {
    kind: "LimitRange",
    default: |object| maps_mut(map_mut(object, "spec"), "limits").for_each(default_limit),
    validate_create: validate,
    validate_update: |new, _| validate(new),
    create_on_update: true,
    ..KindRules::PLAIN
};

/// Defaults of containers: limits from the maximum, requests from limits, then from the minimum.
fn default_limit(limit: &mut Object) {
    if text(limit, &["type"]) != "Container" {
        return;
    }
    for (field, source) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let amounts: Vec<(String, Value)> =
            entries(limit, &[source]).map(|(name, amount)| (name.clone(), amount.clone())).collect();
        if amounts.is_empty() {
            continue;
        }
        let target = map_mut(limit, field);
        for (name, amount) in amounts {
            target.entry(name).or_insert(amount);
        }
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, limit) in maps(object, &["spec", "limits"]) {
        let path = Path::SPEC.item("limits", index);
        let kind = text(limit, &["type"]);
        errors.extend(bad_type(&path.field("type"), kind));
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(path.field("type"), kind));
        }
        errors.extend(bad_names(&path, kind, limit));
        for (name, amounts) in by_resource(limit, kind) {
            errors.extend(bad_amounts(&path, name, &amounts));
        }
    }
    errors
}

fn bad_type(path: &Path<'_>, kind: &str) -> Vec<FieldError> {
    let errors: Vec<FieldError> = invalid(path, kind, qualified_name(kind)).collect();
    if errors.is_empty() && !kind.contains('/') && !TYPES.contains(&kind) {
        return vec![FieldError::invalid(path, kind, "must be a standard limit type or fully qualified")];
    }
    errors
}

fn bad_names(path: &Path<'_>, kind: &str, limit: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        if field == "maxLimitRequestRatio" && kind == "PersistentVolumeClaim" {
            let bounded = has(limit, &["min", "storage"]) || has(limit, &["max", "storage"]);
            let detail = "either minimum or maximum storage value is required, but neither was provided";
            errors.extend((!bounded).then(|| FieldError::required(path.field("limits"), detail)));
        }
        let has_defaults = field.starts_with("default") && entries(limit, &[field]).next().is_some();
        if kind == "Pod" && has_defaults {
            let detail = "may not be specified when `type` is 'Pod'";
            errors.push(FieldError::forbidden(path.field(field), detail));
            continue;
        }
        let path = path.field(field);
        for (name, _) in entries(limit, &[field]) {
            let path = path.key(name);
            errors.extend(match kind {
                "Pod" | "Container" => bad_container_resource_name(&path, name),
                _ => bad_resource_name(&path, name),
            });
        }
    }
    errors
}

/// A quantity and its text.
type Amount<'a> = (&'a str, Quantity);

/// The limits of one resource.
#[derive(Default)]
struct Amounts<'a> {
    min: Option<Amount<'a>>,
    max: Option<Amount<'a>>,
    default: Option<Amount<'a>>,
    request: Option<Amount<'a>>,
    ratio: Option<Amount<'a>>,
}

fn by_resource<'a>(limit: &'a Object, kind: &str) -> BTreeMap<&'a str, Amounts<'a>> {
    let mut resources = BTreeMap::<&str, Amounts>::new();
    let is_pod = kind == "Pod";
    for field in ["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"] {
        for (name, amount) in entries(limit, &[field]).filter(|_| !is_pod || !field.starts_with("default")) {
            let amounts = resources.entry(name).or_default();
            let slot = match field {
                "min" => &mut amounts.min,
                "max" => &mut amounts.max,
                "default" => &mut amounts.default,
                "defaultRequest" => &mut amounts.request,
                _ => &mut amounts.ratio,
            };
            *slot = amount.as_str().and_then(|text| Some((text, Quantity::parse(text).ok()?)));
        }
    }
    resources
}

fn bad_amounts(path: &Path<'_>, name: &str, amounts: &Amounts) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // Pairs of bounds, the field and value that is reported, and the message.
    let rules = [
        (amounts.min, amounts.max, "min", amounts.min, ["min", "max"]),
        (amounts.min, amounts.request, "defaultRequest", amounts.request, ["min", "default request"]),
        (amounts.request, amounts.max, "defaultRequest", amounts.request, ["default request", "max"]),
        (
            amounts.request,
            amounts.default,
            "defaultRequest",
            amounts.request,
            ["default request", "default limit"],
        ),
        (amounts.min, amounts.default, "default", amounts.min, ["min", "default"]),
        (amounts.default, amounts.max, "default", amounts.max, ["default", "max"]),
    ];
    for (lesser, greater, field, reported, [a, b]) in rules {
        if let (Some((lesser_text, lesser)), Some((greater_text, greater)), Some((reported, _))) =
            (lesser, greater, reported)
            && lesser > greater
        {
            let detail = format!("{a} value {lesser_text} is greater than {b} value {greater_text}");
            errors.push(FieldError::invalid(path.field(field).key(name), reported, detail));
        }
    }
    errors.extend(bad_ratio(&path.field("maxLimitRequestRatio").key(name), amounts));
    if let (Some((default_text, default)), Some((request_text, request))) = (amounts.default, amounts.request)
        && !allows_overcommit(name)
        && default != request
    {
        let detail = format!(
            "default value {default_text} must equal to defaultRequest value {request_text} in {name}"
        );
        errors.push(FieldError::invalid(path.field("defaultRequest").key(name), request_text, detail));
    }
    errors
}

fn bad_ratio(path: &Path<'_>, amounts: &Amounts) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some((text, ratio)) = amounts.ratio else { return errors };
    if ratio.to_f64() < 1.0 {
        errors.push(FieldError::invalid(path, text, format!("ratio {text} is less than 1")));
    }
    if let (Some((_, min)), Some((_, max))) = (amounts.min, amounts.max) {
        let limit = max.to_f64() / min.to_f64();
        if ratio.to_f64() > limit {
            let detail = format!("ratio {text} is greater than max/min = {limit:.6}");
            errors.push(FieldError::invalid(path, text, detail));
        }
    }
    errors
}
