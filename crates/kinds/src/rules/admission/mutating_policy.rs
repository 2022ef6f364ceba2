//! MutatingAdmissionPolicy.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{has, items, maps, text, value};
use serde_json::Value;

use super::GROUP;
use super::matching::{bad_conditions, bad_mutating_operations};
use super::policy::{bad_matching, bad_variable, default_policy, keeps_conditions, shown_kind};
use crate::policies::{Composer, Options, Wanted};
use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name};

const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
const PATCH_TYPES: [&str; 2] = ["ApplyConfiguration", "JSONPatch"];

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "MutatingAdmissionPolicy",
    default: default_policy,
    validate_create: |new| validate(new, None),
    validate_update: |new, old| validate(new, Some(old)),
    counts_generations: true,
    unconditional_update: false,
    columns: &[
        NAME,
        Column::new("Mutations", "integer", "The number of its mutations."),
        Column::new("ParamKind", "string", "The kind of its parameters."),
        AGE,
    ],
    cells: |object, now| {
        let mutations = items(object, &["spec", "mutations"]).len();
        vec![name(object), mutations.into(), shown_kind(object).into(), age(object, now)]
    },
    ..KindRules::PLAIN
};

fn validate(object: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let Some(spec) = value(object, &["spec"]).and_then(Value::as_object) else { return Vec::new() };
    let mut errors = bad_matching(spec);
    if let Some(constraints) = value(spec, &["matchConstraints"]).and_then(Value::as_object) {
        errors.extend(bad_mutating_operations(&Path::root("spec.matchConstraints"), constraints));
    }
    let has_params = has(spec, &["paramKind"]);
    if !old.is_some_and(|old| keeps_conditions(spec, old)) {
        errors.extend(bad_conditions(&Path::SPEC, spec, has_params));
    }
    let mut composer = Composer::new(has_params, true);
    for (index, variable) in maps(spec, &["variables"]) {
        errors.extend(bad_variable(&Path::SPEC.item("variables", index), variable, &mut composer));
    }
    if items(spec, &["mutations"]).is_empty() {
        errors.push(FieldError::required("spec.mutations", "mutations must contain at least one item"));
    }
    for (index, mutation) in maps(spec, &["mutations"]) {
        errors.extend(bad_mutation(&Path::SPEC.item("mutations", index), mutation, &composer));
    }
    match text(spec, &["reinvocationPolicy"]) {
        "" => errors.push(FieldError::required("spec.reinvocationPolicy", "")),
        policy if REINVOCATION_POLICIES.contains(&policy) => {}
        policy => {
            errors.push(FieldError::not_supported("spec.reinvocationPolicy", policy, &REINVOCATION_POLICIES))
        }
    }
    errors
}

fn bad_mutation(path: &Path<'_>, mutation: &Object, composer: &Composer) -> Vec<FieldError> {
    let kind = text(mutation, &["patchType"]);
    let (field, other, wanted) = match kind {
        "" => return vec![FieldError::required(path.field("patchType"), "")],
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Wanted::Operations),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Wanted::Configuration),
        _ => return vec![FieldError::not_supported(path.field("patchType"), kind, &PATCH_TYPES)],
    };
    let mut errors = Vec::new();
    match value(mutation, &[field]).and_then(Value::as_object) {
        None => {
            let detail = format!("must be specified when patchType is {kind}");
            errors.push(FieldError::required(path.field(field), detail));
        }
        Some(given) => {
            let path = path.field(field);
            let (source, path) = (text(given, &["expression"]).trim(), path.field("expression"));
            let options = Options { has_authorizer: true };
            errors.extend(match source {
                "" => Some(FieldError::required(path, "")),
                _ => {
                    composer.compile(source, options, wanted).err().map(|unusable| unusable.at(path, source))
                }
            });
        }
    }
    if has(mutation, &[other]) {
        let detail = format!("must not be specified when patchType is {kind}");
        errors.push(FieldError::invalid(path.field(other), format!("{{{other}}}"), detail));
    }
    errors
}
