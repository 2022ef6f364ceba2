//! Validation of the spec of a Job.

use model::Object;
use model::error::{FieldError, Path};
use model::names::{dns1123_label, dns1123_subdomain};
use model::object::{is_true, map_mut, number, text, value};
use serde_json::Value;

use super::policies::{FAILURE_POLICY, SUCCESS_POLICY, bad_failure_policy, bad_success_policy};
use super::{CONTROLLER_UID, INDEXED, JOB_NAME, LEGACY_CONTROLLER_UID, LEGACY_JOB_NAME, NON_INDEXED};
use crate::rules::go::{Go, OPTIONAL};
use crate::rules::label_selector::{bad_label_selector, invalid};
use crate::rules::selection::{Selection, bad_selector};
use crate::rules::workload::{
    bad_template, changed_selector, invalid_shown, map_at, negative, optional, present,
};

const MANAGER_MAX: usize = 63;
const PARALLELISM_MAX: i64 = 100_000;
const FAILED_INDEXES_MAX: i64 = 100_000;
/// Above this number of completions limits are lower.
const MANY_COMPLETIONS: i64 = 100_000;
const PARALLELISM_MAX_FOR_MANY: i64 = 10_000;
const FAILED_INDEXES_MAX_FOR_MANY: i64 = 10_000;
const MODES: [&str; 2] = [NON_INDEXED, INDEXED];

/// Validates a Job on create and update.
pub(super) fn validate(object: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let Some(spec) = map_at(object, &["spec"]) else { return Vec::new() };
    let mut errors = bad_generated_selector(object, spec, old);
    errors.extend(bad_selected_spec(spec));
    if text(spec, &["completionMode"]) == INDEXED
        && let Some(completions) = optional(spec, &["completions"]).filter(|completions| *completions > 0)
    {
        let name = text(object, &["metadata", "name"]);
        let host = format!("{name}-{}", completions - 1);
        if !dns1123_label(&host).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {host}");
            errors.push(FieldError::invalid("metadata.name", name, detail));
        }
    }
    errors
}

/// Validates the change of a Job.
pub(super) fn validate_update(new: &Object, old: &Object) -> Vec<FieldError> {
    let Some(spec) = map_at(new, &["spec"]) else { return Vec::new() };
    let mut errors = bad_selected_spec(spec);
    errors.extend(changed_completions(new, old));
    errors.extend(changed_selector(new, old));
    errors.extend(changed_template(new, old));
    let fixed = [
        ("completionMode", OPTIONAL),
        ("podFailurePolicy", FAILURE_POLICY),
        ("backoffLimitPerIndex", OPTIONAL),
        ("managedBy", OPTIONAL),
        ("successPolicy", SUCCESS_POLICY),
    ];
    errors.extend(fixed.iter().filter_map(|(field, of)| changed(new, old, field, of)));
    errors
}

fn changed(new: &Object, old: &Object, field: &str, of: &Go) -> Option<FieldError> {
    let at = |object| present(object, &["spec", field]);
    let (new, old) = (at(new), at(old));
    (new != old).then(|| invalid_shown(&Path::SPEC.field(field), &of.write(new), "field is immutable"))
}

fn changed_completions(new: &Object, old: &Object) -> Option<FieldError> {
    if text(new, &["spec", "completionMode"]) != INDEXED {
        return changed(new, old, "completions", &OPTIONAL);
    }
    let completions = |object| optional(object, &["spec", "completions"]);
    let number = completions(new)?;
    let alone = completions(old) != Some(number) && optional(new, &["spec", "parallelism"]) != Some(number);
    alone.then(|| {
        let detail = "can only be modified in tandem with spec.parallelism";
        FieldError::invalid("spec.completions", number, detail)
    })
}

/// The template may change only before a suspended Job starts, and only in its scheduling directives.
fn changed_template(new: &Object, old: &Object) -> Option<FieldError> {
    let template = |object| map_at(object, &["spec", "template"]);
    let (new_template, old_template) = (template(new)?, template(old)?);
    if new_template == old_template {
        return None;
    }
    let is_waiting = is_true(old, &["spec", "suspend"]) && present(old, &["status", "startTime"]).is_none();
    if is_waiting && fixed_template(new_template) == fixed_template(old_template) {
        return None;
    }
    Some(FieldError::invalid("spec.template", new_template.clone(), "field is immutable"))
}

