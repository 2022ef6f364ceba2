//! Tests by changes of a body: each row has a change and the recorded errors of kube-apiserver.

use serde_json::{Map, Value};

use super::{create, update, write_subresource};

/// Rows: description, changes by JSON pointer (in a status: by field), and the errors; none if it is valid.
pub(super) type Rows = &'static [(&'static str, &'static str, &'static [&'static str])];

/// Abbreviations of long texts.
const LONG: [(&str, &str); 5] = [
    ("$QUALIFIED", super::QUALIFIED),
    (
        "$LABEL",
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
         and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
         validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ),
    (
        "$SUBDOMAIN",
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
         and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ),
    (
        "$DNS_LABEL",
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
         with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ),
    (
        "$PERCENT",
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used \
         for validation is '[0-9]+%')",
    ),
];

/// Checks the created object. The Pod spec of a template has tests of its own.
pub(super) fn made(kind: &str, body: &str, expected: &str) {
    let mut object = written(kind, body);
    drop_pods(&mut object);
    assert_eq!(object, json(expected));
}

/// A created object.
pub(super) fn written(kind: &str, body: &str) -> Value {
    create(kind, json(body)).unwrap()
}

/// A created object after a status update.
pub(super) fn with_status(kind: &str, body: &str, status: &str) -> Value {
    let old = written(kind, body);
    let mut new = old.clone();
    new["status"] = json(status);
    write_subresource(kind, "status", old, new).unwrap()
}

/// Checks the errors of creates.
pub(super) fn creates(kind: &str, base: &str, rows: Rows) {
    let base = json(base);
    check(rows, |row| create(kind, changed(&base, row)));
}

/// Checks the errors of updates.
pub(super) fn updates(kind: &str, old: &Value, rows: Rows) {
    check(rows, |row| update(kind, old.clone(), changed(old, row)));
}

/// Checks the errors of status updates.
pub(super) fn statuses(kind: &str, old: &Value, rows: Rows) {
    check(rows, |row| {
        let mut new = old.clone();
        merge(&mut new["status"], row);
        write_subresource(kind, "status", old.clone(), new)
    });
}

fn check(rows: Rows, write: impl Fn(&Value) -> Result<Value, Vec<String>>) {
    for (about, row, errors) in rows {
        let expected = errors.iter().map(|error| {
            LONG.iter().fold((*error).to_owned(), |error, (short, long)| error.replace(short, long))
        });
        let found = write(&json(row)).err().unwrap_or_default();
        assert_eq!(found, expected.collect::<Vec<_>>(), "{about}");
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn changed(base: &Value, row: &Value) -> Value {
    let mut body = base.clone();
    for (pointer, value) in row.as_object().unwrap() {
        let (parents, last) = pointer[1..].rsplit_once('/').unwrap_or(("", &pointer[1..]));
        let mut at = &mut body;
        for parent in parents.split('/').filter(|parent| !parent.is_empty()) {
            at = &mut at[parent];
        }
        if value == "$unset" {
            at.as_object_mut().map(|object| object.remove(last));
        } else {
            at[last] = value.clone();
        }
    }
    body
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (key, value) in fields {
        if value.is_null() {
            target.as_object_mut().map(|target| target.remove(key));
        } else {
            merge(&mut target[key.as_str()], value);
        }
    }
}

fn drop_pods(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.get_mut("template").and_then(Value::as_object_mut).map(|template| template.remove("spec"));
            fields.values_mut().for_each(drop_pods);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_pods),
        _ => {}
    }
}
