//! The parsed table, and decoding compared with recorded responses of kube-apiserver 1.35.

use model::json::Ordered;
use serde_json::{Value, json};

use super::*;

fn kind(api_version: &str, kind: &str) -> TypeId {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    builtin().by_kind(group, version, kind).unwrap()
}

/// Decodes the body as its own kind.
fn read(mut body: Value) -> Result<(Value, Vec<String>), String> {
    let id = kind(body["apiVersion"].as_str().unwrap(), body["kind"].as_str().unwrap());
    let checked = check(builtin(), id, &mut body).map_err(|mismatch| mismatch.0)?;
    Ok((body, checked.unknown))
}

/// The body of a kind with these fields in addition to its type.
fn body(api_version: &str, kind: &str, mut fields: Value) -> Value {
    fields["apiVersion"] = api_version.into();
    fields["kind"] = kind.into();
    fields
}

#[test]
fn builtin_table_parses() {
    let config_map = builtin().get(kind("v1", "ConfigMap"));
    assert_eq!(config_map.full_name(), "io.k8s.api.core.v1.ConfigMap");
    assert_eq!(builtin().by_name("io.k8s.api.core.v1.ConfigMap"), Some(kind("v1", "ConfigMap")));
    assert_eq!(builtin().by_name("io.k8s.api.core.v1.Nothing"), None);
    assert_eq!(builtin().by_kind("", "v2", "ConfigMap"), None);
    assert!(matches!(config_map.field("binaryData").unwrap().shape, Shape::Map(_)));
    assert!(matches!(config_map.wire().get(4), Some(WireEntry::Field(_))));
    let names: Vec<&str> = config_map.fields().iter().map(|field| &*field.name).collect();
    assert_eq!(names, ["apiVersion", "binaryData", "data", "immutable", "kind", "metadata"]);
}

#[test]
fn every_kind_with_object_metadata_has_a_list() {
    for (api_version, name) in [("v1", "Secret"), ("coordination.k8s.io/v1", "Lease")] {
        let list = builtin().get(kind(api_version, &format!("{name}List")));
        assert_eq!(
            list.field("items").unwrap().shape,
            Shape::List(Box::new(Shape::Object(kind(api_version, name))))
        );
    }
    assert_eq!(builtin().by_kind("", "v1", "StatusList"), None);
}

#[test]
fn delete_options_exist_in_every_group() {
    let id = kind("v1", "DeleteOptions");
    assert_eq!(kind("apps/v1", "DeleteOptions"), id);
    assert_eq!(kind("example.com/v3alpha1", "DeleteOptions"), id);
}

#[test]
fn fields_keep_their_patch_directives() {
    let meta = builtin().get(builtin().by_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap());
    let owners = meta.field("ownerReferences").unwrap();
    assert_eq!(owners.list, Some(ListKind::Map(Box::new(["uid".into()]))));
    assert_eq!(owners.patch, Some(Patch { strategy: "merge".into(), key: Some("uid".into()) }));
    let finalizers = meta.field("finalizers").unwrap();
    assert_eq!(finalizers.list, Some(ListKind::Set));
    assert_eq!(finalizers.patch, Some(Patch { strategy: "merge".into(), key: None }));
    let owner =
        builtin().get(builtin().by_name("io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference").unwrap());
    assert!(owner.atomic);
    assert!(owner.field("uid").unwrap().required);
}

#[test]
fn embedded_structs_are_one_level_deeper_in_protobuf_only() {
    let schema = parse(
        "package core/v1 io.k8s.api.core.v1\nGet\n port intstr #2\nProbe\n +ProbeHandler #1\n \
         httpGet? Get #1.2\n period int32 #4\n",
    )
    .unwrap();
    let id = schema.by_name("io.k8s.api.core.v1.Probe").unwrap();
    let probe = schema.get(id);
    let Some(WireEntry::Embedded(inner)) = probe.wire().get(1) else { panic!("not embedded") };
    assert!(matches!(inner.get(2), Some(WireEntry::Field(_))));
    let mut value = json!({"httpGet": {"port": 1.5}});
    assert_eq!(
        check(&schema, id, &mut value).unwrap_err().0,
        "json: cannot unmarshal number 1.5 into Go struct field Get.ProbeHandler.httpGet.port of type int32"
    );
}

