//! APIService of `apiregistration.k8s.io`: a group version, served locally or by an extension server.

use model::Object;
use model::error::{FieldError, Path, quote};
use model::names::{NameRule, dns1035_label, dns1123_subdomain};
use model::object::{is_true, map_mut, maps, number, text, value};
use serde_json::{Value, json};

use super::columns::{AGE, Column, NAME, age, name};
use super::label_selector::invalid;
use super::{KindRules, Subresource, Writer};
use crate::rules::common::{keep_all_but_status, keep_metadata};

const SERVICE_PORT: i64 = 443;
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

pub(super) const RULES: &[KindRules] = &[KindRules {
    group: "apiregistration.k8s.io",
    kind: "APIService",
    name: NameRule::PathSegment,
    default: |object| {
        if let Some(Value::Object(service)) = map_mut(object, "spec").get_mut("service") {
            service.entry("port").or_insert_with(|| SERVICE_PORT.into());
        }
    },
    stamp,
    validate_create: validate,
    validate_update: |new, _| validate(new),
    subresources: &[Subresource {
        name: "status",
        prepare_update: |new, old| {
            keep_all_but_status(new, old);
            keep_metadata(new, old);
        },
        validate_update: |new, _| bad_status(new),
    }],
    counts_generations: false,
    unconditional_update: false,
    columns: &[
        NAME,
        Column::new("Service", "string", "The Service that serves it."),
        Column::new("Available", "string", "Whether the API is available."),
        AGE,
    ],
    cells: |object, now| {
        let service = match service(object) {
            Some(service) => format!("{}/{}", text(service, &["namespace"]), text(service, &["name"])),
            None => "Local".to_owned(),
        };
        vec![name(object), service.into(), shown_availability(object).into(), age(object, now)]
    },
    ..KindRules::WITH_STATUS
}];

fn service(object: &Object) -> Option<&Object> {
    value(object, &["spec", "service"]).and_then(Value::as_object)
}

/// A local APIService is available at once.
fn stamp(new: &mut Object, old: Option<&Object>, writer: &Writer) {
    if old.is_none() && service(new).is_none() {
        let condition = json!({
            "type": "Available", "status": "True", "lastTransitionTime": writer.now, "reason": "Local",
            "message": "Local APIServices are always available",
        });
        map_mut(new, "status").insert("conditions".to_owned(), json!([condition]));
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(spec) = value(object, &["spec"]).and_then(Value::as_object) else { return errors };
    let (group, version) = (text(spec, &["group"]), text(spec, &["version"]));
    let required_name = format!("{version}.{group}");
    let name = text(object, &["metadata", "name"]);
    if !name.is_empty() && name != required_name {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {}", quote(&required_name));
        errors.push(FieldError::invalid("metadata.name", name, detail));
    }
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required("spec.group", detail));
    }
    if !group.is_empty() {
        errors.extend(invalid(&Path::root("spec.group"), group, dns1123_subdomain(group)));
    }
    errors.extend(invalid(&Path::root("spec.version"), version, dns1035_label(version)));
    for (field, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let priority = number(spec, &[field]);
        if !(1..=max).contains(&priority) {
            let detail = format!("must be positive and less than {max}");
            errors.push(FieldError::invalid(Path::SPEC.field(field), priority, detail));
        }
    }
    errors.extend(bad_trust(spec));
    errors
}

/// Validates the CA bundle and TLS settings of an extension server.
fn bad_trust(spec: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let bundle = crate::schema::decode_base64(text(spec, &["caBundle"])).unwrap_or_default();
    let insecure = is_true(spec, &["insecureSkipTLSVerify"]);
    let refuse_insecure = |detail: &str| FieldError::invalid("spec.insecureSkipTLSVerify", true, detail);
    let Some(service) = value(spec, &["service"]).and_then(Value::as_object) else {
        if !bundle.is_empty() {
            let detail = "local APIServices may not have a caBundle";
            errors.push(FieldError::invalid("spec.caBundle", format!("{} bytes", bundle.len()), detail));
        }
        if insecure {
            errors.push(refuse_insecure("local APIServices may not have insecureSkipTLSVerify"));
        }
        return errors;
    };
    for field in ["namespace", "name"] {
        if text(service, &[field]).is_empty() {
            errors.push(FieldError::required(Path::SPEC.field("service").field(field), ""));
        }
    }
    let port = number(service, &["port"]);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid("spec.service.port", port, detail));
    }
    if insecure && !bundle.is_empty() {
        errors.push(refuse_insecure("may not be true if caBundle is present"));
    }
    errors
}

fn bad_status(object: &Object) -> Vec<FieldError> {
    let statuses =
        maps(object, &["status", "conditions"]).map(|(at, condition)| (at, text(condition, &["status"])));
    let unknown = statuses.filter(|(_, status)| !STATUSES.contains(status));
    let error = |(index, status)| {
        FieldError::not_supported(Path::STATUS.item("conditions", index).field("status"), status, &STATUSES)
    };
    unknown.map(error).collect()
}

fn shown_availability(object: &Object) -> String {
    let mut conditions = maps(object, &["status", "conditions"]).map(|(_, condition)| condition);
    let Some(condition) = conditions.find(|condition| text(condition, &["type"]) == "Available") else {
        return "Unknown".to_owned();
    };
    match (text(condition, &["status"]), text(condition, &["reason"])) {
        (status @ "True", _) | (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}
