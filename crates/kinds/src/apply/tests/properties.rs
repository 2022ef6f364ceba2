//! Properties of all sets and all configurations.

use proptest::prelude::*;

use super::*;

fn element() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]".prop_map(|name| format!("f:{name}")),
        (0..12i64).prop_map(|value| format!("v:{value}")),
        "[a-b]".prop_map(|name| format!("k:{{\"name\":\"{name}\"}}")),
        (0..3i64).prop_map(|index| format!("i:{index}")),
    ]
}

/// The JSON of a set.
fn fields() -> impl Strategy<Value = Value> {
    let leaf = Just(json!({}));
    let tree = leaf.prop_recursive(3, 24, 4, |inner| {
        (proptest::collection::btree_map(element(), inner, 0..4), any::<bool>()).prop_map(
            |(children, member)| {
                let mut object: Object = children.into_iter().collect();
                if member && !object.is_empty() {
                    object.insert(".".to_owned(), json!({}));
                }
                Value::Object(object)
            },
        )
    });
    tree.prop_map(|mut value| {
        value.as_object_mut().map(|object| object.remove("."));
        value
    })
}

/// The data, labels and finalizers of a configuration.
fn config(keys: &'static str) -> impl Strategy<Value = Value> {
    let map = || proptest::collection::btree_map(keys, "[0-3]", 0..4);
    (map(), map(), proptest::collection::btree_set(keys, 0..3)).prop_map(|(data, labels, finalizers)| {
        // Kubernetes drops empty values, so each apply would add them again.
        let mut config = json!({"metadata": {}});
        if !labels.is_empty() {
            config["metadata"]["labels"] = json!(labels);
        }
        if !finalizers.is_empty() {
            config["metadata"]["finalizers"] = json!(finalizers);
        }
        if !data.is_empty() {
            config["data"] = json!(data);
        }
        config
    })
}

fn path_set(set: &FieldSet<'_>) -> std::collections::BTreeSet<String> {
    set.paths().iter().map(|path| path_text(path)).collect()
}

proptest! {
    #[test]
    fn sets_survive_a_json_round_trip(value in fields()) {
        let set = FieldSet::decode(&value).unwrap();
        let mut json = String::new();
        set.encode(&mut json);
        let read: Value = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&FieldSet::decode(&read).unwrap(), &set);
        prop_assert_eq!(read, value);
    }

    #[test]
    fn sets_obey_the_laws_of_sets(a in fields(), b in fields()) {
        let (x, y) = (FieldSet::decode(&a).unwrap(), FieldSet::decode(&b).unwrap());
        let (p, q) = (path_set(&x), path_set(&y));
        let set = |paths: std::collections::BTreeSet<&String>| paths.into_iter().cloned().collect::<std::collections::BTreeSet<String>>();
        prop_assert_eq!(path_set(&x.clone().union(y.clone())), set(p.union(&q).collect()));
        prop_assert_eq!(path_set(&x.clone().intersection(&y)), set(p.intersection(&q).collect()));
        prop_assert_eq!(path_set(&x.clone().difference(&y)), set(p.difference(&q).collect()));
        prop_assert_eq!(x.clone().union(y.clone()), y.clone().union(x.clone()));
        prop_assert_eq!(x.clone().difference(&y).union(x.clone().intersection(&y)), x.clone());
        prop_assert!(x.clone().without(&y).difference(&x).is_empty());
    }

    #[test]
    fn applying_a_configuration_twice_changes_nothing(first in config("[a-c]"), second in config("[a-c]")) {
        let mut map = Live::new("v1", "ConfigMap");
        map.update("u", NOW, json!({"metadata": {"name": "m", "uid": "u"}, "data": {"a": "0", "z": "0"}}));
        map.try_apply("a", NOW, first, true).unwrap();
        map.try_apply("b", NOW, second.clone(), true).unwrap();
        let before = map.object.clone();
        prop_assert_eq!(map.try_apply("b", LATER, second, false), Ok(false));
        prop_assert_eq!(&map.object, &before);
    }

    #[test]
    fn the_order_of_managers_with_different_fields_does_not_matter(first in config("[a-c]"), second in config("[d-f]"), third in config("[a-c]")) {
        let run = |order: [(&str, &Value); 3]| {
            let mut map = Live::new("v1", "ConfigMap");
            map.update("u", NOW, json!({"metadata": {"name": "m", "uid": "u"}}));
            for (manager, config) in order {
                map.apply(manager, config.clone());
            }
            let mut finalizers = map.get("/metadata/finalizers").as_array().cloned().unwrap_or_default();
            finalizers.sort_by_key(Value::to_string);
            (map.get("/data"), map.get("/metadata/labels"), finalizers, map.owned("a"), map.owned("b"))
        };
        let one = run([("a", &first), ("b", &second), ("a", &third)]);
        prop_assert_eq!(&one, &run([("a", &first), ("a", &third), ("b", &second)]));
        prop_assert_eq!(&one, &run([("b", &second), ("a", &first), ("a", &third)]));
    }
}
