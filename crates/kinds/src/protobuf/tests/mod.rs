//! Bytes recorded from kube-apiserver 1.35.4, hostile bytes, and round trips of every type in the table.

mod tree;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::wire::{Reader, Wire, put_bytes, put_int, put_message};
use super::*;
use crate::schema::{Or, Schema, Shape, TypeId, builtin, check, parse};

/// The JSON and the protobuf of the same object, as the server returned them.
macro_rules! recorded {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("testdata/", $name, ".json")), include_bytes!(concat!("testdata/", $name, ".pb")).as_slice())),*]
    };
}

#[test]
fn recorded_objects_are_decoded_and_encoded_byte_by_byte() {
    let all = recorded!(
        "configmap",
        "event",
        "lease",
        "list",
        "metadata",
        "namespace",
        "priorityclass",
        "secret",
        "serviceaccount",
        "status",
        "storageclass"
    );
    for (name, json, bytes) in all {
        let json: Value = serde_json::from_str(json).unwrap();
        let decoded = decode(builtin(), bytes, TypeMeta::UNKNOWN).unwrap();
        assert_eq!(decoded.value, json, "{name}");
        assert_eq!(decoded.kind, json["kind"], "{name}");
        assert_eq!(encode(builtin(), &json).unwrap(), bytes, "{name}");
    }
}

#[test]
fn a_recorded_watch_event_is_encoded_byte_by_byte() {
    let object: Value = serde_json::from_str(include_str!("testdata/namespace.json")).unwrap();
    let frame = watch_event(builtin(), "ADDED", &object).unwrap();
    assert_eq!(frame, include_bytes!("testdata/watch.pb"));
}

/// Every JSON text, whether it fits the type or not.
#[test]
fn wrong_types_and_unknown_keys_are_encoded_as_by_the_reference() {
    let schema = shapes();
    let values = [
        json!(null),
        json!(7),
        json!([1, "x", null, {"name": "n"}]),
        json!({"name": "n", "a": 1, "zz": {"a": [1, 2]}, "\"": 2}),
        json!("2020-01-02T03:04:05Z"),
        json!(true),
        json!(1.5),
        json!("\u{1f600}\n"),
        json!({"k\n": {"name": "x"}, "l": null, "m": [null, "a"], "n": ["\""]}),
    ];
    for (id, of) in schema.types() {
        for field in of.fields() {
            for value in &values {
                let object = json!({ "": {}, &*field.name: value, "zzz": [] });
                let (mut written, mut expected) = (Vec::new(), Vec::new());
                Encoder::new(&schema).message(id, object.to_string().as_bytes(), &mut written).unwrap();
                tree::encode_message(&schema, id, &object, &mut expected);
                assert_eq!(written, expected, "{object}");
            }
        }
    }
}