/// A template without the scheduling directives.
fn fixed_template(template: &Object) -> Object {
    let mut template = template.clone();
    let metadata = map_mut(&mut template, "metadata");
    metadata.remove("labels");
    metadata.remove("annotations");
    let spec = map_mut(&mut template, "spec");
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        spec.remove(field);
    }
    if let Some(affinity) = spec.get_mut("affinity").and_then(Value::as_object_mut) {
        affinity.remove("nodeAffinity");
        if affinity.is_empty() {
            spec.remove("affinity");
        }
    }
    template
}

/// Validates generated labels and selector.
fn bad_generated_selector(object: &Object, spec: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let Some(selector) = present(spec, &["selector"]) else { return Vec::new() };
    if is_true(spec, &["manualSelector"]) {
        return Vec::new();
    }
    let (name, uid) = (text(object, &["metadata", "name"]), text(object, &["metadata", "uid"]));
    let mut errors = Vec::new();
    if uid.is_empty() {
        errors.push(FieldError::required("metadata.uid", ""));
    }
    // Jobs of old versions of Kubernetes have only two of the labels.
    let old_labels = old.map(|old| value(old, &["spec", "template", "metadata", "labels"]));
    let has_all = old_labels.is_none_or(|labels| {
        labels.is_some_and(|labels| [JOB_NAME, CONTROLLER_UID].iter().all(|key| labels.get(key).is_some()))
    });
    let mut expected = vec![(LEGACY_CONTROLLER_UID, uid), (LEGACY_JOB_NAME, name)];
    if has_all {
        expected.extend([(CONTROLLER_UID, uid), (JOB_NAME, name)]);
    }
    let labels = value(spec, &["template", "metadata", "labels"]);
    let path = Path::SPEC.field("template.metadata.labels");
    errors.extend(expected.iter().filter_map(|(key, wanted)| {
        let path = path.key(key);
        let detail = format!("must be '{wanted}'");
        match labels.and_then(|labels| labels.get(key)).and_then(Value::as_str) {
            None => Some(FieldError::required(path, detail)),
            Some(label) if label != *wanted => {
                Some(FieldError::invalid(path, labels.cloned().unwrap_or_default(), detail))
            }
            Some(_) => None,
        }
    }));
    let generated: Value = expected.iter().map(|(key, value)| (*key, *value)).collect();
    if Selection::read(Some(selector)).is_some_and(|selection| !selection.matches(Some(&generated))) {
        errors.push(bad_selector(
            &Path::root("spec.selector"),
            Some(selector),
            "`selector` not auto-generated",
        ));
    }
    errors
}

/// Validates the spec of a Job, including its selector.
fn bad_selected_spec(spec: &Object) -> Vec<FieldError> {
    let mut errors = bad_spec(spec, &Path::SPEC);
    let selector = present(spec, &["selector"]);
    match selector {
        None => errors.push(FieldError::required("spec.selector", "")),
        Some(selector) => errors.extend(bad_label_selector(&Path::root("spec.selector"), Some(selector))),
    }
    let labels = value(spec, &["template", "metadata", "labels"]);
    if Selection::read(selector).is_some_and(|selection| !selection.matches(labels)) {
        let detail = "`selector` does not match template `labels`";
        let labels = labels.cloned().unwrap_or_default();
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, detail));
    }
    errors
}

/// Validates the spec of a Job, or of the Job template of a CronJob, at this path.
pub(in crate::rules::batch) fn bad_spec(spec: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = negative(
        spec,
        path,
        &[
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
            "backoffLimitPerIndex",
            "maxFailedIndexes",
        ],
    );
    if present(spec, &["maxFailedIndexes"]).is_some() && present(spec, &["backoffLimitPerIndex"]).is_none() {
        let detail = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(path.field("backoffLimitPerIndex"), detail));
    }
    if let Some(manager) = value(spec, &["managedBy"]).and_then(Value::as_str) {
        errors.extend(bad_manager(&path.field("managedBy"), manager));
    }
    errors.extend(bad_mode(spec, path));
    errors.extend(bad_failure_policy(spec, path));
    errors.extend(bad_success_policy(spec, path));
    errors.extend(bad_replacement(spec, path));
    errors.extend(bad_template(spec, &path.field("template")));
    errors.extend(bad_restarts(spec, path));
    errors
}

