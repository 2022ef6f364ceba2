//! HorizontalPodAutoscaler of `autoscaling/v1`, stored as v2: the CPU target is a field, everything else is in
//! annotations.

use std::fmt::Write;

use model::Object;
use serde_json::{Map, Value, json};

use super::Conversion;

pub(super) const CONVERSION: Conversion = Conversion { to_stored, from_stored, fields: &[] };

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// The default CPU target in percent.
const DEFAULT_CPU: i32 = 80;

/// The name of a metric's field in v1, and its path in v2.
type Places = (&'static str, &'static [&'static str]);

const AVERAGE_VALUE: &[&str] = &["averageValue"];
const NAME: &[&str] = &["metric", "name"];
const SELECTOR: &[&str] = &["metric", "selector"];

/// The fields of each metric source. A path of one segment that is not a name is below `target` or `current`.
const SOURCES: [(&str, &[Places]); 5] = [
    ("resource", &[("AverageUtilization", &["averageUtilization"]), ("AverageValue", AVERAGE_VALUE)]),
    (
        "containerResource",
        &[("AverageUtilization", &["averageUtilization"]), ("AverageValue", AVERAGE_VALUE)],
    ),
    ("pods", &[("metricName", NAME), ("AverageValue", AVERAGE_VALUE), ("selector", SELECTOR)]),
    (
        "object",
        &[
            ("metricName", NAME),
            ("Value", &["value"]),
            ("selector", SELECTOR),
            ("averageValue", AVERAGE_VALUE),
        ],
    ),
    (
        "external",
        &[
            ("metricName", NAME),
            ("metricSelector", SELECTOR),
            ("Value", &["value"]),
            ("AverageValue", AVERAGE_VALUE),
        ],
    ),
];

fn to_stored(object: &mut Object) {
    let metrics = annotation(object, METRICS);
    let current = annotation(object, CURRENT_METRICS);
    let conditions = annotation(object, CONDITIONS);
    let behavior = annotation(object, BEHAVIOR);
    let spec = map_in(object, "spec");
    let mut stored: Vec<Value> =
        list(metrics.as_ref()).iter().map(|metric| metric_to_stored(metric, "target")).collect();
    if let Some(percent) = spec.remove("targetCPUUtilizationPercentage") {
        stored.push(cpu(percent));
    } else if stored.is_empty() {
        stored.push(cpu(DEFAULT_CPU.into()));
    }
    spec.insert("metrics".to_owned(), stored.into());
    if let Some(behavior) = behavior {
        spec.insert("behavior".to_owned(), recased(&behavior, lower));
    }
    if !object.contains_key("status") {
        return;
    }
    let status = map_in(object, "status");
    let percent = status.remove("currentCPUUtilizationPercentage");
    let stored = match current {
        Some(current) => list(Some(&current)).iter().map(|metric| metric_to_stored(metric, "current")).collect(),
        None => percent.map_or(Value::Null, |percent| {
            json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}}])
        }),
    };
    status.insert("currentMetrics".to_owned(), stored);
    status.extend(conditions.map(|conditions| ("conditions".to_owned(), conditions)));
    if status.get("currentReplicas") == Some(&json!(0)) {
        status.remove("currentReplicas");
    }
}

fn from_stored(object: &mut Object) {
    for name in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR] {
        annotation(object, name);
    }
    let spec = map_in(object, "spec");
    let metrics = spec.remove("metrics");
    let behavior = spec.remove("behavior");
    let (cpu, others): (Vec<&Value>, Vec<&Value>) =
        list(metrics.as_ref()).iter().partition(|metric| cpu_percent(metric, "target").is_some());
    if let Some(percent) = cpu.first().and_then(|metric| cpu_percent(metric, "target")) {
        spec.insert("targetCPUUtilizationPercentage".to_owned(), percent.clone());
    }
    let others: Vec<Value> = others.into_iter().map(|metric| metric_from_stored(metric, "target")).collect();
    annotate(object, METRICS, (!others.is_empty()).then(|| others.into()));
    annotate(object, BEHAVIOR, behavior.map(|behavior| behavior_from_stored(&behavior)));
    if !object.contains_key("status") {
        return;
    }
    let status = map_in(object, "status");
    let current = status.remove("currentMetrics");
    let conditions = status.remove("conditions");
    status.entry("currentReplicas").or_insert(json!(0));
    let percent = list(current.as_ref()).iter().rev().find_map(|metric| cpu_percent(metric, "current"));
    status.extend(percent.map(|percent| ("currentCPUUtilizationPercentage".to_owned(), percent.clone())));
    let current: Vec<Value> =
        list(current.as_ref()).iter().map(|metric| metric_from_stored(metric, "current")).collect();
    annotate(object, CURRENT_METRICS, (!current.is_empty()).then(|| current.into()));
    annotate(object, CONDITIONS, conditions.filter(|conditions| !list(Some(conditions)).is_empty()));
}

