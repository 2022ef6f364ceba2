//! Event of the core group. It is in the namespace of its involved object; events with an `eventTime` have stricter
//! rules.

use model::Object;
use model::error::{FieldError, Path};
use model::names::{NameRule, dns1123_subdomain, qualified_name};
use model::object::{number, text, value};
use serde_json::Value;

use crate::rules::age::since;
use crate::rules::columns::{Column, NAME, name};
use crate::rules::{Dependents, KindRules, SelectableField};

/// A selectable field of the involved object.
macro_rules! involved {
    ($field:literal) => {
        SelectableField {
            path: concat!("involvedObject.", $field),
            value: |object| text(object, &["involvedObject", $field]).into(),
        }
    };
}

pub(super) const RULES: KindRules = KindRules {
    kind: "Event",
    name: NameRule::PathSegment,
    validate_create: validate,
    validate_update: |new, _| validate(new),
    create_on_update: true,
    dependents: Dependents::None,
    selectable: &[
        involved!("kind"),
        involved!("namespace"),
        involved!("name"),
        involved!("uid"),
        involved!("apiVersion"),
        involved!("resourceVersion"),
        involved!("fieldPath"),
        SelectableField { path: "reason", value: |object| text(object, &["reason"]).into() },
        SelectableField {
            path: "reportingComponent",
            value: |object| text(object, &["reportingComponent"]).into(),
        },
        SelectableField { path: "source", value: |object| component(object).into() },
        SelectableField { path: "type", value: |object| text(object, &["type"]).into() },
    ],
    columns: &[
        Column::new("Last Seen", "string", "The time since the last occurrence."),
        Column::new("Type", "string", "Normal or Warning."),
        Column::new("Reason", "string", "The reason of the event."),
        Column::new("Object", "string", "The involved object."),
        Column::new("Subobject", "string", "The field of the involved object.").wide(),
        Column::new("Source", "string", "The component that reports it.").wide(),
        Column::new("Message", "string", "The description of the event."),
        Column::new("First Seen", "string", "The time since the first occurrence.").wide(),
        Column::new("Count", "string", "The number of occurrences.").wide(),
        NAME.wide(),
    ],
    cells,
    ..KindRules::PLAIN
};

/// The rules of Event in `events.k8s.io`, stored as that of the core group: stricter, and only the series may change.
pub(super) const OF_EVENTS: KindRules = KindRules {
    group: "events.k8s.io",
    validate_create: |object| {
        let name = text(object, &["metadata", "name"]);
        let problems = dns1123_subdomain(name).into_iter().filter(|_| !name.is_empty());
        let mut errors: Vec<FieldError> =
            problems.map(|problem| FieldError::invalid("metadata.name", name, problem)).collect();
        errors.extend(legacy(object, "reportingController"));
        errors.extend(bad_new(object));
        errors
    },
    validate_update: |new, old| {
        let mut errors = legacy(new, "reportingController");
        if new.get("series") != old.get("series") {
            errors.extend(bad_series(new));
        }
        errors.extend(FIXED.into_iter().flat_map(|(field, path)| fixed(new, old, field, path)));
        errors
    },
    ..RULES
};

