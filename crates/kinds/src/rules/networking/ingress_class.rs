//! IngressClass.

use model::Object;
use model::error::{FieldError, Path};
use model::names::{dns1123_label, dns1123_subdomain};
use model::object::{map_mut, set_default, text, text_in, value};
use serde_json::Value;

use super::{GROUP, bad_reference};
use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::{invalid_for, unsupported};

const CONTROLLER: &str = "spec.controller";
const CONTROLLER_MAX: usize = 250;

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "IngressClass",
    default: |object| {
        if let Some(Value::Object(parameters)) = map_mut(object, "spec").get_mut("parameters") {
            set_default(parameters, "scope", "Cluster");
        }
    },
    validate_create: validate,
    validate_update: |new, old| {
        let controller = |object| text(object, &["spec", "controller"]);
        let mut errors = Vec::new();
        if controller(new) != controller(old) {
            errors.push(FieldError::invalid(CONTROLLER, controller(new), "field is immutable"));
        }
        errors.extend(validate(new));
        errors
    },
    counts_generations: true,
    columns: &[
        NAME,
        Column::new("Controller", "string", "The controller of ingresses of this class."),
        Column::new("Parameters", "string", "The reference to the controller's parameters."),
        AGE,
    ],
    cells: |object, now| {
        let controller = text(object, &["spec", "controller"]);
        vec![name(object), controller.into(), parameters(object).into(), age(object, now)]
    },
    ..KindRules::PLAIN
};

fn parameters(object: &Object) -> String {
    let Some(parameters) = value(object, &["spec", "parameters"]) else { return "<none>".to_owned() };
    let (kind, name) = (text_in(parameters, "kind"), text_in(parameters, "name"));
    match parameters.get("apiGroup").and_then(Value::as_str) {
        Some(group) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let controller = text(object, &["spec", "controller"]);
    if controller.len() > CONTROLLER_MAX {
        errors.push(FieldError::too_long(CONTROLLER, CONTROLLER_MAX));
    }
    errors.extend(bad_domain_path(controller));
    let Some(parameters) = value(object, &["spec", "parameters"]) else { return errors };
    let path = &Path::root("spec.parameters");
    errors.extend(bad_reference(path, parameters));
    let scope = text_in(parameters, "scope");
    errors.extend(unsupported(&path.field("scope"), scope, &["Cluster", "Namespace"]));
    let namespace_path = path.field("namespace");
    match (scope, parameters.get("namespace").and_then(Value::as_str)) {
        ("Namespace", None) => {
            errors.push(FieldError::required(namespace_path, "`parameters.scope` is set to 'Namespace'"));
        }
        ("Namespace", Some(namespace)) => {
            errors.extend(invalid_for(&namespace_path, namespace, dns1123_label(namespace)));
        }
        ("Cluster", Some(_)) => {
            errors.push(FieldError::forbidden(namespace_path, "`parameters.scope` is set to 'Cluster'"));
        }
        _ => {}
    }
    errors
}

/// Validates a domain, a slash and a path.
fn bad_domain_path(text: &str) -> Vec<FieldError> {
    const PATTERN: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
    let (domain, path) = match text.split_once('/') {
        _ if text.is_empty() => return vec![FieldError::required(CONTROLLER, "")],
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => (domain, path),
        _ => {
            let problem = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            return vec![FieldError::invalid(CONTROLLER, text, problem)];
        }
    };
    let mut errors = invalid_for(&Path::root(CONTROLLER), domain, dns1123_subdomain(domain));
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !path.bytes().all(allowed) {
        let problem = format!("Invalid path (regex used for validation is '{PATTERN}')");
        errors.push(FieldError::invalid(CONTROLLER, path, problem));
    }
    errors
}
