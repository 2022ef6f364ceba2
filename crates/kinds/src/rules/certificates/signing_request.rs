//! CertificateSigningRequest. Its spec is immutable; `approval` writes conditions, `status` the certificate.

use std::collections::BTreeSet;

use model::Object;
use model::error::{FieldError, Path, quote};
use model::names::{NameRule, dns1123_label, dns1123_subdomain};
use model::object::{copy, has, items, map_mut, maps, maps_mut, number, text, texts, value};
use serde_json::{Map, Value, json};

use super::pem::{bad_certificates, bad_request};
use crate::rules::age::human_duration;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::{KindRules, SelectableField, Subresource, Writer};
use crate::schema::decode_base64;

const APPROVED: &str = "Approved";
const DENIED: &str = "Denied";
const FAILED: &str = "Failed";
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const EXPIRATION_SECONDS_MIN: i64 = 600;
const SIGNER_DOMAIN_MAX: usize = 253;
const SIGNER_PATH_MAX: usize = 253 + 63 + 1;
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub(super) const RULES: KindRules = KindRules {
    group: "certificates.k8s.io",
    kind: "CertificateSigningRequest",
    name: NameRule::PathSegment,
    prepare_update: |new, old| {
        copy(new, old, "spec");
        copy(new, old, "status");
    },
    stamp,
    validate_create: validate,
    validate_update: |new, old| validate_update(new, old, CsrWrite::Whole),
    subresources: &[
        Subresource {
            name: "approval",
            prepare_update: prepare_approval,
            validate_update: |new, old| validate_update(new, old, CsrWrite::Approval),
        },
        Subresource {
            name: "status",
            prepare_update: prepare_status,
            validate_update: |new, old| validate_update(new, old, CsrWrite::Status),
        },
    ],
    counts_generations: false,
    selectable: &[SelectableField {
        path: "spec.signerName",
        value: |object| text(object, &["spec", "signerName"]).into(),
    }],
    columns: &[
        NAME,
        AGE,
        Column::new("SignerName", "string", "The requested signer."),
        Column::new("Requestor", "string", "The user that created the request."),
        Column::new("RequestedDuration", "string", "The requested validity of the certificate."),
        Column::new("Condition", "string", "The state of the request."),
    ],
    cells,
    ..KindRules::WITH_STATUS
};

/// The written resource or subresource.
#[derive(Clone, Copy, PartialEq)]
enum CsrWrite {
    Whole,
    Approval,
    Status,
}

/// Sets the requesting user and the times of conditions.
fn stamp(new: &mut Object, old: Option<&Object>, writer: &Writer) {
    let Some(old) = old else {
        let spec = map_mut(new, "spec");
        match writer.extra.is_empty() {
            true => spec.remove("extra"),
            false => spec.insert("extra".to_owned(), json!(writer.extra)),
        };
        let groups = Value::from(writer.groups.to_vec());
        for (field, value) in
            [("username", writer.name.into()), ("uid", writer.uid.into()), ("groups", groups)]
        {
            match value {
                Value::String(text) if text.is_empty() => spec.remove(field),
                value => spec.insert(field.to_owned(), value),
            };
        }
        return;
    };
    let Some(Value::Object(status)) = new.get_mut("status") else { return };
    for condition in maps_mut(status, "conditions") {
        if !has(condition, &["lastUpdateTime"]) {
            condition.insert("lastUpdateTime".to_owned(), writer.now.into());
        }
        if !has(condition, &["lastTransitionTime"]) {
            let same = |other: &&Object| {
                ["type", "status"].iter().all(|field| text(other, &[field]) == text(condition, &[field]))
            };
            let since = maps(old, &["status", "conditions"]).map(|(_, other)| other).find(same);
            let since = since.map_or("", |other| text(other, &["lastTransitionTime"]));
            let since = if since.is_empty() { writer.now } else { since };
            condition.insert("lastTransitionTime".to_owned(), since.into());
        }
    }
}

