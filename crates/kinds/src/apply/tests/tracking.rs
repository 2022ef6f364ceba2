//! Writes other than applies.

use super::*;

#[test]
fn a_new_object_is_owned_by_its_creator() {
    let mut pod = Live::new("v1", "Pod");
    pod.update("a", NOW, json!({
        "metadata": {"name": "p", "generateName": "x", "labels": {"l": "1"}, "finalizers": ["a/b"]},
        "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "protocol": "TCP"}]}], "nodeSelector": {"n": "1"}},
    }));
    let fields = json!({
        "f:metadata": {"f:finalizers": {".": {}, "v:\"a/b\"": {}}, "f:generateName": {}, "f:labels": {".": {}, "f:l": {}}},
        "f:spec": {
            ".": {},
            "f:containers": {".": {}, "k:{\"name\":\"c\"}": {
                ".": {}, "f:image": {}, "f:name": {}, "f:resources": {},
                "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}}},
            }},
            "f:nodeSelector": {},
        },
        "f:status": {},
    });
    assert_eq!(pod.owned("a"), fields);
}

#[test]
fn a_changed_field_moves_to_its_writer_and_an_empty_update_adds_no_manager() {
    let mut map = Live::new("v1", "ConfigMap");
    map.update("a", NOW, json!({"metadata": {"name": "m", "uid": "u"}, "data": {"x": "1", "y": "1"}}));
    let before = map.object.clone();
    map.update("b", LATER, json!({"metadata": {"name": "m", "uid": "u"}, "data": {"x": "1", "y": "1"}}));
    assert_eq!(map.object, before);
    map.update("b", LATER, json!({"metadata": {"name": "m", "uid": "u"}, "data": {"x": "2", "z": "1"}}));
    assert_eq!(map.owned("a"), json!({"f:data": {}}));
    assert_eq!(map.owned("b"), json!({"f:data": {"f:x": {}, "f:z": {}}}));
    map.update("a", LATER, json!({"metadata": {"name": "m", "uid": "u"}}));
    assert_eq!(map.get("/metadata/managedFields"), Value::Null);
}

#[test]
fn the_oldest_of_many_updates_are_merged() {
    let mut map = Live::new("v1", "ConfigMap");
    for at in 0..13 {
        let data: Object = (0..=at).map(|n| (format!("k{n}"), "v".into())).collect();
        let time = format!("2026-01-01T00:00:{at:02}Z");
        map.update(&format!("m{at:02}"), &time, json!({"metadata": {"name": "m", "uid": "u"}, "data": data}));
    }
    let entries = map.get("/metadata/managedFields");
    let names: Vec<&str> =
        entries.as_array().unwrap().iter().map(|entry| entry["manager"].as_str().unwrap()).collect();
    assert_eq!(names[..2], ["ancient-changes", "m04"]);
    assert_eq!(names.len(), 10);
    assert_eq!(entries[0]["time"], "2026-01-01T00:00:03Z");
    assert_eq!(
        map.owned("ancient-changes"),
        json!({"f:data": {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}, "f:k3": {}}})
    );
}

#[test]
fn managers_can_be_reset_and_invalid_ones_are_ignored() {
    let object = |managed: Value| json!({"metadata": {"name": "m", "uid": "u", "managedFields": managed}, "data": {"x": "1"}});
    let mut map = Live::new("v1", "ConfigMap");
    map.update("a", NOW, object(Value::Null));
    map.update("b", NOW, object(json!([{"manager": "evil", "operation": "Steal", "apiVersion": "v1"}])));
    assert_eq!(map.owned("a"), json!({"f:data": {".": {}, "f:x": {}}}));
    let entry = json!({"manager": "c", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:x": {}}}});
    map.update("b", NOW, object(json!([entry])));
    assert_eq!((map.owned("a"), map.owned("c")), (Value::Null, json!({"f:data": {"f:x": {}}})));
    map.update("b", NOW, object(json!([{}])));
    assert_eq!(map.get("/metadata/managedFields"), Value::Null);
    map.update("b", NOW, json!({"metadata": {"name": "m", "uid": "u"}, "data": {"x": "3"}}));
    assert_eq!(map.get("/metadata/managedFields"), Value::Null);
}

#[test]
fn a_write_does_not_own_fields_that_it_cannot_change() {
    let kind = KindVersions::new("Deployment");
    let reset = Reset::of_kind("apps", "Deployment", true, "status");
    let context = WriteContext {
        versions: &kind,
        api_version: "apps/v1",
        subresource: "status",
        reset,
        manager: "k",
        now: NOW,
    };
    let new = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}, "spec": {"paused": true}, "status": {"replicas": 1}});
    let tracked = track(&context, None, new.as_object().unwrap());
    let entry: Value = serde_json::from_str(&tracked.json.unwrap()).unwrap();
    assert_eq!(
        entry[0]["fieldsV1"],
        json!({"f:metadata": {"f:annotations": {".": {}, "f:a": {}}}, "f:status": {".": {}, "f:replicas": {}}})
    );
    assert_eq!(entry[0]["subresource"], "status");
}

#[test]
fn manager_names_come_from_the_client() {
    assert_eq!(manager_name("given", "curl/1"), "given");
    assert_eq!(manager_name("", "kubectl/v1.35.4 (linux/amd64)"), "kubectl");
    assert_eq!(manager_name("", "a\u{7}b\tc"), "abc");
    assert_eq!(manager_name("", "/x"), "unknown");
    assert_eq!(manager_name("", &"ä".repeat(100)).len(), 128);
}

#[test]
fn managers_of_another_version_lose_fields_that_change_there() {
    let mut scaler = Live::new("autoscaling/v2", "HorizontalPodAutoscaler");
    let spec = |max: i64| json!({"metadata": {"name": "h", "uid": "u"}, "spec": {"maxReplicas": max, "scaleTargetRef": {"kind": "D", "name": "d"}}});
    scaler.update("a", NOW, spec(3));
    scaler.api_version = "autoscaling/v1";
    let mut new = scaler.object.clone().unwrap();
    new["spec"]["maxReplicas"] = 4.into();
    let tracked = track(&scaler.context("b", LATER), scaler.object.as_ref(), &new);
    scaler.store(new, &tracked);
    assert_eq!(scaler.owned("b"), json!({"f:spec": {"f:maxReplicas": {}}}));
    assert_eq!(scaler.owned("a")["f:spec"].get("f:maxReplicas"), None);
}
