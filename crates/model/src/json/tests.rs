//! Valid and malformed bodies; the messages are those of kube-apiserver 1.35 where it has one.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn message(text: &str) -> String {
    parse(text.as_bytes()).expect_err(text).to_string()
}

fn duplicates(parsed: Result<Parsed, JsonError>) -> Vec<String> {
    parsed.unwrap().duplicates
}

#[test]
fn values_are_those_of_json() {
    let rows = [
        ("null", json!(null)),
        (" true ", json!(true)),
        ("[1, -2, 1.5, \"a\\u00e9\\n\"]", json!([1, -2, 1.5, "aé\n"])),
        ("{\"a\":{\"b\":[{}]}}", json!({"a": {"b": [{}]}})),
        ("9223372036854775807", json!(i64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        // Larger integers are floating point numbers in Kubernetes, and minus zero is zero.
        ("9223372036854775808", json!(9_223_372_036_854_775_808.0)),
        ("123456789012345678901234567890", json!(1.234_567_890_123_456_8e29)),
        ("-0", json!(0)),
    ];
    for (text, value) in rows {
        assert_eq!(parse(text.as_bytes()), Ok(Parsed { value, duplicates: vec![] }), "{text}");
    }
}

#[test]
fn the_last_of_two_values_wins_and_the_path_is_noted() {
    let text = r#"{"metadata":{"labels":{"a":"1","a":"2"},"name":"x","name":"y"},
        "spec":{"x":[{},{"a":1,"a":2}],"y":[[{"z":1,"z":2}]]}}"#;
    let parsed = parse(text.as_bytes()).unwrap();
    assert_eq!(parsed.duplicates, ["metadata.labels.a", "metadata.name", "spec.x[1].a", "spec.y[0][0].z"]);
    assert_eq!(parsed.value["metadata"], json!({"labels": {"a": "2"}, "name": "y"}));
    assert_eq!(parsed.value["spec"], json!({"x": [{}, {"a": 2}], "y": [[{"z": 2}]]}));
}

#[test]
fn a_path_is_noted_once_and_not_without_end() {
    assert_eq!(duplicates(parse(br#"{"a":1,"a":2,"a":3}"#)), ["a"]);
    assert_eq!(duplicates(parse(br#"{"a":{"b":1,"b":2},"a":{"b":1,"b":2}}"#)), ["a.b", "a"]);
    assert_eq!(duplicates(parse(br#"[{"[":1,"[":2}]"#)), ["[0].["]);
    let many: Vec<String> = (0..300).map(|key| format!("\"{key}\":1,\"{key}\":2")).collect();
    assert_eq!(duplicates(parse(format!("{{{}}}", many.join(",")).as_bytes())).len(), 100);
}

#[test]
fn faults_are_told_in_the_words_of_kubernetes() {
    let rows = [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("{\"a\":}", "invalid character '}' looking for beginning of value"),
        ("[\n\n x]", "invalid character 'x' looking for beginning of value"),
        ("{\"a\":1} x", "invalid character 'x' after top-level value"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("{1:2}", "invalid character '1' looking for beginning of object key string"),
        ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("\"\\x\"", "invalid character 'x' in string escape code"),
        ("\"a\nb\"", "invalid character '\\n' in string literal"),
        ("[-x]", "invalid character 'x' in numeric literal"),
        ("trux", "invalid character 'x' in literal"),
        ("[1e999]", "json: cannot unmarshal number 1e999 into Go value of type float64"),
        ("[é]", "invalid character 'Ã' looking for beginning of value"),
        ("[\u{80}]", "invalid character 'Â' looking for beginning of value"),
        ("\"\\é\"", "invalid character 'Ã' in string escape code"),
        ("[\x01]", "invalid character '\\x01' looking for beginning of value"),
        ("\"\x01\"", "invalid character '\\x01' in string literal"),
        ("[']", "invalid character '\\'' looking for beginning of value"),
        ("[\\", "invalid character '\\\\' looking for beginning of value"),
    ];
    for (text, expected) in rows {
        assert_eq!(message(text), expected, "{text}");
    }
}

#[test]
fn nesting_is_limited() {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(nested(127).as_bytes()).is_ok());
    assert_eq!(message(&nested(129)), "invalid character '[' exceeded max depth");
    assert_eq!(message(&"[".repeat(1 << 20)), "invalid character '[' exceeded max depth");
}

#[test]
fn nesting_is_limited_in_yaml_too() {
    let nested = |depth, inner: &str| format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse_yaml(nested(64, "").as_bytes()).is_ok());
    let aliases = format!("a: &a {}\nb: &b {}\nc: {}\n", nested(60, ""), nested(60, "*a"), nested(60, "*b"));
    for text in [nested(65, ""), "[".repeat(1 << 20), "- ".repeat(1 << 14), "? ".repeat(1 << 14), aliases] {
        let message = parse_yaml(text.as_bytes()).expect_err("too deep").to_string();
        assert!(message.starts_with("yaml: "), "{message}");
    }
}

#[test]
fn only_utf8_is_read() {
    let expected = "invalid UTF-8 after byte 2";
    assert_eq!(parse(b"{\"\xff\":1}").unwrap_err().to_string(), expected);
    assert_eq!(parse_yaml(b"a:\xff").unwrap_err().to_string(), expected);
}

#[test]
fn yaml_gives_the_same_values() {
    let text = "apiVersion: v1\nmetadata:\n  name: a\n  labels: &l {x: \"1\", y: z}\n\
                spec:\n  list:\n  - 1\n  - 1.5\n  - yes\n  - ~\n  - 0x10\n  - 010\n  copy: *l\n";
    let value = json!({
        "apiVersion": "v1",
        "metadata": {"name": "a", "labels": {"x": "1", "y": "z"}},
        "spec": {"list": [1, 1.5, true, null, 16, 8], "copy": {"x": "1", "y": "z"}},
    });
    assert_eq!(parse_yaml(text.as_bytes()), Ok(Parsed { value, duplicates: vec![] }));
    assert_eq!(parse_yaml(b"").map(|parsed| parsed.value), Ok(Value::Null));
    let json = br#" {"apiVersion":"v1","y":"n"}"#;
    assert_eq!(parse_yaml(json), parse(json));
}

#[test]
fn keys_that_come_twice_in_yaml_are_told_with_line_and_key_as_go_tells_them() {
    // The lines and keys that `YAMLToJSONStrict` of sigs.k8s.io/yaml 1.6.0 reports.
    let rows: &[(&str, &[(usize, &str)])] = &[
        ("a: one\na: two\n", &[(2, "\"a\"")]),
        ("metadata: {name: a}\ndata:\n  a: one\n  a: two\n", &[(4, "\"a\"")]),
        ("a:\n  b: 1\n  b: 2\na:\n  c: 1\n  c: 2\n", &[(3, "\"b\""), (6, "\"c\""), (5, "\"a\"")]),
        ("a: 1\na:\n  x: 1\n", &[(3, "\"a\"")]),
        ("a: 1\na:\n- x\n- y\n", &[(3, "\"a\"")]),
        ("a: 1\n\"a\": 2\n'a': 3\n", &[(2, "\"a\""), (3, "\"a\"")]),
        ("1: a\n1: b\n\"1\": c\n", &[(2, "1")]),
        ("yes: a\non: b\ntrue: c\ny: d\n", &[(2, "true"), (3, "true"), (4, "true")]),
        ("1.5: a\n1.5: b\n0x10: a\n16: b\n", &[(2, "1.5"), (4, "16")]),
        ("a:\na:\nb: |\n  text\nb: |\n  other\n", &[(2, "\"a\""), (5, "\"b\"")]),
        ("a: 1\na: >\n\n  folded\n", &[(2, "\"a\"")]),
        ("a: 1\n# comment\na:\n  # comment\n  x: 1\n", &[(5, "\"a\"")]),
        ("{\"a\":1,\n\"b\":{\"c\":1,\n\"c\":2},\"a\":2}", &[(3, "\"c\""), (3, "\"a\"")]),
        ("a: 1\na: {x: 1,\n  x: 2}\n", &[(3, "\"x\""), (2, "\"a\"")]),
        ("x: &x {a: 1}\ny: {<<: *x, a: 2}\nz:\n  a: 3\n  <<: *x\n", &[(2, "\"a\""), (1, "\"a\"")]),
        ("x: &x\n  a: 1\n  a: 2\ny: *x\nx: *x\n", &[(3, "\"a\""), (3, "\"a\""), (3, "\"a\""), (5, "\"x\"")]),
        ("x: &x {a: 1}\nw: &w {a: 2}\ny:\n  <<: [*x, *w]\n", &[(1, "\"a\"")]),
        ("list:\n- a: 1\n  a: 2\n- b: 1\n  b: 2\n", &[(3, "\"a\""), (5, "\"b\"")]),
        ("a: 1\na: !!str 2\na: &q\n  x: 1\n", &[(2, "\"a\""), (3, "\"a\"")]),
        ("---\na: 1\na: 2\n---\nb: 1\nb: 2\n", &[(3, "\"a\"")]),
        ("? a\n: 1\n? a\n: 2\n", &[(4, "\"a\"")]),
        ("a/b.c: 1\n\"a/b.c\": 2\n\"é\\t\": 1\n\"é\\t\": 2\n", &[(2, "\"a/b.c\""), (4, "\"é\\t\"")]),
        (
            "010: a\n8: b\n1_0: c\n10: d\n-1: a\n-1: b\n+1: x\n1: y\n",
            &[(2, "8"), (4, "10"), (6, "-1"), (8, "1")],
        ),
        ("1e3: a\n1000: b\n1e3: c\n", &[(3, "1000")]),
        ("a: {x: 1}\nb: {x: 1}\n", &[]),
    ];
    for (text, expected) in rows {
        let expected: Vec<String> =
            expected.iter().map(|(line, key)| format!("line {line}: key {key} already set in map")).collect();
        assert_eq!(duplicates(parse_yaml(text.as_bytes())), expected, "{text}");
    }
}

#[test]
fn aliases_do_not_make_many_reports_out_of_little() {
    let text = format!("a: &a {{x: 1, x: 2}}\nb: [{}]\n", vec!["*a"; 5000].join(", "));
    assert_eq!(super::repeated::repeated_keys(&text).len(), 1000);
}

#[test]
fn of_several_documents_the_first_counts() {
    for text in ["a: 1\n---\nb: [", "# x\n---\na: 1\n--- \nb: 2\n"] {
        assert_eq!(parse_yaml(text.as_bytes()).unwrap().value, json!({"a": 1}), "{text}");
    }
}

#[test]
fn faults_in_yaml_are_told() {
    for text in ["a: [", "a: *nope", "a: .inf", "{a: 1}}"] {
        let message = parse_yaml(text.as_bytes()).expect_err(text).to_string();
        assert!(message.starts_with("yaml: ") && !message.contains('\n'), "{text}: {message}");
    }
}

#[test]
fn aliases_do_not_make_much_out_of_little() {
    use std::fmt::Write;

    let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        writeln!(laughs, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    assert!(parse_yaml(laughs.as_bytes()).is_err());

    let long = "x".repeat(1 << 20);
    let copies = format!("a: &a {long}\nb: [{}]\n", vec!["*a"; 90].join(", "));
    let message = parse_yaml(copies.as_bytes()).unwrap_err().to_string();
    assert!(message.contains("document is too large"), "{message}");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,4}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn written_values_are_read_back(value in value()) {
        let text = value.to_string();
        prop_assert_eq!(parse(text.as_bytes()), Ok(Parsed { value, duplicates: vec![] }));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = parse(&bytes);
        let _ = parse_yaml(&bytes);
    }

    #[test]
    fn near_json_is_read_or_refused(text in "[\\[\\]{}:,\"\\\\0-9eE.\\-+ \ntrufalsné&*!|>%]{0,30}") {
        let ours = parse(text.as_bytes()).map(|parsed| parsed.value).ok();
        let reference = serde_json::from_str::<Value>(&text).ok();
        prop_assert_eq!(ours.is_some(), reference.is_some());
        let _ = parse_yaml(text.as_bytes());
    }
}
