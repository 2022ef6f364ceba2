//! ValidatingAdmissionPolicy.

use std::collections::BTreeSet;

use cel::syntax::is_word;
use model::Object;
use model::error::{FieldError, Path};
use model::names::{dns1035_label, dns1123_subdomain, qualified_name};
use model::object::{has, items, map_mut, maps, set_default, text, value};
use serde_json::{Value, json};

use super::GROUP;
use super::matching::{
    FAILURE_POLICIES, bad_conditions, bad_match_resources, default_match_resources, unsupported,
};
use crate::policies::{Composer, Options, Wanted};
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::{keep_all_but_status, keep_metadata};
use crate::rules::conditions::bad_conditions as bad_status_conditions;
use crate::rules::label_selector::invalid;
use crate::rules::{KindRules, Subresource};
use crate::structural::JsonPath;

const ANNOTATIONS_MAX: usize = 20;
const ANNOTATION_LENGTH_MAX: usize = 5 * 1024;
/// Nearly all expressions may use `authorizer`.
const AUTHORIZED: Options = Options { has_authorizer: true };
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "ValidatingAdmissionPolicy",
    default: default_policy,
    validate_create: |new| validate(new, None),
    validate_update: |new, old| validate(new, Some(old)),
    subresources: &[Subresource {
        name: "status",
        prepare_update: |new, old| {
            keep_all_but_status(new, old);
            keep_metadata(new, old);
        },
        validate_update: |new, _| bad_status(new),
    }],
    unconditional_update: false,
    columns: &[
        NAME,
        Column::new("Validations", "integer", "The number of its validations."),
        Column::new("ParamKind", "string", "The kind of its parameters."),
        AGE,
    ],
    cells: |object, now| {
        let validations = items(object, &["spec", "validations"]).len();
        vec![name(object), validations.into(), shown_kind(object).into(), age(object, now)]
    },
    ..KindRules::WITH_STATUS
};

/// The parameter kind of a policy in a table.
pub(super) fn shown_kind(object: &Object) -> String {
    match value(object, &["spec", "paramKind"]).and_then(Value::as_object) {
        Some(kind) => format!("{}/{}", text(kind, &["apiVersion"]), text(kind, &["kind"])),
        None => "<unset>".to_owned(),
    }
}

/// Defaults of a policy.
pub(super) fn default_policy(object: &mut Object) {
    let spec = map_mut(object, "spec");
    set_default(spec, "failurePolicy", FAILURE_POLICIES[0]);
    if let Some(Value::Object(constraints)) = spec.get_mut("matchConstraints") {
        default_match_resources(constraints);
    }
}

/// Validates the fields of all policies: failure policy, parameter kind, matched resources.
pub(super) fn bad_matching(spec: &Object) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> =
        unsupported(&Path::SPEC, spec, "failurePolicy", &FAILURE_POLICIES).into_iter().collect();
    if let Some(kind) = value(spec, &["paramKind"]).and_then(Value::as_object) {
        errors.extend(bad_param_kind(kind));
    }
    match value(spec, &["matchConstraints"]).and_then(Value::as_object) {
        Some(constraints) => {
            errors.extend(bad_match_resources(&Path::root("spec.matchConstraints"), constraints));
            if items(constraints, &["resourceRules"]).is_empty() {
                errors.push(FieldError::required("spec.matchConstraints.resourceRules", ""));
            }
        }
        None => errors.push(FieldError::required("spec.matchConstraints", "")),
    }
    errors
}

fn validate(object: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(spec) = value(object, &["spec"]).and_then(Value::as_object) else { return errors };
    errors.extend(bad_matching(spec));
    let has_params = has(spec, &["paramKind"]);
    if !old.is_some_and(|old| keeps_conditions(spec, old)) {
        errors.extend(bad_conditions(&Path::SPEC, spec, has_params));
    }
    let mut composer = Composer::new(has_params, !items(spec, &["variables"]).is_empty());
    for (index, variable) in maps(spec, &["variables"]) {
        errors.extend(bad_variable(&Path::SPEC.item("variables", index), variable, &mut composer));
    }
    if items(spec, &["validations"]).is_empty() && items(spec, &["auditAnnotations"]).is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.extend(
            ["validations", "auditAnnotations"]
                .map(|field| FieldError::required(Path::SPEC.field(field), detail)),
        );
    }
    errors.extend(maps(spec, &["validations"]).flat_map(|(index, validation)| {
        bad_validation(&Path::SPEC.item("validations", index), validation, &composer)
    }));
    errors.extend(bad_annotations(text(object, &["metadata", "name"]), spec, &composer));
    errors
}

/// Whether an update does not change the match conditions, which are then not validated again.
pub(super) fn keeps_conditions(spec: &Object, old: &Object) -> bool {
    let is_same = |field: &str| {
        let before = value(old, &["spec", field]).filter(|value| !value.is_null());
        value(spec, &[field]).filter(|value| !value.is_null()) == before
    };
    is_same("paramKind") && is_same("matchConditions")
}

