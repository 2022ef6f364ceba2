//! Sets of fields and their JSON.

use super::*;

fn set(value: &Value) -> FieldSet<'_> {
    FieldSet::decode(value).unwrap()
}

fn json_of(set: &FieldSet<'_>) -> String {
    let mut out = String::new();
    set.encode(&mut out);
    out
}

#[test]
fn fields_are_encoded_sorted_and_compact() {
    let value = json!({
        "f:metadata": {"f:labels": {"f:z": {}, "f:a\"b": {}, ".": {}}},
        "f:list": {"v:10": {}, "v:9": {}, "v:\"x\"": {}, "k:{\"port\":80}": {".": {}, "f:port": {}}, "i:3": {}},
    });
    let expected = concat!(
        r#"{"f:list":{"k:{\"port\":80}":{".":{},"f:port":{}},"v:9":{},"v:10":{},"v:\"x\"":{},"i:3":{}},"#,
        r#""f:metadata":{"f:labels":{".":{},"f:a\"b":{},"f:z":{}}}}"#
    );
    assert_eq!(json_of(&set(&value)), expected);
    assert_eq!(json_of(&FieldSet::new()), "{}");
}

#[test]
fn unknown_elements_are_ignored_and_malformed_ones_refused() {
    assert_eq!(json_of(&set(&json!({"x:new": {}, "f:a": {}}))), r#"{"f:a":{}}"#);
    for bad in [
        json!({"f": {}}),
        json!({"fa:b": {}}),
        json!({"v:{": {}}),
        json!({"k:1": {}}),
        json!({"i:x": {}}),
        json!("x"),
    ] {
        assert_eq!(FieldSet::decode(&bad), Err(NoElement), "{bad}");
    }
}

#[test]
fn a_difference_keeps_paths_below_a_removed_one() {
    let (value, other) = (json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}), json!({"f:a": {}, "f:d": {}}));
    let (all, less) = (set(&value), set(&other));
    assert_eq!(json_of(&all.clone().difference(&less)), r#"{"f:a":{"f:b":{}},"f:c":{}}"#);
    assert_eq!(json_of(&all.clone().without(&less)), r#"{"f:c":{}}"#);
    assert_eq!(json_of(&all.clone().intersection(&less)), r#"{"f:a":{}}"#);
    assert_eq!(json_of(&all.union(less)), r#"{"f:a":{".":{},"f:b":{}},"f:c":{},"f:d":{}}"#);
}

#[test]
fn paths_are_formatted_as_in_messages() {
    let value = json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:name": {}}}}, "f:x": {"v:\"a\"": {}, "i:1": {}}});
    let texts: Vec<String> = set(&value).paths().iter().map(|path| path_text(path)).collect();
    assert_eq!(texts, [r#".spec.ports[port=80,protocol="TCP"].name"#, r#".x[="a"]"#, ".x[1]"]);
}