/// `approval` writes only conditions.
fn prepare_approval(new: &mut Object, old: &Object) {
    let conditions = new.get_mut("status").and_then(|status| status.as_object_mut()?.remove("conditions"));
    copy(new, old, "spec");
    copy(new, old, "status");
    let status = map_mut(new, "status");
    match conditions {
        Some(conditions) => status.insert("conditions".to_owned(), conditions),
        None => status.remove("conditions"),
    };
}

/// `status` keeps the conditions of `approval`, if it has the same number of them.
fn prepare_status(new: &mut Object, old: &Object) {
    copy(new, old, "spec");
    for kind in [APPROVED, DENIED] {
        let kept: Vec<Object> = conditions_of(old, kind).cloned().collect();
        let Some(Value::Object(status)) = new.get_mut("status") else { return };
        let fresh: Vec<&mut Object> =
            maps_mut(status, "conditions").filter(|condition| text(condition, &["type"]) == kind).collect();
        if fresh.len() == kept.len() {
            fresh.into_iter().zip(kept).for_each(|(fresh, kept)| *fresh = kept);
        }
    }
}

fn conditions_of<'a>(object: &'a Object, kind: &'a str) -> impl Iterator<Item = &'a Object> {
    let all = maps(object, &["status", "conditions"]).map(|(_, condition)| condition);
    all.filter(move |condition| text(condition, &["type"]) == kind)
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = bad_spec(object);
    errors.extend(bad_conditions(object));
    errors
}

fn validate_update(new: &Object, old: &Object, write: CsrWrite) -> Vec<FieldError> {
    let certificate = |object| text(object, &["status", "certificate"]);
    let certificate_changed = certificate(new) != certificate(old);
    let mut errors = bad_spec(new);
    errors.extend(bad_conditions(new));
    if certificate_changed && !certificate(new).is_empty() {
        errors.extend(
            bad_certificates(&decoded(certificate(new)))
                .map(|problem| FieldError::invalid("status.certificate", "<certificate data>", problem)),
        );
    }
    let count = |object, kind| conditions_of(object, kind).count();
    let refuse = |what: &str, kind: &str| {
        let detail = format!("updates may not {what} a condition of type {}", quote(kind));
        FieldError::forbidden("status.conditions", detail)
    };
    for kind in [APPROVED, DENIED, FAILED] {
        if count(new, kind) < count(old, kind) {
            errors.push(refuse("remove", kind));
        }
    }
    for kind in [APPROVED, DENIED].into_iter().filter(|_| write != CsrWrite::Approval) {
        if count(new, kind) > count(old, kind) {
            errors.push(refuse("add", kind));
        } else if count(new, kind) == count(old, kind)
            && !conditions_of(new, kind).eq(conditions_of(old, kind))
        {
            errors.push(refuse("modify", kind));
        }
    }
    if certificate_changed && write != CsrWrite::Status {
        errors.push(FieldError::forbidden("status.certificate", "updates may not set certificate content"));
    } else if certificate_changed && !certificate(old).is_empty() {
        let detail = "updates may not modify existing certificate content";
        errors.push(FieldError::forbidden("status.certificate", detail));
    }
    errors
}

fn decoded(base64: &str) -> Vec<u8> {
    decode_base64(base64).unwrap_or_default()
}

fn bad_spec(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let empty = Map::new();
    let spec = value(object, &["spec"]).and_then(Value::as_object).unwrap_or(&empty);
    if let Some(problem) = bad_request(&decoded(text(spec, &["request"]))) {
        let request = spec.get("request").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("spec.request", request, problem));
    }
    let usages = texts(spec, &["usages"]);
    if usages.is_empty() {
        errors.push(FieldError::required("spec.usages", ""));
    }
    let at = |index: usize| Path::SPEC.item("usages", index);
    let unknown = usages.iter().enumerate().filter(|(_, usage)| !USAGES.contains(usage));
    errors.extend(unknown.map(|(index, usage)| FieldError::not_supported(at(index), *usage, &USAGES)));
    let mut seen = BTreeSet::new();
    let repeated = usages.iter().enumerate().filter(|(_, usage)| !seen.insert(**usage));
    errors.extend(repeated.map(|(index, usage)| FieldError::duplicate(at(index), *usage)));
    errors.extend(bad_signer(&Path::root("spec.signerName"), text(spec, &["signerName"])));
    let expiration = number(spec, &["expirationSeconds"]);
    if has(spec, &["expirationSeconds"]) && expiration < EXPIRATION_SECONDS_MIN {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid("spec.expirationSeconds", expiration, detail));
    }
    errors
}

