//! CSIDriver.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path};
use model::object::{has, is_true, items, map_mut, number, set_default, text, text_in, value};
use serde_json::{Value, json};

use super::GROUP;
use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name, or_none};
use crate::rules::common::unsupported;

const EXPIRATION_MIN: i64 = 600;
const EXPIRATION_MAX: i64 = 1 << 32;

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "CSIDriver",
    default: |object| {
        let spec = map_mut(object, "spec");
        for (field, value) in [
            ("attachRequired", true),
            ("podInfoOnMount", false),
            ("storageCapacity", false),
            ("requiresRepublish", false),
            ("seLinuxMount", false),
        ] {
            spec.entry(field).or_insert(value.into());
        }
        set_default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        if items(spec, &["volumeLifecycleModes"]).is_empty() {
            spec.insert("volumeLifecycleModes".to_owned(), json!(["Persistent"]));
        }
    },
    // A new CSIDriver has no generation; the first change of its spec sets it to one.
    prepare_update: |new, old| {
        if new.get("spec") != old.get("spec") {
            let next = number(old, &["metadata", "generation"]) + 1;
            map_mut(new, "metadata").insert("generation".to_owned(), next.into());
        }
    },
    validate_create: validate,
    validate_update: |new, old| {
        let mut errors = validate(new);
        for (field, path) in [
            ("attachRequired", "spec.attachedRequired"),
            ("volumeLifecycleModes", "spec.volumeLifecycleModes"),
        ] {
            let now = value(new, &["spec", field]);
            if now != value(old, &["spec", field]) {
                let now = now.cloned().unwrap_or_default();
                errors.push(FieldError::invalid(path, now, "field is immutable"));
            }
        }
        errors
    },
    warnings: |new, old| {
        let requests = |object| items(object, &["spec", "tokenRequests"]);
        let changed = old.is_none_or(|old| requests(old) != requests(new)) && !requests(new).is_empty();
        let text = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to \
                    prevent possible logging of tokens in volume attributes";
        let warned = changed && !has(new, &["spec", "serviceAccountTokenInSecrets"]);
        warned.then(|| text.to_owned()).into_iter().collect()
    },
    unconditional_update: false,
    columns: &[
        NAME,
        Column::new("AttachRequired", "boolean", "Whether its volumes are attached to nodes."),
        Column::new("PodInfoOnMount", "boolean", "Whether it receives pod information on mount."),
        Column::new("StorageCapacity", "boolean", "Whether it publishes its storage capacity."),
        Column::new(
            "TokenRequests",
            "string",
            "The audiences of the service account tokens that it requests.",
        ),
        Column::new("RequiresRepublish", "boolean", "Whether it is called periodically."),
        Column::new("Modes", "string", "The supported volume modes."),
        AGE,
    ],
    cells,
    ..KindRules::PLAIN
};

fn cells(object: &Object, now: jiff::Timestamp) -> Vec<Value> {
    let flag = |field| is_true(object, &["spec", field]).into();
    let attach = value(object, &["spec", "attachRequired"]).and_then(Value::as_bool).unwrap_or(true);
    let requests: Vec<&str> = items(object, &["spec", "tokenRequests"])
        .iter()
        .map(|request| text_in(request, "audience"))
        .collect();
    let requests = if requests.is_empty() { "<unset>".to_owned() } else { requests.join(",") };
    let modes: Vec<&str> =
        items(object, &["spec", "volumeLifecycleModes"]).iter().filter_map(Value::as_str).collect();
    vec![
        name(object),
        attach.into(),
        flag("podInfoOnMount"),
        flag("storageCapacity"),
        requests.into(),
        flag("requiresRepublish"),
        or_none(modes.join(",")),
        age(object, now),
    ]
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    errors.extend(unsupported(
        &Path::root("spec.fsGroupPolicy"),
        text(object, &["spec", "fsGroupPolicy"]),
        &policies,
    ));
    let requests = items(object, &["spec", "tokenRequests"]);
    errors.extend(bad_requests(requests));
    for mode in items(object, &["spec", "volumeLifecycleModes"]) {
        let mode = mode.as_str().unwrap_or_default();
        errors.extend(unsupported(
            &Path::root("spec.volumeLifecycleModes"),
            mode,
            &["Persistent", "Ephemeral"],
        ));
    }
    let period = value(object, &["spec", "nodeAllocatableUpdatePeriodSeconds"]).and_then(Value::as_i64);
    if let Some(period) = period.filter(|period| *period < 10) {
        let path = &Path::root("spec.nodeAllocatableUpdatePeriodSeconds");
        errors.push(FieldError::invalid(path, period, "must be greater than or equal to 10 seconds"));
    }
    let in_secrets = value(object, &["spec", "serviceAccountTokenInSecrets"]);
    if let Some(in_secrets) = in_secrets.filter(|_| requests.is_empty()) {
        let problem = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        let path = &Path::root("spec.serviceAccountTokenInSecrets");
        errors.push(FieldError::invalid(path, in_secrets.clone(), problem));
    }
    errors
}

fn bad_requests(requests: &[Value]) -> Vec<FieldError> {
    let (mut audiences, mut errors) = (BTreeSet::new(), Vec::new());
    for (index, request) in requests.iter().enumerate() {
        let path = Path::SPEC.item("tokenRequests", index);
        let audience = text_in(request, "audience");
        if !audiences.insert(audience) {
            errors.push(FieldError::duplicate(path.field("audience"), audience));
            continue;
        }
        let Some(seconds) = request.get("expirationSeconds").and_then(Value::as_i64) else { continue };
        let problem = match seconds {
            ..EXPIRATION_MIN => "may not specify a duration less than 10 minutes",
            EXPIRATION_MIN..=EXPIRATION_MAX => continue,
            _ => "may not specify a duration larger than 2^32 seconds",
        };
        errors.push(FieldError::invalid(path.field("expirationSeconds"), seconds, problem));
    }
    errors
}
