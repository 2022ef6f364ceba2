//! Metrics of a HorizontalPodAutoscaler.

use model::Object;
use model::error::{FieldError, Path};
use model::names::{dns1123_label, path_segment};
use model::object::{items, text, value};
use serde_json::Value;

use crate::rules::core::bad_container_resource_name;
use crate::rules::label_selector::invalid;
use crate::rules::workload::{map_at, optional, present};
use quantity::Quantity;

const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
/// Metric sources with their types, in Kubernetes' order.
const SOURCES: [(&str, &str); 5] = [
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];
const SHOWN_MAX: usize = 2;
const UNKNOWN: &str = "<unknown>";

/// Validates a list of metrics at a path.
pub(super) fn bad_metrics(metrics: &[Value], path: &Path<'_>, any_version: bool) -> Vec<FieldError> {
    let metrics = metrics.iter().enumerate().filter_map(|(index, metric)| Some((index, metric.as_object()?)));
    metrics.flat_map(|(index, metric)| bad_metric(metric, &path.at(index), any_version)).collect()
}

fn bad_metric(metric: &Object, path: &Path<'_>, any_version: bool) -> Vec<FieldError> {
    let kind = text(metric, &["type"]);
    let unknown = || FieldError::not_supported(path.field("type"), kind, &TYPES);
    let mut errors = Vec::new();
    if kind.is_empty() {
        errors.push(FieldError::required(path.field("type"), "must specify a metric source type"));
    }
    let expected = SOURCES.iter().find(|(_, of)| *of == kind).map(|(source, _)| *source);
    if expected.is_none() {
        errors.push(unknown());
    }
    let sources: Vec<(&str, &Object)> =
        SOURCES.iter().filter_map(|(source, _)| Some((*source, map_at(metric, &[source])?))).collect();
    if let Some((source, of)) = sources.first() {
        errors.extend(bad_source(source, of, &path.field(source), any_version));
    }
    match expected {
        Some(source) if map_at(metric, &[source]).is_none() => {
            let detail = "must populate information for the given metric source";
            errors.push(FieldError::required(path.field(source), detail));
        }
        Some(_) => {}
        None => errors.push(unknown()),
    }
    if sources.len() > 1 {
        let others = sources.iter().filter(|(source, _)| Some(*source) != expected);
        let detail = "must populate the given metric source only";
        errors.extend(others.map(|(source, _)| FieldError::forbidden(path.field(source), detail)));
    }
    errors
}

fn bad_source(source: &str, of: &Object, path: &Path<'_>, any_version: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match source {
        "object" => {
            if let Some(described) = map_at(of, &["describedObject"]) {
                let path = path.field("describedObject");
                errors.extend(bad_reference(&path, described, any_version, true));
            }
            errors.extend(bad_identifier(of, path));
        }
        "external" | "pods" => errors.extend(bad_identifier(of, path)),
        "containerResource" => errors.extend(bad_container_resource(of, path)),
        _ if text(of, &["name"]).is_empty() => {
            errors.push(FieldError::required(path.field("name"), "must specify a resource name"));
        }
        _ => {}
    }
    let target = path.field("target");
    let has = |field: &str| present(of, &["target", field]).is_some();
    errors.extend(map_at(of, &["target"]).map(|of| bad_target(of, &target)).unwrap_or_default());
    let (average, utilization) = (format!("{target}.averageValue"), format!("{target}.averageUtilization"));
    match source {
        "object" if !has("value") && !has("averageValue") => {
            errors.push(FieldError::required(average, "must set either a target value or averageValue"));
        }
        "external" if !has("value") && !has("averageValue") => {
            let detail = "must set either a target value for metric or a per-pod target";
            errors.push(FieldError::required(average, detail));
        }
        "external" if has("value") && has("averageValue") => {
            let detail = "may not set both a target value for metric and a per-pod target";
            errors.push(FieldError::forbidden(format!("{target}.value"), detail));
        }
        "pods" if !has("averageValue") => {
            errors.push(FieldError::required(average, "must specify a positive target averageValue"));
        }
        "resource" | "containerResource" => match (has("averageUtilization"), has("averageValue")) {
            (false, false) => {
                let detail = "must set either a target raw value or a target utilization";
                errors.push(FieldError::required(utilization, detail));
            }
            (true, true) => {
                let detail = "may not set both a target raw value and a target utilization";
                errors.push(FieldError::forbidden(average, detail));
            }
            _ => {}
        },
        _ => {}
    }
    errors
}