#[test]
fn a_bad_table_is_refused_with_its_line() {
    for (text, problem) in [
        (" name string", "line 1: no type to belong to"),
        ("T\n", "line 1: a type outside of any package"),
        ("package a b\nT\n name strin", "line 3: \"strin\" is not a shape"),
        ("package a b\nT\n name U", "line 3: a.U is referred to, but not there"),
        ("package a b\nT\nT\n", "line 3: T is there twice"),
        ("package a b\nT\n name string #x", "line 3: \"x\" is not a tag"),
        ("package a b\nT\n name string map(a", "line 3: \"map(a\" is not a kind of list"),
        ("package a b\nT\n name string #1.2", "line 3: no embedded struct has the tag [1]"),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), problem);
    }
}

#[test]
fn wrong_types_are_refused_in_the_words_of_kube_apiserver() {
    let cases = [
        (json!({"data": {"k": 1}}), "number into Go struct field ConfigMap.data of type string"),
        (json!({"data": {"k": {}}}), "object into Go struct field ConfigMap.data of type string"),
        (json!({"data": "x"}), "string into Go struct field ConfigMap.data of type map[string]string"),
        (json!({"data": 1.5}), "number into Go struct field ConfigMap.data of type map[string]string"),
        (json!({"immutable": "true"}), "string into Go struct field ConfigMap.immutable of type bool"),
        (json!({"binaryData": {"k": 1}}), "number into Go struct field ConfigMap.binaryData of type []uint8"),
        (
            json!({"binaryData": {"k": ["x"]}}),
            "string into Go struct field ConfigMap.binaryData of type uint8",
        ),
        (json!({"metadata": "x"}), "string into Go struct field ConfigMap.metadata of type v1.ObjectMeta"),
        (
            json!({"metadata": {"name": 1}}),
            "number into Go struct field ObjectMeta.metadata.name of type string",
        ),
        (
            json!({"metadata": {"generation": 1.0}}),
            "number 1.0 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            json!({"metadata": {"generation": 9_223_372_036_854_775_808_u64}}),
            "number 9223372036854775808 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            json!({"metadata": {"generation": true}}),
            "bool into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            json!({"metadata": {"finalizers": {}}}),
            "object into Go struct field ObjectMeta.metadata.finalizers of type []string",
        ),
        (
            json!({"metadata": {"finalizers": [1]}}),
            "number into Go struct field ObjectMeta.metadata.finalizers of type string",
        ),
        (
            json!({"metadata": {"ownerReferences": ["x"]}}),
            "string into Go struct field ObjectMeta.metadata.ownerReferences of type v1.OwnerReference",
        ),
        (
            json!({"metadata": {"ownerReferences": [{"uid": 1}]}}),
            "number into Go struct field OwnerReference.metadata.ownerReferences.uid of type types.UID",
        ),
        (
            json!({"metadata": {"creationTimestamp": 1}}),
            "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
    ];
    for (fields, expected) in cases {
        let answer = read(body("v1", "ConfigMap", fields)).unwrap_err();
        assert_eq!(answer, format!("json: cannot unmarshal {expected}"));
    }
}

#[test]
fn other_kinds_name_their_own_go_types() {
    let lease = "coordination.k8s.io/v1";
    let cases = [
        (
            body("v1", "Secret", json!({"type": 1})),
            "number into Go struct field Secret.type of type v1.SecretType",
        ),
        (
            body("v1", "Namespace", json!({"spec": {"finalizers": [1]}})),
            "number into Go struct field NamespaceSpec.spec.finalizers of type v1.FinalizerName",
        ),
        (
            body("v1", "Namespace", json!({"status": {"conditions": [{"lastTransitionTime": 1}]}})),
            "number into Go struct field NamespaceCondition.status.conditions.lastTransitionTime of type string",
        ),
        (
            body(lease, "Lease", json!({"spec": {"leaseDurationSeconds": 2_147_483_648_u64}})),
            "number 2147483648 into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32",
        ),
        (
            body(lease, "Lease", json!({"spec": {"leaseDurationSeconds": -2_147_483_649_i64}})),
            "number -2147483649 into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32",
        ),
        (
            body("v1", "Event", json!({"series": "x"})),
            "string into Go struct field Event.series of type v1.EventSeries",
        ),
        (
            body("apps/v1", "DeleteOptions", json!({"gracePeriodSeconds": "x"})),
            "string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(read(body).unwrap_err(), format!("json: cannot unmarshal {expected}"));
    }
}

#[test]
fn a_refused_body_names_its_version_and_kind() {
    let mut value = body("v1", "ConfigMap", json!({"data": {"k": "v", "l": 1}}));
    let mismatch = check(builtin(), kind("v1", "ConfigMap"), &mut value).unwrap_err();
    assert_eq!(
        mismatch.of_body("v1", "ConfigMap"),
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct \
         field ConfigMap.data of type string"
    );
    let mut value = json!([]);
    let mismatch = check(builtin(), kind("v1", "ConfigMap"), &mut value).unwrap_err();
    assert_eq!(mismatch.0, "json: cannot unmarshal array into Go value of type v1.ConfigMap");
}

#[test]
fn an_error_about_a_body_without_kind_quotes_its_beginning() {
    let long = [b'x'; 40];
    for (body, shown) in [
        (b"".as_slice(), "<empty>"),
        (b"{}", "{}"),
        (b"k8s\0", "6b387300"),
        (&long, "787878787878787878787878787878787878787878787878787878787878 ..."),
        (br#"{"apiVersion":1,"kind":"ConfigMap"}"#, r#"{"apiVersion":1,"kind":"Config ..."#),
    ] {
        let expected =
            format!("the object provided is unrecognized (must be of type ConfigMap): why ({shown})");
        assert_eq!(unrecognized("ConfigMap", "why", body), expected);
    }
}

#[test]
fn errors_of_bytes_and_times_have_no_field_path() {
    let answer = read(body("v1", "Secret", json!({"data": {"a": "aGVs bG8="}})));
    assert_eq!(answer.unwrap_err(), "illegal base64 data at input byte 4");
    let answer = read(body("v1", "ConfigMap", json!({"metadata": {"creationTimestamp": "x"}, "data": 1})));
    assert_eq!(
        answer.unwrap_err(),
        "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"",
        "a time that cannot be read outranks an earlier type error"
    );
}

#[test]
fn unknown_fields_are_dropped_and_reported_with_their_path() {
    let owner = json!({"apiVersion": "v1", "kind": "x", "name": "n", "uid": "u", "foo": 1});
    let (value, unknown) = read(body(
        "v1",
        "ConfigMap",
        json!({
            "metadata": {"name": "a", "zz": 1, "aa": {"b": 1}, "ownerReferences": [owner, owner]},
            "foo": 1, "Data": {"a": "b"}, "data": {"x.y": "1"}, "we\"ird": 1,
        }),
    ))
    .unwrap();
    assert_eq!(
        unknown,
        [
            "unknown field \"Data\"",
            "unknown field \"foo\"",
            "unknown field \"metadata.aa\"",
            "unknown field \"metadata.ownerReferences[0].foo\"",
            "unknown field \"metadata.ownerReferences[1].foo\"",
            "unknown field \"metadata.zz\"",
            "unknown field \"we\\\"ird\"",
        ]
    );
    let owner = json!({"apiVersion": "v1", "kind": "x", "name": "n", "uid": "u"});
    let metadata = json!({"name": "a", "ownerReferences": [owner, owner]});
    assert_eq!(value, body("v1", "ConfigMap", json!({"metadata": metadata, "data": {"x.y": "1"}})));
}

#[test]
fn only_a_hundred_unknown_fields_are_reported() {
    let mut fields = json!({"metadata": {}});
    for n in 0..150 {
        fields[format!("f{n}")] = 1.into();
    }
    let (value, unknown) = read(body("v1", "ConfigMap", fields)).unwrap();
    assert_eq!(unknown.len(), 100);
    assert_eq!(value, body("v1", "ConfigMap", json!({"metadata": {}})));
}

#[test]
fn empty_values_are_written_as_go_writes_them() {
    let storage = "storage.k8s.io/v1";
    let cases = [
        ("v1", "ConfigMap", json!({}), json!({"metadata": {}})),
        ("v1", "ConfigMap", json!({"metadata": null, "data": null}), json!({"metadata": {}})),
        (
            "v1",
            "ConfigMap",
            json!({"data": {}, "immutable": false}),
            json!({"immutable": false, "metadata": {}}),
        ),
        ("v1", "ConfigMap", json!({"data": {"k": null}}), json!({"data": {"k": ""}, "metadata": {}})),
        (
            "v1",
            "ConfigMap",
            json!({"binaryData": {"k": null}}),
            json!({"binaryData": {"k": ""}, "metadata": {}}),
        ),
        (
            "v1",
            "ConfigMap",
            json!({"binaryData": {"k": [1, 2]}}),
            json!({"binaryData": {"k": "AQI="}, "metadata": {}}),
        ),
        (
            "v1",
            "Namespace",
            json!({"metadata": {"labels": {}, "finalizers": [], "generateName": "", "deletionTimestamp": null,
                "deletionGracePeriodSeconds": 0}}),
            json!({"metadata": {"deletionGracePeriodSeconds": 0}, "spec": {}, "status": {}}),
        ),
        ("coordination.k8s.io/v1", "Lease", json!({"spec": null}), json!({"metadata": {}, "spec": {}})),
        (
            "coordination.k8s.io/v1",
            "Lease",
            json!({"spec": {"renewTime": "0001-01-01T00:00:00.000000Z", "leaseTransitions": 0}}),
            json!({"metadata": {}, "spec": {"renewTime": null, "leaseTransitions": 0}}),
        ),
        (
            "scheduling.k8s.io/v1",
            "PriorityClass",
            json!({"globalDefault": false, "description": "", "preemptionPolicy": ""}),
            json!({"metadata": {}, "value": 0, "preemptionPolicy": ""}),
        ),
        (
            storage,
            "StorageClass",
            json!({"parameters": {}, "mountOptions": [], "allowVolumeExpansion": false}),
            json!({"metadata": {}, "provisioner": "", "allowVolumeExpansion": false}),
        ),
        (
            storage,
            "StorageClass",
            json!({"allowedTopologies": [{"matchLabelExpressions": [{"key": "a", "values": []}, null]}]}),
            json!({"metadata": {}, "provisioner": "", "allowedTopologies":
                [{"matchLabelExpressions": [{"key": "a", "values": null}, {"key": "", "values": null}]}]}),
        ),
        (
            "v1",
            "ServiceAccount",
            json!({"secrets": [{}], "imagePullSecrets": [{"name": ""}]}),
            json!({"metadata": {}, "secrets": [{}], "imagePullSecrets": [{}]}),
        ),
    ];
    for (api_version, kind, given, written) in cases {
        let (value, _) = read(body(api_version, kind, given)).unwrap();
        assert_eq!(value, body(api_version, kind, written));
    }
}

#[test]
fn an_event_encodes_empty_structs_and_times() {
    let (value, _) =
        read(body("v1", "Event", json!({"series": {}, "related": {}, "count": 0, "message": ""}))).unwrap();
    let expected = json!({
        "metadata": {}, "involvedObject": {}, "source": {}, "related": {}, "series": {"lastObservedTime": null},
        "firstTimestamp": null, "lastTimestamp": null, "eventTime": null,
        "reportingComponent": "", "reportingInstance": "",
    });
    assert_eq!(value, body("v1", "Event", expected));
}

#[test]
fn checking_a_checked_object_changes_nothing() {
    let given = json!({
        "firstTimestamp": "2020-01-02T03:04:05+02:00", "metadata": {"name": "a", "labels": {"a": "b"}},
        "series": {"count": 3, "lastObservedTime": "2020-01-02T03:04:05.123456+02:00"}, "foo": 1,
    });
    let (once, _) = read(body("v1", "Event", given)).unwrap();
    assert_eq!(once["firstTimestamp"], "2020-01-02T01:04:05Z");
    assert_eq!(once["series"]["lastObservedTime"], "2020-01-02T01:04:05.123456Z");
    assert_eq!(read(once.clone()).unwrap(), (once, vec![]));
}

#[test]
fn strict_decoding_reports_in_text_order_and_skips_unknown_fields() {
    let rows: &[(&str, &str, &[&str])] = &[
        (
            "ConfigMap",
            r#"{"zeta":{"a":1,"a":2},"metadata":{"name":"a","odd":1,"name":"b"},"alpha":1,"data":{"k":"1","k":"2"}}"#,
            &[
                "unknown field \"zeta\"",
                "unknown field \"metadata.odd\"",
                "duplicate field \"metadata.name\"",
                "unknown field \"alpha\"",
                "duplicate field \"data.k\"",
            ],
        ),
        (
            "ConfigMap",
            r#"{"kind":"ConfigMap","kind":"ConfigMap","x":1,"x":2,"metadata":{"name":"a","y":1},"metadata":{"y":2}}"#,
            &[
                "duplicate field \"kind\"",
                "unknown field \"x\"",
                "unknown field \"metadata.y\"",
                "duplicate field \"metadata\"",
            ],
        ),
        (
            "Pod",
            r#"{"spec":{"containers":[{"name":"a","name":"b"},{"b":1,"a":1}]},"status":{"startTime":null}}"#,
            &[
                "duplicate field \"spec.containers[0].name\"",
                "unknown field \"spec.containers[1].b\"",
                "unknown field \"spec.containers[1].a\"",
            ],
        ),
    ];
    for (kind, text, expected) in rows {
        let of = builtin().by_kind("", "v1", kind).unwrap();
        let body = Ordered::parse(text.as_bytes()).unwrap();
        assert_eq!(strict::complaints(builtin(), of, &body), *expected, "{text}");
    }
}

#[test]
fn duplicate_fields_are_merged_as_in_go() {
    let rows = [
        (
            r#"{"metadata":{"labels":{"x":"1"}},"metadata":{"name":"c"}}"#,
            json!({"metadata": {"labels": {"x": "1"}, "name": "c"}}),
        ),
        (r#"{"data":{"a":"1","b":"1"},"data":{"b":"2"}}"#, json!({"data": {"a": "1", "b": "2"}})),
        (r#"{"data":{"a":"1"},"data":null}"#, json!({"data": null})),
        (r#"{"metadata":{"name":"a"},"metadata":null}"#, json!({"metadata": {"name": "a"}})),
        (r#"{"metadata":{"name":"a","name":null}}"#, json!({"metadata": {"name": "a"}})),
        (r#"{"immutable":true,"immutable":null}"#, json!({"immutable": null})),
        (
            r#"{"metadata":{"ownerReferences":[{"name":"a","uid":"1"},{"name":"b"}],"ownerReferences":[{"name":"c"}]}}"#,
            json!({"metadata": {"ownerReferences": [{"name": "c", "uid": "1"}]}}),
        ),
    ];
    let of = builtin().by_kind("", "v1", "ConfigMap").unwrap();
    for (text, expected) in rows {
        let body = Ordered::parse(text.as_bytes()).unwrap();
        assert_eq!(strict::merged(builtin(), of, body), expected, "{text}");
    }
}

#[test]
fn operations_of_json_patches_are_decoded_strictly() {
    let patch =
        r#"[{"op":"add","zz":1,"op":"add","aa":1,"path":"/a","value":{"b":1,"b":2,"x":[{"y":1,"y":1}]}},1]"#;
    assert_eq!(
        strict::patch_complaints(&Ordered::parse(patch.as_bytes()).unwrap()),
        [
            "unknown field \"[0].zz\"",
            "duplicate field \"[0].op\"",
            "unknown field \"[0].aa\"",
            "duplicate field \"[0].value.b\"",
            "duplicate field \"[0].value.x[0].y\"",
        ]
    );
}