#[test]
fn fields_in_any_order_are_found() {
    let schema = shapes();
    let id = schema.by_name("io.example.x.v1.All").unwrap();
    let write = |text: &str| message(|out| Encoder::new(&schema).message(id, text.as_bytes(), out).unwrap());
    let sorted = write(r#"{"a":"x","int":7,"verbs":["v"]}"#);
    assert_eq!(write(r#"{"verbs":["v"],"int":7,"other":{},"a":"x"}"#), sorted);
    assert_eq!(write(r#"{"int":7,"verbs":["v"],"a":"x"}"#), sorted);
}

#[test]
fn the_pieces_of_a_list_make_the_whole_list() {
    let list: Value = serde_json::from_str(include_str!("testdata/list.json")).unwrap();
    let of = TypeMeta::new(list["apiVersion"].as_str().unwrap(), list["kind"].as_str().unwrap());
    let mut encoder = Encoder::new(builtin());
    let mut items = Vec::new();
    for item in list["items"].as_array().unwrap() {
        let item_type = TypeMeta::new(of.api_version, of.kind.strip_suffix("List").unwrap());
        encoder.item(item_type, item.to_string().as_bytes(), &mut items).unwrap();
    }
    let opening = encoder.list_opening(of, &list["metadata"], items.len()).unwrap();
    assert_eq!([&opening, &items, ENVELOPE_END].concat(), encode(builtin(), &list).unwrap());
}

fn message(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put_message(&mut out, 1, |out| {
        put_bytes(out, 1, api_version.as_bytes());
        put_bytes(out, 2, kind.as_bytes());
    });
    put_bytes(&mut out, 2, raw);
    out
}

/// Decodes a ConfigMap with these message bytes.
fn config_map(raw: &[u8]) -> Result<Value, String> {
    let decoded = decode(builtin(), &envelope("v1", "ConfigMap", raw), TypeMeta::new("v1", "ConfigMap"));
    decoded.map(|decoded| decoded.value).map_err(|problem| problem.to_string())
}

#[test]
fn bytes_without_envelope_are_refused_as_by_kube_apiserver() {
    let no_prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    for (bytes, problem) in [
        (b"{}".as_slice(), no_prefix),
        (b"", "empty data"),
        (b"k8s\0", "empty body"),
        (b"k8s\0\xff\xff\xff", "unexpected EOF"),
        (b"k8s\0\x0a\x05ab", "unexpected EOF"),
    ] {
        let answer = decode(builtin(), bytes, TypeMeta::new("v1", "ConfigMap")).unwrap_err();
        assert_eq!(answer, DecodeError::Envelope(problem.to_owned()));
    }
}

#[test]
fn malformed_messages_are_refused_as_by_kube_apiserver() {
    for (raw, problem) in [
        (b"\x12\x10ab".as_slice(), "unexpected EOF"),
        (b"\x20", "unexpected EOF"),
        (b"\x10\x01", "proto: wrong wireType = 0 for field Data"),
        (b"\x0a\x02\x08\x01", "proto: wrong wireType = 0 for field Name"),
        (b"\x24", "proto: ConfigMap: wiretype end group for non-group"),
        (b"\x02\x00", "proto: ConfigMap: illegal tag 0 (wire type 2)"),
        (b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "proto: integer overflow"),
        (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: negative length found during unmarshaling"),
    ] {
        assert_eq!(config_map(raw).unwrap_err(), problem, "{raw:?}");
    }
}

#[test]
fn unusual_messages_are_decoded_as_by_kube_apiserver() {
    let entry = |write: fn(&mut Vec<u8>)| message(|out| put_message(out, 2, write));
    let cases = [
        (vec![], json!({"metadata": {}})),
        (message(|out| put_bytes(out, 99, b"x")), json!({"metadata": {}})),
        (entry(|out| put_bytes(out, 1, b"k")), json!({"metadata": {}, "data": {"k": ""}})),
        (entry(|out| put_bytes(out, 2, b"v")), json!({"metadata": {}, "data": {"": "v"}})),
        (message(|out| put_int(out, 4, 2)), json!({"metadata": {}, "immutable": true})),
        (message(|out| put_int(out, 4, 0)), json!({"metadata": {}, "immutable": false})),
        (
            message(|out| {
                put_message(out, 1, |out| put_bytes(out, 1, b"a"));
                put_message(out, 1, |out| put_bytes(out, 2, b"gen"));
            }),
            json!({"metadata": {"name": "a", "generateName": "gen"}}),
        ),
        (
            message(|out| {
                put_message(out, 1, |out| put_int(out, 7, -5));
                put_message(out, 1, |out| put_message(out, 9, |out| put_int(out, 1, -5)));
            }),
            json!({"metadata": {"generation": -5, "deletionTimestamp": "1969-12-31T23:59:55Z"}}),
        ),
        (
            message(|out| {
                put_message(out, 2, |out| {
                    put_bytes(out, 1, b"k");
                    put_bytes(out, 2, b"\xff\xfe");
                })
            }),
            json!({"metadata": {}, "data": {"k": "\u{fffd}\u{fffd}"}}),
        ),
    ];
    for (raw, mut expected) in cases {
        expected["apiVersion"] = "v1".into();
        expected["kind"] = "ConfigMap".into();
        assert_eq!(config_map(&raw), Ok(expected), "{raw:?}");
    }
}

#[test]
fn numbers_and_times_out_of_range_wrap_and_carry_as_in_go() {
    let raw = message(|out| {
        put_int(out, 8, (1 << 40) + 5);
        put_message(out, 6, |out| put_int(out, 1, 1 << 62));
        put_message(out, 10, |out| {
            put_int(out, 1, 5);
            put_int(out, 2, 2_000_001_999);
        });
    });
    let event = decode(builtin(), &envelope("v1", "Event", &raw), TypeMeta::UNKNOWN).unwrap().value;
    assert_eq!(event["count"], 5);
    assert_eq!(event["firstTimestamp"], "146138514283-06-19T07:45:04Z");
    assert_eq!(event["eventTime"], "1970-01-01T00:00:07.000001Z");
}

#[test]
fn a_missing_type_is_the_expected_one_and_an_unknown_one_is_refused() {
    let named = message(|out| put_message(out, 1, |out| put_bytes(out, 1, b"a")));
    for (api_version, kind) in [("", ""), ("v1", ""), ("", "ConfigMap")] {
        let decoded =
            decode(builtin(), &envelope(api_version, kind, &named), TypeMeta::new("v1", "ConfigMap"))
                .unwrap();
        assert_eq!((decoded.api_version.as_str(), decoded.kind.as_str()), ("v1", "ConfigMap"));
        assert_eq!(decoded.value["kind"], "ConfigMap");
    }
    let unknown =
        decode(builtin(), &envelope("v1", "Foo", &named), TypeMeta::new("v1", "ConfigMap")).unwrap_err();
    assert_eq!(unknown, DecodeError::UnknownKind { api_version: "v1".to_owned(), kind: "Foo".to_owned() });
    let options = envelope("apps/v1", "DeleteOptions", &message(|out| put_int(out, 1, 0)));
    let options = decode(builtin(), &options, TypeMeta::UNKNOWN).unwrap().value;
    assert_eq!(options, json!({"apiVersion": "apps/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}));
    assert!(encode(builtin(), &json!({"apiVersion": "example.com/v1", "kind": "Foo"})).is_err());
}

/// A schema with every shape, embedded structs, and a recursive type.
fn shapes() -> Schema {
    parse(
        "package x/v1 io.example.x.v1\n\
         All example.com/v1\n \
         +Outer #1\n \
         +Outer.Inner #1.2\n \
         a string #1.1\n \
         b? Nested #1.2.7\n \
         bool? bool #2\n \
         bytes bytes #3\n \
         double double #4\n \
         int int64 #5\n \
         ints [int64] #6\n \
         intstr intstr #7\n \
         json json #8\n \
         lists {<string>} #9\n \
         micro? microtime #10\n \
         nested Nested #11\n \
         quantity quantity #12\n \
         quantities {quantity} #13\n \
         raw raw #14\n \
         self? All #15\n \
         verbs <string> #16\n\
         Nested\n \
         list! [Nested] #1\n \
         map {Nested} #2\n \
         name+ string #3\n",
    )
    .unwrap()
}

#[test]
fn embedded_fields_are_one_level_deeper_on_the_wire() {
    let schema = shapes();
    let id = schema.by_name("io.example.x.v1.All").unwrap();
    let mut out = Vec::new();
    Encoder::new(&schema).message(id, br#"{"a":"x"}"#, &mut out).unwrap();
    let mut reader = Reader(&out);
    let Ok(Some((1, Wire::Bytes(outer)))) = reader.field("All") else { panic!("no outer struct") };
    assert_eq!(Reader(outer).field("Outer"), Ok(Some((1, Wire::Bytes(b"x".as_slice())))));
}

#[test]
fn nesting_has_a_limit_and_costs_no_stack() {
    let schema = shapes();
    let id = schema.by_name("io.example.x.v1.All").unwrap();
    let nested = |depth| (0..depth).fold(Vec::new(), |inner, _| message(|out| put_bytes(out, 15, &inner)));
    assert!(decode_message(&schema, id, &nested(90)).is_ok());
    assert_eq!(decode_message(&schema, id, &nested(5000)), Err(Malformed::Depth));
}

#[test]
fn a_message_in_many_parts_is_read_in_linear_time() {
    let raw = message(|out| {
        for n in 0..50_000u32 {
            put_message(out, 1, |out| {
                put_message(out, 11, |out| put_bytes(out, 1, n.to_string().as_bytes()));
                put_bytes(out, 14, b"finalizer");
            });
        }
    });
    let value = config_map(&raw).unwrap();
    assert_eq!(value["metadata"]["labels"].as_object().unwrap().len(), 50_000);
    assert_eq!(value["metadata"]["finalizers"].as_array().unwrap().len(), 50_000);
}

/// A random value of a shape. Small numbers make empty values likely.
fn value(schema: &Schema, shape: &Shape, depth: usize, random: &mut impl FnMut() -> u64) -> Value {
    let count = if depth > 4 { 0 } else { random() % 3 };
    match shape {
        Shape::String { .. } => Value::from(["", "a", "ü\"\\\n", "longer text"][(random() % 4) as usize]),
        Shape::Bytes => Value::from(["", "AA==", "AQID"][(random() % 3) as usize]),
        Shape::Bool => Value::from(random().is_multiple_of(2)),
        Shape::Int32 => Value::from([0, 1, -1, i32::MAX, i32::MIN][(random() % 5) as usize]),
        Shape::Int64 => Value::from([0, 1, -1, i64::MAX, i64::MIN][(random() % 5) as usize]),
        Shape::Double => Value::from([0.0, 0.5, -1e300][(random() % 3) as usize]),
        Shape::Time => Value::from(["2020-01-02T03:04:05Z", "1969-12-31T23:59:59Z"][(random() % 2) as usize]),
        Shape::MicroTime => Value::from("1969-01-02T03:04:05.123456Z"),
        Shape::Quantity => Value::from(["0", "100m", "2Gi"][(random() % 3) as usize]),
        Shape::IntOrString => [json!(0), json!(-7), json!("x"), json!("")][(random() % 4) as usize].clone(),
        Shape::Raw | Shape::Fields | Shape::Json => json!({"f:a": {}, "list": [1, 2.5, null]}),
        Shape::Object(id) => object(schema, *id, depth + 1, random),
        Shape::List(item) | Shape::Wrapped(item) => {
            (0..count).map(|_| value(schema, item, depth + 1, random)).collect()
        }
        Shape::Or(id, or) => match (random() % 2, or) {
            (0, _) => object(schema, *id, depth + 1, random),
            (_, Or::Bool) => Value::from(random().is_multiple_of(2)),
            (_, Or::List) => vec![object(schema, *id, depth + 1, random)].into(),
            (_, Or::Strings) => json!(["", "a"]),
        },
        Shape::Map(item) => {
            let entries = (0..count).map(|n| (format!("key{n}"), value(schema, item, depth + 1, random)));
            Value::Object(entries.collect())
        }
    }
}

fn object(schema: &Schema, id: TypeId, depth: usize, random: &mut impl FnMut() -> u64) -> Value {
    let mut object = Map::new();
    for field in schema.get(id).fields() {
        if !field.tags().is_empty() && depth < 6 && !random().is_multiple_of(3) {
            object.insert(field.name.to_string(), value(schema, &field.shape, depth, random));
        }
    }
    Value::Object(object)
}

proptest! {
    #[test]
    fn every_type_survives_the_round_trip(seed: u64) {
        let mut state = seed | 1;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 8
        };
        for schema in [builtin(), &shapes()] {
            for (id, of) in schema.types() {
                // Checks some types per case, all of them over all cases. `/version` has no protobuf.
                if of.name == "Info" || !random().is_multiple_of(32) {
                    continue;
                }
                let mut value = object(schema, id, 0, &mut random);
                prop_assert_eq!(check(schema, id, &mut value).unwrap().unknown, Vec::<String>::new());
                let mut bytes = Vec::new();
                Encoder::new(schema).message(id, value.to_string().as_bytes(), &mut bytes).unwrap();
                let mut expected = Vec::new();
                tree::encode_message(schema, id, &value, &mut expected);
                prop_assert_eq!(&bytes, &expected, "{}", of.name);
                prop_assert_eq!(decode_message(schema, id, &bytes), Ok(value), "{}", of.name);
            }
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let schema = shapes();
        for (id, _) in schema.types() {
            let _ = decode_message(&schema, id, &bytes);
        }
        let _ = decode(builtin(), &envelope("v1", "Event", &bytes), TypeMeta::UNKNOWN);
        let _ = decode(builtin(), &bytes, TypeMeta::UNKNOWN);
    }
}
