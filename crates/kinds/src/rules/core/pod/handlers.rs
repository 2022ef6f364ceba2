//! Probes and lifecycle hooks of containers.

use model::Object;
use model::address::{bad_port, bad_port_or_name};
use model::error::{FieldError, Path};
use model::object::{items, number, text};
use serde_json::Value;

use super::fields::{Errors, invalid, not_negative, object, objects, one_of, set_number};

const PROBE_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
const HOOK_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "sleep"];

/// Validates the three probes of a container.
pub fn check_probes(errors: &mut Errors, container: &Object, path: &Path<'_>, grace: Option<i64>) {
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = object(container, field) else { continue };
        let path = path.field(field);
        check_handler(errors, probe, &path, &PROBE_HANDLERS, grace);
        for field in
            ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            not_negative(errors, probe, &path, field);
        }
        let ends = set_number(probe, "terminationGracePeriodSeconds");
        let ends_path = path.field("terminationGracePeriodSeconds");
        if let Some(seconds) = ends.filter(|seconds| *seconds <= 0) {
            errors.push(FieldError::invalid(ends_path, seconds, "must be greater than 0"));
        }
        if field == "readinessProbe" {
            let rule = "must not be set for readinessProbes";
            errors.extend(ends.map(|seconds| FieldError::invalid(ends_path, seconds, rule)));
        } else if number(probe, &["successThreshold"]) != 1 {
            let threshold = number(probe, &["successThreshold"]);
            errors.push(FieldError::invalid(path.field("successThreshold"), threshold, "must be 1"));
        }
    }
}

/// Validates the hooks of a container.
pub fn check_lifecycle(errors: &mut Errors, container: &Object, path: &Path<'_>, grace: Option<i64>) {
    let Some(lifecycle) = object(container, "lifecycle") else { return };
    let path = path.field("lifecycle");
    for field in ["postStart", "preStop"] {
        if let Some(hook) = object(lifecycle, field) {
            check_handler(errors, hook, &path.field(field), &HOOK_HANDLERS, grace);
        }
    }
}

fn check_handler(errors: &mut Errors, handler: &Object, path: &Path<'_>, kinds: &[&str], grace: Option<i64>) {
    let mut found = false;
    for kind in kinds {
        let Some(action) = object(handler, kind) else { continue };
        let path = path.field(kind);
        if found {
            errors.push(FieldError::forbidden(path, "may not specify more than 1 handler type"));
            continue;
        }
        found = true;
        match *kind {
            "exec" if items(action, &["command"]).is_empty() => {
                errors.push(FieldError::required(path.field("command"), ""));
            }
            "httpGet" => check_http_get(errors, action, &path),
            "tcpSocket" => errors
                .extend(bad_port_or_name(&path.field("port"), action.get("port").unwrap_or(&Value::Null))),
            "grpc" => errors.extend(bad_port(&path.field("port"), number(action, &["port"]))),
            "sleep" => {
                let seconds = number(action, &["seconds"]);
                if let Some(most) = grace.filter(|most| !(0..=*most).contains(&seconds)) {
                    let rule =
                        format!("must be non-negative and less than terminationGracePeriodSeconds ({most})");
                    errors.push(FieldError::invalid(path, seconds, rule));
                }
            }
            _ => {}
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn check_http_get(errors: &mut Errors, action: &Object, path: &Path<'_>) {
    if text(action, &["path"]).is_empty() {
        errors.push(FieldError::required(path.field("path"), ""));
    }
    errors.extend(bad_port_or_name(&path.field("port"), action.get("port").unwrap_or(&Value::Null)));
    one_of(errors, &path.field("scheme"), text(action, &["scheme"]), &["HTTP", "HTTPS"]);
    for (_, header) in objects(action, "httpHeaders") {
        let name = text(header, &["name"]);
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            let rule = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', \
                        regex used for validation is '[-A-Za-z0-9]+')";
            invalid(errors, &path.field("httpHeaders"), name, vec![rule.to_owned()]);
        }
    }
}
