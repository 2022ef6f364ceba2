//! Controller revisions.

use super::changes::{Rows, creates, made, updates, written};

/// A minimal object.
const MINIMAL: &str = r#"{"metadata": {"name": "minimal"}, "data": {"a": 1}}"#;

/// An object with most fields set.
const RICH: &str = r#"{
    "metadata": {
        "name": "rich",
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "name": "db",
                "uid": "u",
                "controller": true
            }
        ]
    },
    "data": {"spec": {"b": [1, null, "x"], "a": {}}},
    "revision": 7
}"#;

/// The created object, without the Pod spec of its template.
const MINIMAL_MADE: &str = r#"{"data": {"a": 1}, "metadata": {"name": "minimal"}, "revision": 0}"#;

/// The created object, without the Pod spec of its template.
const RICH_MADE: &str = r#"{
    "data": {"spec": {"a": {}, "b": [1, null, "x"]}},
    "metadata": {
        "name": "rich",
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "controller": true,
                "kind": "StatefulSet",
                "name": "db",
                "uid": "u"
            }
        ]
    },
    "revision": 7
}"#;

#[test]
fn defaults_are_set() {
    made("ControllerRevision", MINIMAL, MINIMAL_MADE);
    made("ControllerRevision", RICH, RICH_MADE);
}

const NEW: Rows = &[
    (
        "a negative revision",
        r#"{"/revision": -1}"#,
        &["revision: Invalid value: -1: must be greater than or equal to 0"],
    ),
    ("no data", r#"{"/data": "$unset"}"#, &["data: Required value: data is mandatory"]),
    ("null data", r#"{"/data": null}"#, &["data: Required value: data is mandatory"]),
    ("a list", r#"{"/data": [1]}"#, &["data: Required value: data must be a valid JSON object"]),
    ("a text", r#"{"/data": "x"}"#, &["data: Required value: data must be a valid JSON object"]),
];

#[test]
fn creates_are_validated() {
    creates("ControllerRevision", MINIMAL, NEW);
}

const CHANGED: Rows = &[
    ("other data", r#"{"/data": {"a": 2}}"#, &["data: Invalid value: {\"a\":2}: field is immutable"]),
    ("no data", r#"{"/data": "$unset"}"#, &["data: Invalid value: null: field is immutable"]),
    (
        "a negative revision",
        r#"{"/revision": -1}"#,
        &["revision: Invalid value: -1: must be greater than or equal to 0"],
    ),
];

#[test]
fn immutable_fields_cannot_change() {
    let old = written("ControllerRevision", RICH);
    updates("ControllerRevision", &old, CHANGED);
}
