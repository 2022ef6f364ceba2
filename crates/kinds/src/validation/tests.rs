//! Valid and invalid metadata; the messages are responses of kube-apiserver 1.35.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object(metadata: Value) -> Map<String, Value> {
    json!({ "metadata": metadata }).as_object().unwrap().clone()
}

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(FieldError::to_string).collect()
}

/// The errors of a named, namespaced object with additional metadata.
fn faults(extra: Value) -> Vec<String> {
    let mut metadata = json!({"name": "a", "namespace": "default"});
    metadata.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    texts(&validate_object_meta(&object(metadata), true, NameRule::Dns1123Subdomain))
}

#[test]
fn valid_metadata_passes() {
    let rows = [
        json!({}),
        json!({"generateName": "a-", "generation": 3, "labels": {"a": "", "b/c": "D_e"}}),
        json!({"annotations": {"A.b/C": "any text\n", "x": ""}, "finalizers": ["a/b", "c", "orphan"]}),
        json!({"ownerReferences": [
            {"apiVersion": "v1", "kind": "A", "name": "n", "uid": "u", "controller": true},
            {"apiVersion": "apps/v1", "kind": "Event", "name": "n", "uid": "u", "controller": false},
        ]}),
        json!({"labels": null, "annotations": null, "finalizers": null, "ownerReferences": null}),
        json!({"managedFields": [{"manager": 1}]}),
    ];
    for extra in rows {
        assert_eq!(faults(extra.clone()), Vec::<String>::new(), "{extra}");
    }
}

#[test]
fn names_follow_the_rule_of_the_type() {
    let subdomain = names::dns1123_subdomain("_").remove(0);
    let label = names::dns1123_label("_").remove(0);
    let required = "metadata.name: Required value: name or generateName is required";
    let rows = [
        (json!({}), NameRule::PathSegment, vec![required.to_owned()]),
        (
            json!({"name": "A_b", "generateName": "A_"}),
            NameRule::Dns1123Subdomain,
            vec![
                format!("metadata.generateName: Invalid value: \"A_\": {subdomain}"),
                format!("metadata.name: Invalid value: \"A_b\": {subdomain}"),
            ],
        ),
        (
            json!({"name": "Def"}),
            NameRule::Dns1123Label,
            vec![format!("metadata.name: Invalid value: \"Def\": {label}")],
        ),
        (
            json!({"name": "a/b%"}),
            NameRule::PathSegment,
            vec![
                "metadata.name: Invalid value: \"a/b%\": may not contain '/'".to_owned(),
                "metadata.name: Invalid value: \"a/b%\": may not contain '%'".to_owned(),
            ],
        ),
    ];
    for (metadata, rule, expected) in rows {
        assert_eq!(texts(&validate_object_meta(&object(metadata), false, rule)), expected);
    }
}

#[test]
fn only_namespaced_objects_have_a_namespace() {
    let label = names::dns1123_label("_").remove(0);
    let rows = [
        (json!({"name": "a", "namespace": "b"}), true, None),
        (json!({"name": "a"}), false, None),
        (json!({"name": "a"}), true, Some("Required value".to_owned())),
        (json!({"name": "a", "namespace": "_"}), true, Some(format!("Invalid value: \"_\": {label}"))),
        (
            json!({"name": "a", "namespace": "b"}),
            false,
            Some("Forbidden: not allowed on this type".to_owned()),
        ),
    ];
    for (metadata, namespaced, expected) in rows {
        let found = texts(&validate_object_meta(&object(metadata), namespaced, NameRule::Dns1123Subdomain));
        assert_eq!(found, expected.map(|text| format!("metadata.namespace: {text}")).as_slice());
    }
}

#[test]
fn labels_annotations_and_finalizers_are_validated() {
    let name = names::qualified_name("-").remove(0);
    let value = names::label_value("-").remove(0);
    let both = "finalizer orphan and foregroundDeletion cannot be both set";
    let rows = [
        (
            json!({"generation": -1}),
            vec!["generation: Invalid value: -1: must be greater than or equal to 0".to_owned()],
        ),
        (
            json!({"labels": {"/": "-"}}),
            vec![
                "labels: Invalid value: \"/\": prefix part must be non-empty".to_owned(),
                "labels: Invalid value: \"/\": name part must be non-empty".to_owned(),
                format!("labels: Invalid value: \"/\": {name}"),
                format!("labels: Invalid value: \"-\": {value}"),
            ],
        ),
        (json!({"annotations": {"A B": "x"}}), vec![format!("annotations: Invalid value: \"A B\": {name}")]),
        (
            json!({"annotations": {"a": "x".repeat(256 << 10)}}),
            vec!["annotations: Too long: may not be more than 262144 bytes".to_owned()],
        ),
        (json!({"annotations": {"a": "x".repeat((256 << 10) - 1)}}), vec![]),
        (json!({"finalizers": ["-"]}), vec![format!("finalizers: Invalid value: \"-\": {name}")]),
        (
            json!({"finalizers": ["orphan", "foregroundDeletion"]}),
            vec![format!("finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: {both}")],
        ),
    ];
    for (extra, expected) in rows {
        let expected: Vec<String> = expected.iter().map(|text| format!("metadata.{text}")).collect();
        assert_eq!(faults(extra), expected);
    }
}

