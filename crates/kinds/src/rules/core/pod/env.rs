//! Environment variables of containers.

use model::Object;
use model::error::{FieldError, Path};
use model::names::{dns1123_label, dns1123_subdomain, qualified_name};
use model::object::text;

use super::fields::{Errors, invalid, no_backsteps, object, objects};
use crate::rules::core::data::key_problems;
use quantity::Quantity;

/// The Pod fields that a variable may refer to.
const VARIABLE_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// The Pod fields that a downward API file may refer to.
const FILE_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// Other valid field paths of a Pod.
const OTHER_FIELDS: [&str; 4] = ["spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host"];

const AMOUNTS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const HUGE_PAGES: [&str; 2] = ["requests.hugepages-", "limits.hugepages-"];
const UNITS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
const UNITS_RULE: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the";

/// Validates the variables of a container.
pub fn check(errors: &mut Errors, container: &Object, path: &Path<'_>) {
    let list = path.field("env");
    for (index, variable) in objects(container, "env") {
        let path = list.at(index);
        match text(variable, &["name"]) {
            "" => errors.push(FieldError::required(path.field("name"), "")),
            name => invalid(errors, &path.field("name"), name, name_problems(name)),
        }
        if let Some(from) = object(variable, "valueFrom") {
            check_value_from(errors, variable, from, &path.field("valueFrom"));
        }
    }
    check_env_from(errors, container, &path.field("envFrom"));
}

fn name_problems(name: &str) -> Vec<String> {
    let is_fine = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    if name.bytes().all(is_fine) {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .to_owned(),
    ]
}

fn check_value_from(errors: &mut Errors, variable: &Object, from: &Object, path: &Path<'_>) {
    let mut sources = 0;
    if let Some(field) = object(from, "fieldRef") {
        sources += 1;
        check_field(errors, field, &path.field("fieldRef"), &VARIABLE_FIELDS);
    }
    if let Some(amount) = object(from, "resourceFieldRef") {
        sources += 1;
        check_amount(errors, amount, &path.field("resourceFieldRef"), false);
    }
    for field in ["configMapKeyRef", "secretKeyRef"] {
        let Some(key) = object(from, field) else { continue };
        sources += 1;
        check_key(errors, key, &path.field(field));
    }
    if let Some(file) = object(from, "fileKeyRef") {
        sources += 1;
        check_file_key(errors, file, &path.field("fileKeyRef"));
    }
    let problem = match sources {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !text(variable, &["value"]).is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(path, "", problem));
}

fn check_key(errors: &mut Errors, selector: &Object, path: &Path<'_>) {
    let (name, key) = (text(selector, &["name"]), text(selector, &["key"]));
    invalid(errors, &path.field("name"), name, dns1123_subdomain(name));
    match key {
        "" => errors.push(FieldError::required(path.field("key"), "")),
        key => invalid(errors, &path.field("key"), key, key_problems(key)),
    }
}

fn check_file_key(errors: &mut Errors, selector: &Object, path: &Path<'_>) {
    match text(selector, &["key"]) {
        "" => errors.push(FieldError::required(path.field("key"), "")),
        key => invalid(errors, &path.field("key"), key, name_problems(key)),
    }
    match text(selector, &["volumeName"]) {
        "" => errors.push(FieldError::required(path.field("volumeName"), "")),
        name => invalid(errors, &path.field("volumeName"), name, dns1123_label(name)),
    }
    match text(selector, &["path"]) {
        "" => errors.push(FieldError::required(path.field("path"), "")),
        target => no_backsteps(errors, &path.field("path"), target),
    }
}

fn check_env_from(errors: &mut Errors, container: &Object, list: &Path<'_>) {
    for (index, from) in objects(container, "envFrom") {
        let path = list.at(index);
        let prefix = text(from, &["prefix"]);
        invalid(errors, &path.field("prefix"), prefix, name_problems(prefix));
        let mut sources = 0;
        for field in ["configMapRef", "secretRef"] {
            let Some(reference) = object(from, field) else { continue };
            sources += 1;
            match text(reference, &["name"]) {
                "" => errors.push(FieldError::required(path.field(field).field("name"), "")),
                // A trailing dash is valid, as in the prefix of a generated name.
                name => {
                    let problems = model::names::NameRule::Dns1123Subdomain.check_prefix(name);
                    invalid(errors, &path.field(field).field("name"), name, problems);
                }
            }
        }
        let problem = match sources {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid(list, "", problem));
    }
}