fn bad_container_resource(of: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name_path = path.field("name");
    match text(of, &["name"]) {
        "" => errors.push(FieldError::required(name_path, "must specify a resource name")),
        name => errors.extend(bad_container_resource_name(&name_path, name)),
    }
    let container_path = path.field("container");
    match text(of, &["container"]) {
        "" => errors.push(FieldError::required(container_path, "must specify a container")),
        container => errors.extend(invalid(&container_path, container, dns1123_label(container))),
    }
    errors
}

fn bad_identifier(of: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let path = path.field("metric.name");
    match text(of, &["metric", "name"]) {
        "" => vec![FieldError::required(path, "must specify a metric name")],
        name => invalid(&path, name, path_segment(name)).collect(),
    }
}

fn bad_target(target: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(target, &["type"]);
    if kind.is_empty() {
        errors.push(FieldError::required(path.field("type"), "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind) {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(path.field("type"), kind, detail));
    }
    for field in ["value", "averageValue"] {
        let Some(amount) = present(target, &[field]).and_then(Value::as_str) else { continue };
        if Quantity::parse(amount).is_ok_and(|amount| amount.is_zero() || amount.is_negative()) {
            errors.push(FieldError::invalid(path.field(field), amount, "must be positive"));
        }
    }
    if let Some(utilization) = optional(target, &["averageUtilization"]).filter(|number| *number < 1) {
        let path = path.field("averageUtilization");
        errors.push(FieldError::invalid(path, utilization, "must be greater than 0"));
    }
    errors
}

/// Validates a reference to an object.
pub(super) fn bad_reference(
    path: &Path<'_>,
    reference: &Object,
    any_version: bool,
    any_group: bool,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["kind", "name"] {
        let path = path.field(field);
        match text(reference, &[field]) {
            "" => errors.push(FieldError::required(path, "")),
            text => errors.extend(invalid(&path, text, path_segment(text))),
        }
    }
    let version = text(reference, &["apiVersion"]);
    let problem = if is_bad_version(reference) {
        format!("unexpected GroupVersion string: {version}")
    } else if !any_group && !version.contains('/') {
        "apiVersion must specify API group".to_owned()
    } else {
        return errors;
    };
    if !any_version {
        errors.push(FieldError::invalid(path.field("apiVersion"), version, problem));
    }
    errors
}

/// Whether the apiVersion of a reference is malformed.
pub(super) fn is_bad_version(reference: &Object) -> bool {
    text(reference, &["apiVersion"]).matches('/').count() > 1
}

/// Current and target values of metrics, as tables show them.
pub(super) fn shown_metrics(object: &Object) -> String {
    let metrics = items(object, &["spec", "metrics"]);
    let statuses = items(object, &["status", "currentMetrics"]);
    if metrics.is_empty() {
        return "<none>".to_owned();
    }
    let shown = metrics.iter().enumerate().take(SHOWN_MAX);
    let shown: Vec<String> = shown.map(|(index, metric)| shown_metric(metric, statuses.get(index))).collect();
    let shown = shown.join(", ");
    match metrics.len() - metrics.len().min(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn shown_metric(metric: &Value, status: Option<&Value>) -> String {
    let kind = metric.get("type").and_then(Value::as_str).unwrap_or_default();
    let Some((source, _)) = SOURCES.iter().find(|(_, of)| *of == kind) else {
        return "<unknown type>".to_owned();
    };
    let Some(own) = metric.get(source).and_then(Value::as_object) else { return UNKNOWN.to_owned() };
    let status = status.and_then(|status| status.get(source)).and_then(Value::as_object);
    let target = |field: &str| value(own, &["target", field]).map(plain);
    let current = |field: &str| status.and_then(|status| value(status, &["current", field])).map(plain);
    let or = |text: Option<String>, other: &str| text.unwrap_or_else(|| other.to_owned());
    // A status without the value shows `<nil>`; without a status it is unknown.
    let measured = |field: &str| or(current(field), if status.is_some() { "<nil>" } else { UNKNOWN });
    let is_resource = matches!(*source, "resource" | "containerResource");
    match (target("averageValue"), is_resource) {
        (Some(average), true) => {
            format!("{}: {}/{average}", text(own, &["name"]), measured("averageValue"))
        }
        (None, true) => {
            let percent = |text: Option<String>| text.map(|text| format!("{text}%"));
            let target = or(percent(target("averageUtilization")), "<auto>");
            let current = or(percent(current("averageUtilization")), UNKNOWN);
            format!("{}: {current}/{target}", text(own, &["name"]))
        }
        (Some(average), false) if *source == "pods" => format!("{}/{average}", measured("averageValue")),
        (Some(average), false) => format!("{}/{average} (avg)", or(current("averageValue"), UNKNOWN)),
        (None, false) => format!("{}/{}", measured("value"), or(target("value"), "<nil>")),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