#[test]
fn finalizers_of_built_in_types_are_known_or_qualified() {
    let check =
        |finalizers: Value| texts(&validate_standard_finalizers(&object(json!({"finalizers": finalizers}))));
    assert_eq!(check(json!(["kubernetes", "orphan", "foregroundDeletion", "a/b"])), Vec::<String>::new());
    assert_eq!(
        check(json!(["a/b", "x"])),
        ["metadata.finalizers[1]: Invalid value: \"x\": \
          name is neither a standard finalizer name nor is it fully qualified"]
    );
}

#[test]
fn owner_references_are_complete_and_one_is_the_controller() {
    let path = "metadata.ownerReferences";
    assert_eq!(
        faults(json!({"ownerReferences": [{}]})),
        [
            format!("{path}.apiVersion: Invalid value: \"\": version must not be empty"),
            format!("{path}.kind: Invalid value: \"\": must not be empty"),
            format!("{path}.name: Invalid value: \"\": must not be empty"),
            format!("{path}.uid: Invalid value: \"\": must not be empty"),
        ]
    );
    for version in ["a/b/c", "apps/", "/"] {
        let reference = json!({"apiVersion": version, "kind": "K", "name": "n", "uid": "u"});
        let expected = format!("{path}.apiVersion: Invalid value: \"{version}\": version must not be empty");
        assert_eq!(faults(json!({"ownerReferences": [reference]})), [expected]);
    }
    let event = r#"{"apiVersion":"v1","kind":"Event","name":"n","uid":"u","controller":true,"blockOwnerDeletion":true}"#;
    assert_eq!(
        faults(json!({"ownerReferences": [serde_json::from_str::<Value>(event).unwrap()]})),
        [format!("{path}: Invalid value: {event}: /v1, Kind=Event is disallowed from being an owner")]
    );
    let two = r#"[{"apiVersion":"v1","kind":"A","name":"n","uid":"u","controller":true},{"apiVersion":"v1","kind":"B","name":"m","uid":"v","controller":true,"blockOwnerDeletion":false}]"#;
    assert_eq!(
        faults(json!({"ownerReferences": serde_json::from_str::<Value>(two).unwrap()})),
        [format!(
            "{path}: Invalid value: {two}: Only one reference can have Controller set to true. \
             Found \"true\" in references for A/n and B/m"
        )]
    );
}

#[test]
fn immutable_metadata_cannot_change() {
    let old = json!({
        "name": "a", "namespace": "b", "uid": "u", "generation": 2, "finalizers": ["x/a"],
        "creationTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0,
        "deletionTimestamp": "2026-01-02T00:00:00Z",
    });
    let rows = [
        (json!({}), vec![]),
        (json!({"finalizers": [], "labels": {"-": "-"}, "resourceVersion": "9", "generation": 3}), vec![]),
        (json!({"name": "c"}), vec!["name: Invalid value: \"c\": field is immutable"]),
        (json!({"namespace": null}), vec!["namespace: Invalid value: \"\": field is immutable"]),
        (json!({"uid": "x"}), vec!["uid: Invalid value: \"x\": field is immutable"]),
        (json!({"generation": 1}), vec!["generation: Invalid value: 1: must not be decremented"]),
        (
            json!({"creationTimestamp": null}),
            vec!["creationTimestamp: Invalid value: null: field is immutable"],
        ),
        (
            json!({"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5}),
            vec![
                "deletionTimestamp: Invalid value: \"2020-01-01T00:00:00Z\": field is immutable",
                "deletionGracePeriodSeconds: Invalid value: 5: field is immutable",
            ],
        ),
        (
            json!({"finalizers": ["x/c", "x/a", "x/b"]}),
            vec![
                "finalizers: Forbidden: no new finalizers can be added if the object is being deleted, \
                 found new finalizers []string{\"x/b\", \"x/c\"}",
            ],
        ),
    ];
    for (change, expected) in rows {
        let mut new = old.clone();
        crate::patch::merge::apply(&mut new, &change).unwrap();
        let expected: Vec<String> = expected.iter().map(|text| format!("metadata.{text}")).collect();
        assert_eq!(texts(&validate_object_meta_update(&object(new), &object(old.clone()))), expected);
    }
}

#[test]
fn finalizers_cannot_be_added_during_deletion() {
    let (new, old) = (object(json!({"finalizers": ["x/a"]})), object(json!({})));
    assert_eq!(validate_object_meta_update(&new, &old), vec![]);
}

fn odd_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(1.5)),
        Just(json!("text")),
        Just(json!(["a", 1, null, {"controller": true}])),
        Just(json!({"a": 1, "b": null, "c": {}})),
        Just(json!([{"apiVersion": 1, "controller": "x"}, [], {"controller": true}])),
    ];
    leaf.boxed()
}

proptest! {
    #[test]
    fn values_of_the_wrong_type_are_ignored(values in prop::collection::vec(odd_value(), 12), whole in odd_value()) {
        let keys = ["name", "namespace", "generateName", "uid", "labels", "annotations", "finalizers",
            "ownerReferences", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
        let odd = object(keys.iter().map(|key| (*key).to_owned()).zip(values).collect());
        for object in [odd, object(whole), Map::new()] {
            let _ = validate_object_meta(&object, true, NameRule::Dns1123Label);
            let _ = validate_standard_finalizers(&object);
            prop_assert_eq!(validate_object_meta_update(&object, &object), vec![]);
        }
    }
}