/// Validates a downward API file.
pub fn check_file(errors: &mut Errors, file: &Object, path: &Path<'_>) {
    let target = text(file, &["path"]);
    if target.is_empty() {
        errors.push(FieldError::required(path.field("path"), ""));
    }
    super::fields::local_path(errors, &path.field("path"), target);
    match (object(file, "fieldRef"), object(file, "resourceFieldRef")) {
        (Some(field), other) => {
            check_field(errors, field, &path.field("fieldRef"), &FILE_FIELDS);
            if other.is_some() {
                let rule = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(path, "resource", rule));
            }
        }
        (None, Some(amount)) => check_amount(errors, amount, &path.field("resourceFieldRef"), true),
        (None, None) => {
            errors.push(FieldError::required(path, "one of fieldRef and resourceFieldRef is required"));
        }
    }
    super::fields::file_mode(errors, file, path, "mode");
}

fn check_field(errors: &mut Errors, selector: &Object, path: &Path<'_>, supported: &[&str]) {
    let (version, field) = (text(selector, &["apiVersion"]), text(selector, &["fieldPath"]));
    for (name, value) in [("apiVersion", version), ("fieldPath", field)] {
        if value.is_empty() {
            errors.push(FieldError::required(path.field(name), ""));
            return;
        }
    }
    let field_path = path.field("fieldPath");
    let unknown = |errors: &mut Errors, problem: String| {
        let problem = format!("error converting fieldPath: {problem}");
        errors.push(FieldError::invalid(field_path, field, problem));
    };
    if version != "v1" {
        return unknown(errors, format!("unsupported pod version: {version}"));
    }
    if let Some((of, key)) = field.strip_suffix("']").and_then(|field| field.split_once("['")) {
        match of {
            "metadata.annotations" => {
                invalid(errors, path, &key.to_lowercase(), qualified_name(&key.to_lowercase()))
            }
            "metadata.labels" => invalid(errors, path, key, qualified_name(key)),
            _ => unknown(errors, format!("field label does not support subscript: {field}")),
        }
        return;
    }
    if ![&VARIABLE_FIELDS[..], &FILE_FIELDS, &OTHER_FIELDS].iter().any(|known| known.contains(&field)) {
        return unknown(errors, format!("field label not supported: {field}"));
    }
    let field = if field == "spec.host" { "spec.nodeName" } else { field };
    if !supported.contains(&field) {
        errors.push(FieldError::not_supported(field_path, field, supported));
    }
}

fn check_amount(errors: &mut Errors, selector: &Object, path: &Path<'_>, in_volume: bool) {
    let resource = text(selector, &["resource"]);
    let is_huge = HUGE_PAGES.iter().any(|prefix| resource.starts_with(prefix));
    if in_volume && text(selector, &["containerName"]).is_empty() {
        errors.push(FieldError::required(path.field("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(path.field("resource"), ""));
    } else if !AMOUNTS.contains(&resource) && !is_huge {
        errors.push(FieldError::not_supported(path.field("resource"), resource, &AMOUNTS));
    }
    let divisor = text(selector, &["divisor"]);
    if Quantity::parse(divisor).is_ok_and(|divisor| !divisor.is_zero()) {
        let rule = match resource {
            "limits.cpu" | "requests.cpu" if !["1m", "1"].contains(&divisor) => {
                "1m and 1 are supported with the cpu resource".to_owned()
            }
            "limits.memory" | "requests.memory" if !UNITS.contains(&divisor) => {
                format!("{UNITS_RULE} memory resource")
            }
            "limits.ephemeral-storage" | "requests.ephemeral-storage" if !UNITS.contains(&divisor) => {
                format!("{UNITS_RULE} local ephemeral storage resource")
            }
            _ if is_huge && !UNITS.contains(&divisor) => format!("{UNITS_RULE} hugepages resource"),
            _ => return,
        };
        errors.push(FieldError::invalid(
            path.field("divisor"),
            resource,
            format!("only divisor's values {rule}"),
        ));
    }
}
