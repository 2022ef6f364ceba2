//! Replays the bodies in `recorded` and compares the results with the responses of kube-apiserver 1.35.4.

use serde_json::{Value, json};

use super::{compile, object};
use crate::structural::{Format, Structural};

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The object that a write stores, or the errors.
fn read(schema: &Structural, body: &Value) -> Result<(Value, Vec<String>), String> {
    let mut body = object(body.clone());
    let warnings = schema.decode(&mut body)?;
    schema.default(&mut body);
    Ok((Value::Object(body), warnings))
}

/// Sorts errors: Kubernetes visits fields in the random order of Go's maps.
fn sorted(mut errors: Vec<String>) -> Vec<String> {
    errors.sort();
    errors
}

#[test]
fn values_are_validated_as_by_kubernetes() {
    for entry in parse(include_str!("values.json")).as_array().unwrap() {
        let schema = compile(entry["schema"].clone());
        for case in entry["cases"].as_array().unwrap() {
            let (mut body, _) = match (read(&schema, &case["body"]), case.get("failed")) {
                (Ok(read), None) => read,
                (Err(error), Some(expected)) => {
                    assert_eq!(json!(error), *expected);
                    continue;
                }
                (read, _) => panic!("{read:?}\n{case}"),
            };
            body["metadata"] = json!({"name": "n"});
            let old = case.get("old").map(|old| {
                let mut old = old.clone();
                old["metadata"] = json!({"name": "n"});
                object(old)
            });
            let errors = schema.validate(&object(body), old.as_ref()).errors;
            let errors = errors.iter().map(ToString::to_string).collect();
            let expected = serde_json::from_value(case["errors"].clone()).unwrap();
            assert_eq!(sorted(errors), sorted(expected), "{case}");
        }
    }
}

#[test]
fn bodies_are_decoded_as_by_kubernetes() {
    let recorded = parse(include_str!("shapes.json"));
    let schema = compile(recorded["schema"].clone());
    for case in recorded["cases"].as_array().unwrap() {
        let mut body = match case.get("raw") {
            Some(raw) => parse(raw.as_str().unwrap()),
            None => case["body"].clone(),
        };
        if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
            metadata.remove("name");
        }
        match (read(&schema, &body), case.get("failed")) {
            (Ok((read, warnings)), None) => {
                let mut read = object(read);
                schema.canonicalize(&mut read);
                let mut read = Value::Object(read);
                let metadata = read.as_object_mut().unwrap().entry("metadata").or_insert_with(|| json!({}));
                metadata.as_object_mut().unwrap().remove("creationTimestamp");
                assert_eq!(read, case["object"], "{case}");
                assert_eq!(json!(warnings), case["warnings"], "{case}");
            }
            (Err(error), Some(expected)) => assert_eq!(json!(error), *expected, "{case}"),
            (read, _) => panic!("{read:?}\n{case}"),
        }
    }
}

#[test]
fn formats_are_validated_as_by_kubernetes() {
    for (name, texts) in &object(parse(include_str!("formats.json"))) {
        let format = Format::named(name);
        for (kind, fits) in [("good", true), ("bad", false)] {
            for text in texts[kind].as_array().unwrap() {
                assert_eq!(format.fits(text.as_str().unwrap()), fits, "{name} {text}");
            }
        }
    }
}
