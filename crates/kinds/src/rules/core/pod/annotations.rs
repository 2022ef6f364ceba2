//! Labels and annotations of templates, and annotations that have become fields.

use model::error::{FieldError, Path, quote};
use model::names::{annotation_key, label_value, qualified_name};
use model::object::{entries, text};
use model::{Object, json};
use serde_json::Value;

use super::fields::{Errors, all_containers, descending, invalid, object, set_text};
use super::scheduling::check_tolerations;

/// The annotation of a mirror Pod (a static Pod of a node).
pub const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The former annotation of a Pod's seccomp profile.
pub const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// The prefix of the former annotations of containers' seccomp profiles.
pub const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// The prefix of the former annotations of AppArmor profiles.
pub const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

const ANNOTATIONS_SIZE_MAX: usize = 256 * 1024;

/// Validates labels.
pub fn check_labels(errors: &mut Errors, labels: Option<&Value>, path: &Path<'_>) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        invalid(errors, path, key, qualified_name(key));
        invalid(errors, path, value, label_value(value));
    }
}

/// Validates the annotations in metadata.
pub fn check_annotations(errors: &mut Errors, metadata: &Object, path: &Path<'_>) {
    let mut size = 0;
    for (key, value) in entries(metadata, &["annotations"]) {
        invalid(errors, path, key, annotation_key(key));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_SIZE_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_SIZE_MAX));
    }
}

/// Validates annotations with a meaning for Pods.
pub fn check_known(errors: &mut Errors, metadata: &Object, spec: &Object, path: &Path<'_>) {
    let Some(annotations) = object(metadata, "annotations") else { return };
    if let Some(value) = annotations.get(MIRROR).filter(|_| text(spec, &["nodeName"]).is_empty()) {
        let rule = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(path.key(MIRROR), value.clone(), rule));
    }
    if let Some(Value::String(tolerations)) = annotations.get(TOLERATIONS)
        && let Ok(parsed) = json::parse(tolerations.as_bytes())
    {
        let mut holder = Object::new();
        holder.insert("tolerations".to_owned(), parsed.value);
        check_tolerations(errors, &holder, &path.field(TOLERATIONS));
    }
    if let Some(Value::String(cost)) = annotations.get(DELETION_COST)
        && (cost.parse::<i32>().is_err() || cost.starts_with('+') || (cost.starts_with('0') && cost != "0"))
    {
        errors.push(FieldError::invalid(path.key(DELETION_COST), cost.as_str(), "must be a 32bit integer"));
    }
    for (key, value) in annotations {
        let value = value.as_str().unwrap_or_default();
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            check_seccomp(errors, value, &path.field(key));
        }
    }
    for (key, value) in annotations {
        let (Some(name), value) = (key.strip_prefix(APP_ARMOR), value.as_str().unwrap_or_default()) else {
            continue;
        };
        let path = path.key(key);
        if !all_containers(spec, &Path::OBJECT).any(|(_, container)| text(container, &["name"]) == name) {
            errors.push(FieldError::invalid(path, name, "container not found"));
        }
        if !["", "runtime/default", "unconfined"].contains(&value) && !value.starts_with("localhost/") {
            let problem = format!("invalid AppArmor profile name: {}", quote(value));
            errors.push(FieldError::invalid(path, value, problem));
        }
    }
}

fn check_seccomp(errors: &mut Errors, profile: &str, path: &Path<'_>) {
    match profile {
        "runtime/default" | "docker/default" | "unconfined" => {}
        profile => match profile.strip_prefix("localhost/") {
            Some(local) => descending(errors, path, local),
            None => errors.push(FieldError::invalid(path, profile, "must be a valid seccomp profile")),
        },
    }
}

/// Looks up the annotation of a container by its name, in keys with this prefix.
pub fn of_containers<'a>(annotations: &'a Object, prefix: &str) -> impl Fn(&str) -> Option<&'a str> {
    let has_any = annotations.keys().any(|key| key.starts_with(prefix));
    move |name| has_any.then(|| set_text(annotations, &[prefix, name].concat())).flatten()
}

/// Validates that annotations match the fields that replace them.
pub fn check_agreement(errors: &mut Errors, metadata: &Object, spec: &Object, path: &Path<'_>) {
    let Some(annotations) = object(metadata, "annotations") else { return };
    let profile = |of, field| object(of, "securityContext").and_then(|context| object(context, field));
    if let (Some(profile), Some(said)) = (profile(spec, "seccompProfile"), set_text(annotations, SECCOMP_POD))
    {
        disagreement(errors, profile, said, "seccomp", &path.field("securityContext.seccompProfile"));
    }
    let seccomp = of_containers(annotations, SECCOMP_CONTAINER);
    for (path, container) in all_containers(spec, path) {
        let said = seccomp(text(container, &["name"]));
        if let (Some(profile), Some(said)) = (profile(container, "seccompProfile"), said) {
            disagreement(errors, profile, said, "seccomp", &path.field("securityContext.seccompProfile"));
        }
    }
    if text(spec, &["os", "name"]) == "windows" {
        return;
    }
    let app_armor = of_containers(annotations, APP_ARMOR);
    for (path, container) in all_containers(spec, path) {
        let said = app_armor(text(container, &["name"]));
        let own = profile(container, "appArmorProfile").or_else(|| profile(spec, "appArmorProfile"));
        if let (Some(profile), Some(said)) = (own, said) {
            disagreement(errors, profile, said, "apparmor", &path.field("securityContext.appArmorProfile"));
        }
    }
}

fn disagreement(errors: &mut Errors, profile: &Object, said: &str, what: &str, path: &Path<'_>) {
    let agrees = match text(profile, &["type"]) {
        "Unconfined" => said == "unconfined",
        "RuntimeDefault" => said == "runtime/default" || (what == "seccomp" && said == "docker/default"),
        "Localhost" => match said.strip_prefix("localhost/") {
            None => false,
            Some(local) if local == text(profile, &["localhostProfile"]) => true,
            Some(_) => {
                let rule = format!("{what} profile in annotation and field must match");
                errors.push(FieldError::forbidden(path.field("localhostProfile"), rule));
                return;
            }
        },
        _ => true,
    };
    if !agrees {
        let rule = format!("{what} type in annotation and field must match");
        errors.push(FieldError::forbidden(path.field("type"), rule));
    }
}