/// Immutable fields in `events.k8s.io`, with their names in messages.
const FIXED: [(&str, &str); 13] = [
    ("involvedObject", "involvedObject"),
    ("reason", "reason"),
    ("message", "message"),
    ("source", "source"),
    ("firstTimestamp", "firstTimestamp"),
    ("lastTimestamp", "lastTimestamp"),
    ("count", "count"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingComponent", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

/// The error for a changed immutable field. A missing string equals an empty one.
fn fixed(new: &Object, old: &Object, field: &str, path: &str) -> Option<FieldError> {
    let was_text = old.get(field).is_some_and(Value::is_string);
    let value = new.get(field).cloned().unwrap_or_else(|| if was_text { "".into() } else { Value::Null });
    (new.get(field) != old.get(field)).then(|| FieldError::invalid(path, value, "field is immutable"))
}

/// The reporting component: older events have a source, newer ones a reporting controller.
fn component(object: &Object) -> &str {
    match text(object, &["source", "component"]) {
        "" => text(object, &["reportingComponent"]),
        component => component,
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    legacy(object, "reportingComponent")
}

/// The rules of events in both groups; the reporting component has another name in each.
fn legacy(object: &Object, component: &str) -> Vec<FieldError> {
    let namespace = text(object, &["metadata", "namespace"]);
    let involved = text(object, &["involvedObject", "namespace"]);
    let is_new = value(object, &["eventTime"]).is_some_and(|time| !time.is_null());
    let mut errors = Vec::new();
    // Events of a cluster-scoped object are in `default`, or, newer ones, in `kube-system`.
    let matches = match (involved, is_new) {
        ("", false) => namespace.is_empty() || namespace == "default",
        ("", true) => namespace == "default" || namespace == "kube-system",
        (involved, false) => involved == namespace,
        (_, true) => true,
    };
    if !matches {
        let problem = "does not match event.namespace";
        errors.push(FieldError::invalid("involvedObject.namespace", involved, problem));
    }
    if is_new {
        errors.extend(bad_report(object, &Path::root(component)));
    }
    let problems = dns1123_subdomain(namespace).into_iter();
    errors.extend(problems.map(|problem| FieldError::invalid("namespace", namespace, problem)));
    errors
}

/// Validates the required fields of an event with an event time.
fn bad_report(object: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let component = text(object, &["reportingComponent"]);
    if component.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    let problems = qualified_name(component).into_iter();
    errors.extend(problems.map(|problem| FieldError::invalid(path, component, problem)));
    for (field, required, length_max) in [
        ("reportingInstance", true, 128),
        ("action", true, 128),
        ("reason", true, 128),
        ("message", false, 1024),
    ] {
        let length = text(object, &[field]).len();
        if required && length == 0 {
            errors.push(FieldError::required(field, ""));
        }
        if length > length_max {
            let problem = format!("can have at most {length_max} characters");
            errors.push(FieldError::invalid(field, "", problem));
        }
    }
    errors
}

/// Additional validation of an event of `events.k8s.io`.
fn bad_new(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let is_set = |field: &str| value(object, &[field]).is_some_and(|value| !value.is_null());
    if !is_set("eventTime") {
        errors.push(FieldError::required("eventTime", ""));
    }
    errors.extend(bad_series(object));
    let mut unset =
        vec![("firstTimestamp", is_set("firstTimestamp")), ("lastTimestamp", is_set("lastTimestamp"))];
    unset.push(("count", number(object, &["count"]) != 0));
    let has_source = ["component", "host"].iter().any(|part| !text(object, &["source", part]).is_empty());
    unset.push(("source", has_source));
    let set = unset.into_iter().filter(|(_, is_set)| *is_set);
    errors.extend(set.map(|(field, _)| FieldError::invalid(field, "", "needs to be unset")));
    let kind = text(object, &["type"]);
    if kind != "Normal" && kind != "Warning" {
        errors.push(FieldError::invalid("type", "", format!("has invalid value: {kind}")));
    }
    errors
}

fn bad_series(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if value(object, &["series"]).is_none_or(Value::is_null) {
        return errors;
    }
    if number(object, &["series", "count"]) < 2 {
        errors.push(FieldError::invalid("series.count", "", "should be at least 2"));
    }
    if text(object, &["series", "lastObservedTime"]).is_empty() {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
    errors
}

fn cells(object: &Object, now: jiff::Timestamp) -> Vec<Value> {
    let ago = |path: &[&str]| since(text(object, path), now);
    let first = ago(&["firstTimestamp"]).or_else(|| ago(&["eventTime"]));
    let series = value(object, &["series"]).is_some_and(Value::is_object);
    let (last, count) = match (series, number(object, &["count"])) {
        (true, _) => (ago(&["series", "lastObservedTime"]), number(object, &["series", "count"])),
        (false, count) => {
            // The count of a single event may be missing.
            (ago(&["lastTimestamp"]).or_else(|| first.clone()), if count == 0 { 1 } else { count })
        }
    };
    let kind = text(object, &["involvedObject", "kind"]).to_lowercase();
    let target = match text(object, &["involvedObject", "name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let host = match text(object, &["source", "host"]) {
        "" => text(object, &["reportingInstance"]),
        host => host,
    };
    let source = match host {
        "" => component(object).to_owned(),
        host => format!("{}, {host}", component(object)),
    };
    let shown = |ago: Option<String>| Value::from(ago.unwrap_or_else(|| "<unknown>".to_owned()));
    vec![
        shown(last),
        text(object, &["type"]).into(),
        text(object, &["reason"]).into(),
        target.into(),
        text(object, &["involvedObject", "fieldPath"]).into(),
        source.into(),
        text(object, &["message"]).trim().into(),
        shown(first),
        count.into(),
        name(object),
    ]
}
