//! Applied configurations.

use super::*;

#[test]
fn a_dropped_field_is_removed_unless_another_manager_owns_it() {
    let mut map = Live::new("v1", "ConfigMap");
    map.apply("a", json!({"data": {"x": "1", "y": "1"}}));
    map.apply("b", json!({"data": {"y": "1"}}));
    map.apply("a", json!({"data": {"z": "1"}}));
    assert_eq!(map.get("/data"), json!({"y": "1", "z": "1"}));
    assert_eq!(map.owned("a"), json!({"f:data": {"f:z": {}}}));
    map.apply("b", json!({}));
    assert_eq!((map.get("/data"), map.owned("b")), (json!({"z": "1"}), Value::Null));
}

#[test]
fn conflicts_name_the_managers_and_can_be_forced() {
    let mut map = Live::new("v1", "ConfigMap");
    map.update("u", NOW, json!({"metadata": {"name": "m", "uid": "u"}, "data": {"x": "1", "y": "1"}}));
    let one = map.try_apply("a", NOW, json!({"data": {"x": "2"}}), false);
    assert_eq!(refusal(one), r#"Apply failed with 1 conflict: conflict with "u" using v1: .data.x"#);
    map.apply("b", json!({"data": {"y": "1"}}));
    let many = map.try_apply("a", NOW, json!({"data": {"x": "2", "y": "2"}}), false);
    let words = "Apply failed with 3 conflicts: conflicts with \"b\":\n- .data.y\nconflicts with \"u\" using v1:\n- .data.x\n- .data.y";
    assert_eq!(refusal(many), words);
    assert_eq!(map.try_apply("a", NOW, json!({"data": {"x": "2", "y": "2"}}), true), Ok(true));
    assert_eq!(map.owned("u"), json!({"f:data": {}}));
    assert_eq!((map.owned("a"), map.owned("b")), (json!({"f:data": {"f:x": {}, "f:y": {}}}), Value::Null));
}

#[test]
fn items_of_lists_are_merged_by_key_and_keep_their_order() {
    let mut service = Live::new("v1", "Service");
    let ports = |ports: Value| json!({"spec": {"ports": ports}});
    service.apply("a", ports(json!([{"port": 80, "name": "a"}, {"port": 81, "name": "b"}])));
    assert_eq!(
        service.owned("a")["f:spec"]["f:ports"]["k:{\"port\":80,\"protocol\":\"TCP\"}"],
        json!({".": {}, "f:name": {}, "f:port": {}})
    );
    service
        .apply("b", ports(json!([{"port": 82, "name": "c"}, {"port": 81, "protocol": "TCP", "name": "b"}])));
    let names = |service: &Live| -> Vec<Value> {
        service.get("/spec/ports").as_array().unwrap().iter().map(|port| port["name"].clone()).collect()
    };
    assert_eq!(names(&service), ["a", "c", "b"]);
    service.apply("a", ports(json!([{"port": 81, "name": "b"}])));
    assert_eq!(names(&service), ["c", "b"]);
}

#[test]
fn sets_are_merged_by_value_and_atomic_parts_as_a_whole() {
    let mut pod = Live::new("v1", "Pod");
    pod.apply("a", json!({"metadata": {"finalizers": ["x/a", "x/b"]}, "spec": {"nodeSelector": {"n": "1"}}}));
    pod.apply("b", json!({"metadata": {"finalizers": ["x/c", "x/a"]}}));
    assert_eq!(pod.get("/metadata/finalizers"), json!(["x/c", "x/a", "x/b"]));
    pod.apply("a", json!({"metadata": {"finalizers": ["x/b"]}, "spec": {"nodeSelector": {"n": "1"}}}));
    assert_eq!(pod.get("/metadata/finalizers"), json!(["x/c", "x/a", "x/b"]));
    let other = pod.try_apply("b", NOW, json!({"spec": {"nodeSelector": {"m": "1"}}}), false);
    assert_eq!(refusal(other), r#"Apply failed with 1 conflict: conflict with "a": .spec.nodeSelector"#);
}

#[test]
fn a_configuration_of_the_wrong_type_is_refused() {
    let cases = [
        (json!({"dat": {}}), ".dat: field not declared in schema"),
        (json!({"data": {"a": 1}}), ".data.a: expected string, got &value.valueUnstructured{Value:1}"),
        (json!({"data": "x"}), ".data: expected map, got &{x}"),
        (json!({"immutable": "x"}), ".immutable: expected boolean, got &{x}"),
        (
            json!({"metadata": {"generation": "x"}}),
            ".metadata.generation: expected numeric (int or float), got string",
        ),
        (
            json!({"metadata": {"finalizers": ["a", "a"]}}),
            ".metadata.finalizers: duplicate entries for key [=\"a\"]",
        ),
        (
            json!({"metadata": {"finalizers": [null]}}),
            ".metadata.finalizers: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            json!({"metadata": {"ownerReferences": [null]}}),
            ".metadata.ownerReferences: element 0: associative list with keys may not have a null element",
        ),
    ];
    for (config, problem) in cases {
        let mut map = Live::new("v1", "ConfigMap");
        let answer = refusal(map.try_apply("a", NOW, config, false));
        assert_eq!(
            answer,
            format!("failed to create typed patch object (/; /v1, Kind=ConfigMap): {problem}")
        );
    }
    let mut map = Live::new("v1", "ConfigMap");
    let answer = map.try_apply("a", NOW, json!({"metadata": {"managedFields": []}}), false);
    assert_eq!(answer, Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned())));
}