/// Validates a signer name: a domain and a path, both made of DNS labels.
fn bad_signer(path: &Path<'_>, signer: &str) -> Vec<FieldError> {
    let one = |value: &str, detail: &str| vec![FieldError::invalid(path, value, detail)];
    if signer.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    if signer == LEGACY_SIGNER {
        return one(signer, "the legacy signerName is not allowed via this API version");
    }
    let Some((domain, signer_path)) = signer.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        return one(
            signer,
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        );
    };
    let bad_labels = |segment: &str, check: fn(&str) -> Vec<String>| -> Vec<FieldError> {
        let labels = segment.split('.').map(|label| (label, check(label)));
        let first = labels.into_iter().find(|(_, wrong)| !wrong.is_empty());
        let (label, wrong) = first.unwrap_or_default();
        let detail = |problem| format!("validating label {}: {problem}", quote(label));
        wrong.into_iter().map(|problem| FieldError::invalid(path, segment, detail(problem))).collect()
    };
    let mut errors = Vec::new();
    if domain.len() > SIGNER_DOMAIN_MAX {
        errors.push(FieldError::too_long(path, SIGNER_DOMAIN_MAX));
    }
    errors.extend(bad_labels(domain, dns1123_label));
    if !domain.contains('.') {
        errors.extend(one(domain, "should be a domain with at least two segments separated by dots"));
    }
    errors.extend(bad_labels(signer_path, dns1123_subdomain));
    if signer_path.len() > SIGNER_PATH_MAX {
        errors.push(FieldError::too_long(path, SIGNER_PATH_MAX));
    }
    errors
}

fn bad_conditions(object: &Object) -> Vec<FieldError> {
    let path = &Path::root("status.conditions");
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, condition) in maps(object, &["status", "conditions"]) {
        let (kind, path_of) = (text(condition, &["type"]), path.at(index));
        if kind.is_empty() {
            errors.push(FieldError::required(path_of.field("type"), ""));
        }
        let allowed = if [APPROVED, DENIED, FAILED].contains(&kind) { &STATUSES[1..2] } else { &STATUSES };
        let status_path = path_of.field("status");
        match text(condition, &["status"]) {
            "" => errors.push(FieldError::required(status_path, "")),
            status if allowed.contains(&status) => {}
            status => errors.push(FieldError::not_supported(status_path, status, allowed)),
        }
        let opposite = if kind == APPROVED { DENIED } else { APPROVED };
        if [APPROVED, DENIED].contains(&kind) && seen.contains(opposite) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(path, kind, detail));
        }
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(path_of.field("type"), kind));
        }
    }
    errors
}

fn cells(object: &Object, now: jiff::Timestamp) -> Vec<Value> {
    let is = |kind: &str| {
        items(object, &["status", "conditions"]).iter().any(|condition| condition["type"] == kind)
    };
    let mut condition = match (is(DENIED), is(APPROVED)) {
        (true, _) => DENIED,
        (false, true) => APPROVED,
        (false, false) => "Pending",
    }
    .to_owned();
    for (holds, word) in
        [(is(FAILED), ",Failed"), (!text(object, &["status", "certificate"]).is_empty(), ",Issued")]
    {
        condition.push_str(if holds { word } else { "" });
    }
    let signer = match text(object, &["spec", "signerName"]) {
        "" => "<none>",
        signer => signer,
    };
    let duration = match has(object, &["spec", "expirationSeconds"]) {
        true => human_duration(number(object, &["spec", "expirationSeconds"])),
        false => "<none>".to_owned(),
    };
    vec![
        name(object),
        age(object, now),
        signer.into(),
        text(object, &["spec", "username"]).into(),
        duration.into(),
        condition.into(),
    ]
}
