//! ServiceCIDR.

use model::Object;
use model::address::{Range, bad_strict_range};
use model::error::{FieldError, Path};
use model::object::{copy, items, map_mut, text};
use serde_json::{Value, json};

use super::GROUP;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::keep_all_but_status;
use crate::rules::{KindRules, Subresource, Writer};

const PATH: &str = "spec.cidrs";
const DEFAULT: &str = "kubernetes";
const IMMUTABLE: &str = "field is immutable";

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "ServiceCIDR",
    prepare_create: |object| {
        object.insert("status".to_owned(), json!({}));
    },
    prepare_update: |new, old| copy(new, old, "status"),
    stamp,
    validate_create: |object| validate(ranges(object)),
    validate_update: |new, old| {
        let (was, is) = (ranges(old), ranges(new));
        let changed = |index: usize| {
            let error = FieldError::invalid(format!("{PATH}[{index}]"), is[index].clone(), IMMUTABLE);
            (was[index] != is[index]).then_some(error)
        };
        match (was.len(), is.len()) {
            (was, is) if was == is => (0..is).filter_map(changed).collect(),
            (1, 2) => {
                let mut errors: Vec<FieldError> = changed(0).into_iter().collect();
                errors.extend(validate(is));
                errors
            }
            _ => vec![FieldError::invalid(PATH, list(is), IMMUTABLE)],
        }
    },
    subresources: &[Subresource {
        name: "status",
        prepare_update: keep_all_but_status,
        validate_update: |_, _| Vec::new(),
    }],
    columns: &[NAME, Column::new("CIDRs", "string", "The CIDRs, at most one of each family."), AGE],
    cells: |object, now| {
        let ranges: Vec<&str> = ranges(object).iter().filter_map(Value::as_str).collect();
        vec![name(object), ranges.join(",").into(), age(object, now)]
    },
    ..KindRules::PLAIN
};

/// Sets the status of the default ServiceCIDR: it is ready at once.
fn stamp(new: &mut Object, old: Option<&Object>, writer: &Writer) {
    if old.is_none() && text(new, &["metadata", "name"]) == DEFAULT {
        let ready = json!({
            "type": "Ready", "status": "True", "reason": "", "lastTransitionTime": writer.now,
            "message": "Kubernetes default Service CIDR is ready",
        });
        map_mut(new, "status").insert("conditions".to_owned(), json!([ready]));
    }
}

fn ranges(object: &Object) -> &[Value] {
    items(object, &["spec", "cidrs"])
}

fn list(ranges: &[Value]) -> Value {
    if ranges.is_empty() { Value::Null } else { Value::Array(ranges.to_vec()) }
}

fn validate(ranges: &[Value]) -> Vec<FieldError> {
    if ranges.is_empty() {
        return vec![FieldError::required(PATH, "at least one CIDR required")];
    }
    if ranges.len() > 2 {
        let shown = json!({"CIDRs": ranges});
        return vec![FieldError::invalid(PATH, shown, "may only hold up to 2 values")];
    }
    let texts = || ranges.iter().map(|range| range.as_str().unwrap_or_default());
    let each = texts().enumerate();
    let mut errors: Vec<FieldError> =
        each.flat_map(|(index, range)| bad_strict_range(&Path::root(PATH).at(index), range)).collect();
    let families: Vec<bool> = texts().filter_map(Range::parse).map(Range::is_ipv6).collect();
    if matches!(families.as_slice(), [first, second] if first == second) {
        let problem =
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(PATH, list(ranges), problem));
    }
    errors
}