fn cpu(percent: Value) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percent});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

fn cpu_percent<'a>(metric: &'a Value, at: &str) -> Option<&'a Value> {
    let resource = metric.get("resource").filter(|resource| resource["name"] == "cpu")?;
    resource.get(at)?.get("averageUtilization")
}

/// The name of a field in v1: those that differ between spec and status begin with `target` or `current`.
fn own_name(name: &str, at: &str) -> String {
    if name.starts_with(char::is_uppercase) { format!("{at}{name}") } else { name.to_owned() }
}

fn metric_to_stored(metric: &Value, at: &str) -> Value {
    let mut out = metric.clone();
    for (source, places) in SOURCES {
        let Some(own) = metric.get(source) else { continue };
        let mut stored = Map::new();
        for key in ["name", "container"] {
            stored.extend(own.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        stored.extend(own.get("target").map(|value| ("describedObject".to_owned(), value.clone())));
        for (name, path) in places {
            let Some(value) = own.get(own_name(name, at)) else { continue };
            let (parent, key) = if let [parent, key] = path { (*parent, *key) } else { (at, path[0]) };
            map_in(&mut stored, parent).insert(key.to_owned(), value.clone());
        }
        if at == "target" {
            let target = map_in(&mut stored, at);
            let kind = target_type(source, target);
            target.insert("type".to_owned(), kind.into());
        }
        out[source] = stored.into();
    }
    out
}

/// In v1 the type of a target follows from the value that is set.
fn target_type(source: &str, target: &Object) -> &'static str {
    match source {
        "resource" | "containerResource" if target.contains_key("averageUtilization") => "Utilization",
        "object" if !target.contains_key("averageValue") => "Value",
        "external" if target.contains_key("value") => "Value",
        _ => "AverageValue",
    }
}

fn metric_from_stored(metric: &Value, at: &str) -> Value {
    let mut out = metric.clone();
    for (source, places) in SOURCES {
        let Some(stored) = metric.get(source) else { continue };
        let mut own = Map::new();
        for key in ["name", "container"] {
            own.extend(stored.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        own.extend(stored.get("describedObject").map(|value| ("target".to_owned(), value.clone())));
        for (name, path) in places {
            let pointer =
                if path.len() == 1 { format!("/{at}/{}", path[0]) } else { format!("/{}", path.join("/")) };
            own.extend(stored.pointer(&pointer).map(|value| (own_name(name, at), value.clone())));
        }
        out[source] = own.into();
    }
    out
}

/// Kubernetes writes this annotation with the names of its internal Go structs, and with all fields.
fn behavior_from_stored(behavior: &Value) -> Value {
    let mut out = recased(behavior, upper);
    for direction in ["ScaleUp", "ScaleDown"] {
        let Some(rules) = out.as_object_mut().map(|out| out.entry(direction).or_insert(Value::Null)) else {
            continue;
        };
        if let Value::Object(rules) = rules {
            for field in ["StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance"] {
                rules.entry(field).or_insert(Value::Null);
            }
        }
    }
    out
}

fn recased(value: &Value, case: fn(&str) -> String) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, field)| !field.is_null());
            kept.map(|(key, field)| (case(key), recased(field, case))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(|item| recased(item, case)).collect(),
        other => other.clone(),
    }
}

fn upper(key: &str) -> String {
    key[..1].to_uppercase() + &key[1..]
}

fn lower(key: &str) -> String {
    key[..1].to_lowercase() + &key[1..]
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The map in a field; inserts an empty one if it is missing.
fn map_in<'a>(object: &'a mut Object, key: &str) -> &'a mut Object {
    let value = object.entry(key).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it was made an object just now")
}

/// Removes an annotation and parses it as JSON.
fn annotation(object: &mut Object, name: &str) -> Option<Value> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let text = annotations.remove(name)?;
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    serde_json::from_str(text.as_str()?).ok()
}

fn annotate(object: &mut Object, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        let mut text = String::new();
        write(&mut text, &value);
        map_in(map_in(object, "metadata"), "annotations").insert(name.to_owned(), text.into());
    }
}

/// The order of fields in Go's structs.
const ORDER: [&str; 39] = [
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "kind",
    "resource",
    "pods",
    "object",
    "external",
    "containerResource",
    "target",
    "metricName",
    "metricSelector",
    "name",
    "apiVersion",
    "targetValue",
    "currentValue",
    "targetAverageUtilization",
    "currentAverageUtilization",
    "targetAverageValue",
    "currentAverageValue",
    "selector",
    "averageValue",
    "container",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Type",
    "Value",
    "PeriodSeconds",
    "Tolerance",
];

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            let place = |key: &str| ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len());
            fields.sort_by_key(|(key, _)| (place(key), *key));
            out.push('{');
            for (index, (key, field)) in fields.into_iter().enumerate() {
                let _ = write!(out, "{}{}:", if index == 0 { "" } else { "," }, Value::from(key.as_str()));
                write(out, field);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}
