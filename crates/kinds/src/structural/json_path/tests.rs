//! Parsing and evaluation of paths.

use serde_json::{Value, json};

use super::*;

fn first(path: &str, object: &Value) -> Option<String> {
    JsonPath::parse(path).unwrap().first(object.as_object().unwrap()).map(|found| shown(&found))
}

#[test]
fn paths_select_values() {
    let object = json!({
        "spec": {"replicas": 3, "ratio": 1e6, "on": true, "a.b": "dotted", "map": {"x": {"y": "<1>"}}, "nothing": null},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "n": 1},
            {"type": "Synced", "status": "False", "n": 2},
        ], "list": [10, 20, 30]},
    });
    for (path, expected) in [
        (".spec.replicas", Some("3")),
        (".spec.ratio", Some("1e+06")),
        (".spec.on", Some("true")),
        (r".spec.a\.b", Some("dotted")),
        (".spec['a\\.b']", Some("dotted")),
        (".spec.map", Some(r#"{"x":{"y":"\u003c1\u003e"}}"#)),
        (".spec.absent", None),
        (".spec.replicas.deeper", None),
        (".spec.nothing", Some("<no value>")),
        (".status.list[0]", Some("10")),
        (".status.list[-1]", Some("30")),
        (".status.list[3]", None),
        (".status.list[1:]", Some("20")),
        (".status.list[1:2]", Some("20")),
        (".status.list[0:0]", None),
        (".status.list[*]", Some("10")),
        (".status.list[2,1]", Some("30")),
        (".status.list[1::0]", None),
        (".spec.replicas[0]", None),
        (r#".status.conditions[?(@.type=="Synced")].status"#, Some("False")),
        (r#".status.conditions[?(@.type == 'Ready')].status"#, Some("True")),
        (r#".status.conditions[?(@.type!="Ready")].n"#, Some("2")),
        (".status.conditions[?(@.n>1)].type", Some("Synced")),
        (".status.conditions[?(@.n<=1)].type", Some("Ready")),
        (".status.conditions[?(@.n==1.5)].type", None),
        (".status.conditions[?(@.status)].type", Some("Ready")),
        (".status.conditions[?(@.absent)].type", None),
        ("..y", Some("<1>")),
        (".status.conditions[*].type", Some("Ready")),
        (".", None),
        (".range", None),
    ] {
        assert_eq!(first(path, &object).as_deref(), expected, "{path}");
    }
}

#[test]
fn bad_paths_are_refused() {
    for path in
        [".a[", ".a[x]", ".a[?(@.b", ".a[?(@.b)", "....", ".a\n", "%", ".a['b", "'a", "1.2.3", ".a[1:2:3:4]"]
    {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
    let deep = format!("{}{}", "[?(".repeat(50), ")]".repeat(50));
    assert!(JsonPath::parse(&deep).is_err());
}

#[test]
fn the_cost_of_a_path_is_bounded() {
    let mut value = json!({"a": 1});
    for _ in 0..100 {
        value = json!({"a": value, "b": [1, 2, 3]});
    }
    let path = JsonPath::parse("..a..a..a..a..a").unwrap();
    assert!(path.first(value.as_object().unwrap()).is_none());
}