#[test]
fn fields_without_managers_belong_to_before_first_apply() {
    let mut map = Live::new("v1", "ConfigMap");
    let object = json!({"metadata": {"name": "m", "uid": "u"}, "data": {"x": "1"}});
    map.object = object.as_object().cloned();
    let answer = map.try_apply("a", NOW, json!({"data": {"x": "2"}}), false);
    assert_eq!(
        refusal(answer),
        r#"Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.x"#
    );
    map.apply("a", json!({"data": {"x": "1"}}));
    assert_eq!(map.owned("before-first-apply"), json!({"f:data": {".": {}, "f:x": {}}}));
}

#[test]
fn kubectl_takes_over_fields_of_client_side_apply() {
    const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let mut map = Live::new("v1", "ConfigMap");
    let last = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"x": "1", "y": "1"}});
    let annotations = json!({ANNOTATION: last.to_string()});
    map.update("kubectl-client-side-apply", NOW, json!({"metadata": {"name": "m", "uid": "u", "annotations": annotations}, "data": {"x": "1", "y": "1"}}));
    map.update("other", NOW, json!({"metadata": {"name": "m", "uid": "u", "annotations": annotations}, "data": {"x": "1", "y": "2"}}));
    let config = |x: &str, y: &str| json!({"metadata": {"name": "m"}, "data": {"x": x, "y": y}});
    let answer = map.try_apply("kubectl", NOW, config("<2>", "3"), false);
    assert_eq!(refusal(answer), r#"Apply failed with 1 conflict: conflict with "other" using v1: .data.y"#);
    map.apply("kubectl", config("<2>", "2"));
    let text = "{\"apiVersion\":\"v1\",\"data\":{\"x\":\"\\u003c2\\u003e\",\"y\":\"2\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\"}}\n";
    assert_eq!(map.get("/metadata/annotations")[ANNOTATION], text);
}

#[test]
fn a_scale_has_the_managers_of_the_replicas() {
    let replicas = vec![("apps/v1", Some(vec!["spec", "replicas"]))];
    let scale = ScaleManagers { api_version: "apps/v1", replicas };
    let entry = |name: &str, operation: &str, version: &str, fields: Value| json!({"manager": name, "operation": operation, "apiVersion": version, "fieldsType": "FieldsV1", "fieldsV1": fields, "time": NOW});
    let both = json!({"f:spec": {"f:replicas": {}, "f:paused": {}}});
    let parent = json!([entry("a", "Apply", "apps/v1", both.clone()), entry("u", "Update", "apps/v1", both)]);
    let shown = scale.of_scale(Some(&parent)).unwrap();
    let only = json!({"f:spec": {"f:replicas": {}}});
    assert_eq!(
        shown,
        json!([
            entry("a", "Apply", "autoscaling/v1", only.clone()),
            entry("u", "Update", "autoscaling/v1", only.clone())
        ])
    );
    let after = json!([
        entry("a", "Apply", "autoscaling/v1", only.clone()),
        entry("s", "Update", "autoscaling/v1", only)
    ]);
    let parent: Value =
        serde_json::from_str(&scale.of_object(Some(&parent), Some(&after)).json.unwrap()).unwrap();
    let names: Vec<(&Value, &Value)> =
        parent.as_array().unwrap().iter().map(|entry| (&entry["manager"], &entry["fieldsV1"])).collect();
    let expected = [
        ("a", json!({"f:spec": {"f:paused": {}, "f:replicas": {}}})),
        ("s", json!({"f:spec": {"f:replicas": {}}})),
        ("u", json!({"f:spec": {"f:paused": {}}})),
    ];
    for ((name, fields), (expected, owned)) in names.into_iter().zip(expected) {
        assert_eq!((name, fields), (&json!(expected), &owned));
    }
}
