//! StorageClasses.

use serde_json::{Value, json};

use super::*;

/// A class with a provisioner and these fields.
fn class(fields: Value) -> Value {
    let mut body = json!({"provisioner": "example.com/p"});
    for (key, value) in fields.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

fn topologies(terms: Value) -> Value {
    class(json!({"allowedTopologies": terms}))
}

#[test]
fn a_storage_class_gets_a_policy_and_a_mode() {
    let made = json!({
        "metadata": {}, "provisioner": "Foo.com/Bar", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
    });
    assert_eq!(create("StorageClass", json!({"provisioner": "Foo.com/Bar"})), Ok(made));
    assert!(create("StorageClass", class(json!({"mountOptions": ["x", "x"]}))).is_ok());
}

#[test]
fn storage_classes_are_refused_for_provisioner_policy_mode_and_parameters() {
    let many: Object = (0..513).map(|n| (n.to_string(), "x".into())).collect();
    refused(
        "StorageClass",
        vec![
            (json!({}), texts(["provisioner: Required value"])),
            (
                json!({"provisioner": "A b"}),
                vec![format!("provisioner: Invalid value: \"a b\": name part {QUALIFIED}")],
            ),
            (
                class(json!({"reclaimPolicy": "Recycle", "volumeBindingMode": "y"})),
                texts([
                    "reclaimPolicy: Unsupported value: \"Recycle\": supported values: \"Delete\", \"Retain\"",
                    "volumeBindingMode: Unsupported value: \"y\": supported values: \"Immediate\", \
                     \"WaitForFirstConsumer\"",
                ]),
            ),
            (
                class(json!({"reclaimPolicy": "", "volumeBindingMode": ""})),
                texts(["volumeBindingMode: Unsupported value: \"\": supported values: \"Immediate\", \
                     \"WaitForFirstConsumer\""]),
            ),
            (
                class(json!({"parameters": {"": "x", "a b": "c"}})),
                texts(["parameters: Invalid value: \"\": field can not be empty."]),
            ),
            (
                class(json!({"parameters": many})),
                texts(["parameters: Too long: may not be more than 512 bytes"]),
            ),
            (
                class(json!({"parameters": {"x": "y".repeat(256 * 1024)}})),
                texts(["parameters: Too long: may not be more than 262144 bytes"]),
            ),
        ],
    );
}

#[test]
fn allowed_topologies_are_distinct_and_have_values() {
    let expression = |key: &str, values: &[&str]| json!({"key": key, "values": values});
    let term = |expressions: &[Value]| json!({"matchLabelExpressions": expressions});
    let duplicate =
        |index: usize| format!("allowedTopologies[{index}].matchLabelExpressions: Duplicate value: \"\"");
    let first = "allowedTopologies[0].matchLabelExpressions";
    refused(
        "StorageClass",
        vec![
            (
                topologies(json!([term(&[
                    expression("a b", &["x", "x"]),
                    expression("z", &["1"]),
                    expression("z", &["2"]),
                    expression("y", &[]),
                ])])),
                vec![
                    format!("{first}[0].values[1]: Duplicate value: \"x\""),
                    format!("{first}[0].key: Invalid value: \"a b\": name part {QUALIFIED}"),
                    format!("{first}[2].key: Duplicate value: \"z\""),
                    format!("{first}[3].values: Required value"),
                ],
            ),
            (
                topologies(json!([
                    term(&[expression("z", &["1", "2"])]),
                    term(&[expression("z", &["2", "1"])])
                ])),
                vec![duplicate(1)],
            ),
            (topologies(json!([{}])), vec![duplicate(0)]),
            (topologies(json!([term(&[expression("z", &["1"])]), {}])), vec![duplicate(1), duplicate(1)]),
        ],
    );
}

#[test]
fn most_fields_of_a_storage_class_are_immutable() {
    let old = || class(json!({"parameters": {"a": "b"}}));
    let changed = json!({
        "provisioner": "other", "parameters": {"x": "y"}, "reclaimPolicy": "Retain",
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    assert_eq!(
        update("StorageClass", old(), changed),
        Err(texts([
            "parameters: Forbidden: updates to parameters are forbidden.",
            "provisioner: Forbidden: updates to provisioner are forbidden.",
            "reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.",
            "volumeBindingMode: Invalid value: \"WaitForFirstConsumer\": field is immutable",
        ]))
    );
    assert_eq!(
        update("StorageClass", old(), json!({"provisioner": "", "parameters": {"a": "b"}})),
        Err(texts([
            "provisioner: Required value",
            "provisioner: Forbidden: updates to provisioner are forbidden."
        ]))
    );
    let mut grown = old();
    grown["allowVolumeExpansion"] = true.into();
    assert!(update("StorageClass", old(), grown).is_ok());
}