/// Validates `managedBy`: a path that begins with a domain.
fn bad_manager(path: &Path<'_>, manager: &str) -> Vec<FieldError> {
    const NO_PATH: &str = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
    let mut errors = Vec::new();
    match manager.split_once('/') {
        _ if manager.is_empty() => errors.push(FieldError::required(path, "")),
        Some((domain, rest)) if !domain.is_empty() && !rest.is_empty() => {
            errors.extend(invalid(path, domain, dns1123_subdomain(domain)));
            let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
            if !rest.bytes().all(is_good) {
                errors.push(FieldError::invalid(path, rest, NO_PATH));
            }
        }
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid(path, manager, detail));
        }
    }
    if manager.len() > MANAGER_MAX {
        errors.push(FieldError::too_long(path, MANAGER_MAX));
    }
    errors
}

fn bad_mode(spec: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match present(spec, &["completionMode"]).and_then(Value::as_str) {
        Some(INDEXED) => errors.extend(bad_indexed(spec, path)),
        None | Some(NON_INDEXED) => {
            for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if let Some(number) = optional(spec, &[field]) {
                    let detail = "requires indexed completion mode";
                    errors.push(FieldError::invalid(path.field(field), number, detail));
                }
            }
        }
        Some(mode) => {
            errors.push(FieldError::not_supported(path.field("completionMode"), mode, &MODES));
        }
    }
    errors
}

fn bad_indexed(spec: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let (completions, failed) = (optional(spec, &["completions"]), optional(spec, &["maxFailedIndexes"]));
    let parallelism = number(spec, &["parallelism"]);
    let mut errors = Vec::new();
    let mut limit = |is_above: bool, field: &str, number: i64, detail: String| {
        if is_above {
            errors.push(FieldError::invalid(path.field(field), number, detail));
        }
    };
    let at_most = |limit: i64| format!("must be less than or equal to {limit}");
    let parallelism_detail = format!("{} when completion mode is {INDEXED}", at_most(PARALLELISM_MAX));
    limit(parallelism > PARALLELISM_MAX, "parallelism", parallelism, parallelism_detail);
    if let Some(failed) = failed {
        let is_above = completions.is_some_and(|completions| failed > completions);
        limit(is_above, "maxFailedIndexes", failed, "must be less than or equal to completions".to_owned());
        limit(failed > FAILED_INDEXES_MAX, "maxFailedIndexes", failed, at_most(FAILED_INDEXES_MAX));
    }
    let is_many = completions.is_some_and(|completions| completions > MANY_COMPLETIONS);
    if is_many && present(spec, &["backoffLimitPerIndex"]).is_some() {
        let for_many = |most: i64| {
            let limit = at_most(most);
            format!(
                "{limit} when completions are above {MANY_COMPLETIONS} and used with backoff limit per index"
            )
        };
        let is_above = parallelism > PARALLELISM_MAX_FOR_MANY;
        limit(is_above, "parallelism", parallelism, for_many(PARALLELISM_MAX_FOR_MANY));
        if let Some(failed) = failed {
            let is_above = failed > FAILED_INDEXES_MAX_FOR_MANY;
            limit(is_above, "maxFailedIndexes", failed, for_many(FAILED_INDEXES_MAX_FOR_MANY));
        } else {
            let detail = format!("must be specified when completions is above {MANY_COMPLETIONS}");
            let required = FieldError::required(path.field("maxFailedIndexes"), detail);
            // This error precedes the one about parallelism.
            errors.insert(errors.len() - usize::from(is_above), required);
        }
    }
    if completions.is_none() {
        let detail = format!("when completion mode is {INDEXED}");
        errors.insert(0, FieldError::required(path.field("completions"), detail));
    }
    errors
}

fn bad_replacement(spec: &Object, path: &Path<'_>) -> Option<FieldError> {
    let policy = present(spec, &["podReplacementPolicy"])?.as_str()?;
    let allowed: &[&str] = match present(spec, &["podFailurePolicy"]) {
        Some(_) => &["Failed"],
        None => &["Failed", "TerminatingOrFailed"],
    };
    let is_wrong = !allowed.contains(&policy);
    is_wrong.then(|| FieldError::not_supported(path.field("podReplacementPolicy"), policy, allowed))
}

fn bad_restarts(spec: &Object, path: &Path<'_>) -> Option<FieldError> {
    let path = path.field("template.spec.restartPolicy");
    match text(spec, &["template", "spec", "restartPolicy"]) {
        "" | "Always" => Some(FieldError::required(path, "valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" if present(spec, &["podFailurePolicy"]).is_some() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            Some(FieldError::invalid(path, "OnFailure", detail))
        }
        "OnFailure" | "Never" => None,
        policy => Some(FieldError::not_supported(path, policy, &["OnFailure", "Never"])),
    }
}
