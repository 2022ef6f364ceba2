//! Replays the bodies in `recorded` and compares the results with the responses of kube-apiserver 1.35.4.
//!
//! A case creates an object (`create`), updates one (`old`, `update`) or writes its status (`old`, `part`); the
//! response is an `object`, its `generation` and `warnings`, or `errors`. Addresses and ports that the server chose are
//! replaced by those of an allocator whose random numbers are all zero.

use serde_json::{Value, json};

use super::*;

fn replay(kind_name: &str, recorded: &str) {
    let cases: Vec<Value> = serde_json::from_str(recorded).unwrap();
    let rules = kind(kind_name);
    for case in cases {
        let answer = answer(rules, &case);
        match (answer, case.get("errors")) {
            (Err(errors), Some(expected)) => {
                assert_eq!(first_lines(json!(errors)), first_lines(expected.clone()), "{case}")
            }
            (Err(errors), None) => panic!("refused: {errors:#?}\n{case}"),
            (Ok((object, _)), Some(_)) => panic!("taken: {object:?}\n{case}"),
            (Ok((object, warnings)), None) => {
                let mut object = Value::Object(object);
                if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                    metadata.retain(|field, _| field != "name" && field != "generation");
                }
                assert_eq!(object, without_protection(case["object"].clone()), "{case}");
                let expected = case.get("warnings").cloned().unwrap_or_else(|| json!([]));
                assert_eq!(json!(warnings), expected, "{case}");
                if case.get("create").is_some() {
                    assert_eq!(rules.counts_generations, case["generation"] == 1, "{case}");
                    assert_eq!(row(rules, object), case["cells"], "{case}");
                }
                if let Some(columns) = case.get("columns") {
                    assert_eq!(headings(rules), *columns);
                }
            }
        }
    }
}

/// Protection finalizers come from an admission plugin, not from the rules of a kind.
fn without_protection(mut object: Value) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        let is_protection =
            |finalizer: &Value| finalizer.as_str().is_some_and(|text| text.ends_with("-protection"));
        metadata.retain(|field, value| {
            field != "finalizers" || !value.as_array().is_some_and(|all| all.iter().all(is_protection))
        });
    }
    object
}

/// Name, type, format and priority of each column.
fn headings(rules: &KindRules) -> Value {
    let columns = rules.columns().iter();
    columns.map(|column| json!([column.name, column.kind, column.format, column.priority])).collect()
}

/// The row of an object created just now.
fn row(rules: &KindRules, mut object: Value) -> Value {
    object["metadata"]["name"] = "network".into();
    object["metadata"]["creationTimestamp"] = "2026-11-16T00:20:00Z".into();
    let now = "2026-11-16T00:20:00.5Z".parse().unwrap();
    rules.cells(object.as_object().unwrap(), now).into()
}

/// Keeps the first line of errors: the others are a Go-specific diff.
fn first_lines(mut errors: Value) -> Value {
    for error in errors.as_array_mut().into_iter().flatten() {
        *error = error.as_str().unwrap_or_default().lines().next().into();
    }
    errors
}

type Answer = Result<(Object, Vec<String>), Vec<String>>;

fn answer(rules: &KindRules, case: &Value) -> Answer {
    let Some(old) = case.get("old") else { return written(rules, case["create"].clone(), None, "") };
    let (mut old_object, _) = written(rules, old.clone(), None, "").expect("the old object was taken");
    if let Some(status) = old.get("status") {
        old_object.insert("status".to_owned(), status.clone());
        (rules.default)(&mut old_object);
    }
    match case.get("update") {
        Some(new) => written(rules, new.clone(), Some(&old_object), ""),
        None => written(rules, case["part"].clone(), Some(&old_object), "status"),
    }
}

fn written(rules: &KindRules, mut body: Value, old: Option<&Object>, part: &str) -> Answer {
    body["metadata"]["name"] = "network".into();
    let mut object = decode(rules, body);
    if let Some(allocate) = rules.allocate.filter(|_| part.is_empty()) {
        let mut taken = old.map(rules.claims).unwrap_or_default();
        taken.insert(Claim::ClusterIp(Ranges::default().first_address()));
        let taken = taken.into_iter().map(|claim| (claim, String::new())).collect();
        let mut zero = || 0;
        allocate(&mut object, old, &mut Pool::new(Ranges::default(), taken, &mut zero)).map_err(
            |refusal| match refusal {
                Refusal::Invalid(errors) => errors.iter().map(ToString::to_string).collect(),
                Refusal::Forbidden(message) => vec![message],
                Refusal::Internal(message) => vec![format!("500 Internal error occurred: {message}")],
            },
        )?;
    }
    let errors = match (old, rules.subresource(part)) {
        (None, _) => {
            (rules.prepare_create)(&mut object);
            (rules.validate_create)(&object)
        }
        (Some(old), None) => {
            (rules.prepare_update)(&mut object, old);
            (rules.validate_update)(&object, old)
        }
        (Some(old), Some(part)) => {
            (part.prepare_update)(&mut object, old);
            (part.validate_update)(&object, old)
        }
    };
    if !errors.is_empty() {
        return Err(errors.iter().map(ToString::to_string).collect());
    }
    let mut warnings: Vec<String> = rules.deprecated.map(str::to_owned).into_iter().collect();
    if part.is_empty() {
        warnings.extend((rules.warnings)(&object, old));
    }
    (rules.canonicalize)(&mut object);
    Ok((object, warnings))
}

macro_rules! recorded {
    ($($test:ident: $kind:literal, $file:literal;)*) => {
        $(#[test]
        fn $test() {
            replay($kind, include_str!(concat!($file, ".json")));
        })*
    };
}

recorded! {
    csi_drivers: "CSIDriver", "csi_driver";
    csi_nodes: "CSINode", "csi_node";
    csi_storage_capacities: "CSIStorageCapacity", "csi_storage_capacity";
    endpoint_slices: "EndpointSlice", "endpoint_slice";
    endpoints: "Endpoints", "endpoints";
    ingress_classes: "IngressClass", "ingress_class";
    ingresses: "Ingress", "ingress";
    ip_addresses: "IPAddress", "ip_address";
    nodes: "Node", "node";
    persistent_volume_claims: "PersistentVolumeClaim", "persistent_volume_claim";
    persistent_volumes: "PersistentVolume", "persistent_volume";
    network_policies: "NetworkPolicy", "network_policy";
    service_ranges: "ServiceCIDR", "service_cidr";
    services: "Service", "service";
    volume_attachments: "VolumeAttachment", "volume_attachment";
    volume_attributes_classes: "VolumeAttributesClass", "volume_attributes_class";
}