fn bad_param_kind(kind: &Object) -> Vec<FieldError> {
    let path = &Path::root("spec.paramKind.apiVersion");
    let mut errors = Vec::new();
    let joined = |wrong: Vec<String>| (!wrong.is_empty()).then(|| wrong.join(","));
    let api_version = text(kind, &["apiVersion"]);
    let (group, version) = match api_version.split_once('/') {
        _ if api_version == "/" => ("", ""),
        Some(parts) => parts,
        None => ("", api_version),
    };
    if api_version.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if version.contains('/') {
        let detail = format!("unexpected GroupVersion string: {api_version}");
        errors.push(FieldError::invalid(path, api_version, detail));
    } else {
        if let Some(detail) = joined(dns1123_subdomain(group)).filter(|_| !group.is_empty()) {
            errors.push(FieldError::invalid(path, group, detail));
        }
        if version.is_empty() {
            errors.push(FieldError::invalid(path, api_version, "version must be specified"));
        } else if let Some(detail) = joined(dns1035_label(version)) {
            errors.push(FieldError::invalid(path, version, detail));
        }
    }
    let name = text(kind, &["kind"]);
    if name.is_empty() {
        errors.push(FieldError::required("spec.paramKind.kind", ""));
    } else if let Some(detail) = joined(dns1035_label(&name.to_lowercase())) {
        let detail = format!("may have mixed case, but should otherwise match: {detail}");
        errors.push(FieldError::invalid("spec.paramKind.kind", name, detail));
    }
    errors
}

/// Validates a variable, which later expressions can use.
pub(super) fn bad_variable(path: &Path<'_>, variable: &Object, composer: &mut Composer) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(variable, &["name"]);
    let path_of_name = path.field("name");
    if name.trim().is_empty() {
        errors.push(FieldError::required(path_of_name, "name is not specified"));
    } else if !is_identifier(name) {
        errors.push(FieldError::invalid(path_of_name, name, "must be a valid CEL identifier"));
    }
    let (source, path) = (text(variable, &["expression"]), path.field("expression"));
    if source.trim().is_empty() {
        errors.push(FieldError::required(path, "expression is not specified"));
    } else if let Err(unusable) = composer.variable(name, source) {
        errors.push(unusable.at(path, source));
    }
    errors
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        && !is_word(name)
}

/// Validates an expression.
fn bad_expression(
    path: &Path<'_>,
    source: &str,
    composer: &Composer,
    options: Options,
    wanted: Wanted,
) -> Option<FieldError> {
    composer.compile(source, options, wanted).err().map(|unusable| unusable.at(path, source))
}

fn bad_validation(path: &Path<'_>, validation: &Object, composer: &Composer) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (source, path_of_source) = (text(validation, &["expression"]), path.field("expression"));
    if source.trim().is_empty() {
        errors.push(FieldError::required(path_of_source, "expression is not specified"));
    } else {
        errors.extend(bad_expression(&path_of_source, source, composer, AUTHORIZED, Wanted::Bool));
    }
    for field in ["messageExpression", "message"] {
        let words = text(validation, &[field]);
        if field == "messageExpression" && !words.trim().is_empty() {
            let options = Options { has_authorizer: false };
            let path = path.field("messageExpression");
            errors.extend(bad_expression(&path, words, composer, options, Wanted::Text));
        }
        let detail = match words.trim() {
            "" if !words.is_empty() => "must be non-empty if specified",
            trimmed if field == "message" && trimmed.contains(['\n', '\r']) => "must not contain line breaks",
            _ => continue,
        };
        errors.push(FieldError::invalid(path.field(field), words, detail));
    }
    errors.extend(unsupported(path, validation, "reason", &REASONS));
    errors
}

fn bad_annotations(policy: &str, spec: &Object, composer: &Composer) -> Vec<FieldError> {
    let path = &Path::root("spec.auditAnnotations");
    let mut errors = Vec::new();
    if items(spec, &["auditAnnotations"]).len() > ANNOTATIONS_MAX {
        let shown = |(_, annotation): (usize, &Object)| json!({"Key": text(annotation, &["key"]), "ValueExpression": text(annotation, &["valueExpression"])});
        let all: Vec<Value> = maps(spec, &["auditAnnotations"]).map(shown).collect();
        let detail = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
        errors.push(FieldError::invalid(path, all, detail));
    }
    let mut seen = BTreeSet::new();
    for (index, annotation) in maps(spec, &["auditAnnotations"]) {
        let path = path.at(index);
        let (key, path_of_key) = (text(annotation, &["key"]), path.field("key"));
        if policy.is_empty() {
            errors.push(FieldError::invalid(path_of_key, key, "requires metadata.name be non-empty"));
        } else {
            let whole = format!("{policy}/{key}");
            errors.extend(invalid(&path_of_key, &whole, qualified_name(&whole)));
        }
        let source = text(annotation, &["valueExpression"]);
        let path_of_value = path.field("valueExpression");
        errors.extend(match source.trim().len() {
            0 => Some(FieldError::required(path_of_value, "valueExpression is not specified")),
            length if length > ANNOTATION_LENGTH_MAX => {
                let detail = format!("must not exceed {ANNOTATION_LENGTH_MAX} bytes in length");
                Some(FieldError::required(path_of_value, detail))
            }
            _ => {
                let compiled = composer.compile(source.trim(), AUTHORIZED, Wanted::TextOrNull);
                compiled.err().map(|unusable| unusable.at(path_of_value, source))
            }
        });
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(path_of_key, key));
        }
    }
    errors
}

fn bad_status(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, warning) in maps(object, &["status", "typeChecking", "expressionWarnings"]) {
        let path = Path::STATUS.item("typeChecking.expressionWarnings", index);
        if text(warning, &["warning"]).is_empty() {
            errors.push(FieldError::required(path.field("warning"), ""));
        }
        let (field, path) = (text(warning, &["fieldRef"]).trim(), path.field("fieldRef"));
        if field.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else if let Err(problem) = JsonPath::parse(field) {
            errors.push(FieldError::invalid(path, field, format!("invalid JSONPath: {problem}")));
        }
    }
    errors.extend(bad_status_conditions(
        &Path::root("status.conditions"),
        items(object, &["status", "conditions"]),
    ));
    errors
}
