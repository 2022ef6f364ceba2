//! Scripts, masks and comparisons without a server.

use serde_json::{Value, json};

use crate::{Response, Run, Script, compare, read_answers, write_answers};

const SCRIPT: &str = "
about: an example
let: {all: /api/v1/namespaces/space/configmaps}
bodies:
  plain: {metadata: {name: a}, items: [{x: 1}]}
cases:
- case: made
  POST: $all
  like: plain
  keep: {name: /metadata/name, uid: /metadata/uid}
- case: row
  PUT: $all/$name
  type: merge-patch
  like: made
  each:
    one: {/items/0/x: $uid, /metadata/labels/a~1b: c}
    two: {/items/0: $unset, /money: $5}
";

fn play(uid: &str, version: &str) -> (Vec<(String, Value)>, crate::Answers) {
    let script = Script::parse(SCRIPT).unwrap();
    let mut run = Run::new(&script, SCRIPT, "2026-01-01T00:00:00Z".parse().unwrap());
    let mut sent = Vec::new();
    while let Some(request) = run.request() {
        let request = request.unwrap();
        sent.push((request.path, serde_json::from_slice(&request.body).unwrap()));
        let body = json!({
            "kind": "ConfigMap",
            "metadata": {
                "name": "generated-name", "uid": uid, "resourceVersion": version,
                "managedFields": [{"manager": "b", "time": "2026-01-01T00:00:01Z"}, {"manager": "a"}],
                "creationTimestamp": "2026-01-01T00:00:01Z",
            },
            "items": [{"old": "2020-01-01T00:00:00Z"}],
            "message": format!("{uid} of generated-name, no true: value"),
        });
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        run.respond(&Response { code: 201, headers, body: body.to_string().into_bytes() }).unwrap();
    }
    (sent, run.finish())
}

#[test]
fn later_requests_use_values_of_earlier_answers() {
    let uid = "11111111-2222-4333-8444-555555555555";
    let (sent, _) = play(uid, "7");
    let paths: Vec<&str> = sent.iter().map(|(path, _)| path.as_str()).collect();
    let all = "/api/v1/namespaces/space/configmaps";
    assert_eq!(paths, [all, &format!("{all}/generated-name"), &format!("{all}/generated-name")]);
    assert_eq!(sent[0].1, json!({"metadata": {"name": "a"}, "items": [{"x": 1}]}));
    assert_eq!(sent[1].1.pointer("/items/0/x"), Some(&json!(uid)));
    assert_eq!(sent[1].1.pointer("/metadata/labels/a~1b"), Some(&json!("c")));
    assert_eq!((&sent[2].1["items"], &sent[2].1["money"]), (&json!([]), &json!("$5")));
}

#[test]
fn two_runs_of_one_script_have_the_same_answers() {
    let (_, first) = play("11111111-2222-4333-8444-555555555555", "7");
    let (_, second) = play("aaaaaaaa-2222-4333-8444-555555555555", "130");
    assert_eq!(first, second);
    let metadata = &first["made"]["body"]["metadata"];
    assert_eq!(
        *metadata,
        json!({
            "name": "$name", "uid": "$uid1", "resourceVersion": "$rv1", "creationTimestamp": "$time",
            "managedFields": [{"manager": "a"}, {"manager": "b", "time": "$time"}],
        })
    );
    assert_eq!(first["made"]["body"]["message"], "$uid1 of $name, no true: value");
    assert_eq!(first["made"]["body"]["items"], json!([{"old": "2020-01-01T00:00:00Z"}]));
}

/// Two objects with generated names, in the order of these names.
fn list_of_made_up(names: [(&str, &str); 2]) -> Value {
    let items = names.map(|(name, kind)| {
        json!({"metadata": {"generateName": "web-", "name": name}, "addressType": kind, "of": format!("/{name}")})
    });
    let text = "about: lists\ncases:\n- {case: list, GET: /all, until: {/body/items/2: $unset, /code: 200}}";
    let script = Script::parse(text).unwrap();
    let mut run = Run::new(&script, text, "2026-01-01T00:00:00Z".parse().unwrap());
    let answer = |items: Value| {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Response { code: 200, headers, body: json!({"items": items}).to_string().into_bytes() }
    };
    run.respond(&answer(json!([1, 2, 3]))).unwrap();
    assert!(run.waits());
    run.respond(&answer(items.into())).unwrap();
    assert!(!run.waits() && run.request().is_none());
    run.finish()["list"]["body"]["items"].clone()
}

#[test]
fn names_that_were_made_up_are_masked_and_give_no_order() {
    let shown = list_of_made_up([("web-b2c3d", "IPv4"), ("web-x5x5x", "IPv6")]);
    assert_eq!(shown, list_of_made_up([("web-q7q7q", "IPv6"), ("web-z9z9z", "IPv4")]));
    assert_eq!(shown[1]["metadata"]["name"], "web-$made2");
    assert_eq!(shown[1]["of"], "/web-$made2");
}

#[test]
fn answers_are_read_as_they_were_written() {
    let answer = json!({
        "code": 200,
        "headers": {"content-type": null, "warning": ["299 - \"a: b\"", "x"]},
        "body": {
            "": "", "a b: c": "yes", "list": [[], {}, {"a": [1, {"b": null}]}, "#x", "- y", " z "], "number": "12",
            "text": "two\nlines: \"and\" \u{1F600} {", "long": ["a, b", "c"], "not": "~", "truth": true, "float": 1.5,
        },
    });
    let script = Script::parse("{about: x, cases: [{case: 'a: b', GET: /}]}").unwrap();
    let answers = [("a: b".to_owned(), answer)].into();
    let text = write_answers(&script, &answers);
    assert_eq!(read_answers(&text).unwrap_or_else(|error| panic!("{error}: {text}")), answers, "{text}");
}

#[test]
fn differences_have_a_place() {
    let differences =
        compare(&json!({"a": [1, 2], "b": {"c/d": 1}}), &json!({"a": [1], "b": {"c/d": 2}, "e": 3}));
    let places: Vec<&str> = differences.iter().map(|difference| difference.at.as_str()).collect();
    assert_eq!(places, ["/a/1", "/b/c~1d", "/e"]);
    let list = |names: &[&str]| json!(names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>());
    let places = |a: &[&str], b: &[&str]| -> Vec<String> {
        compare(&list(a), &list(b)).into_iter().map(|difference| difference.at).collect()
    };
    assert_eq!(places(&["a", "b/c", "d"], &["a", "d"]), ["/b~1c"]);
    assert_eq!(places(&["a", "b"], &["b", "a"]), ["/order"]);
    assert_eq!(places(&["a", "a"], &["a"]), ["/1"]);
}

#[test]
fn an_allowed_difference_excuses_exactly_as_many_cases_as_it_states() {
    let text = "[{case: 'a/*', at: '/body/*/x', why: one, cases: 2}, {case: 'b', at: '/code', why: two}, \
                {case: '*: d', at: '/code', why: three, cases: 2}, {case: 'a/b: e', at: '/code', why: four}]";
    let allowed = crate::AllowedDifferences::parse(text).unwrap();
    let difference = |at: &str| crate::Difference { at: at.to_owned(), expected: None, found: None };
    assert!(allowed.allow("a/b: c", &difference("/body/1/x")));
    assert!(allowed.allow("a/b: c", &difference("/body/2/x")));
    assert!(!allowed.allow("a/b: c", &difference("/body/1/y")));
    assert!(!allowed.allow("b: c", &difference("/code")));
    assert!(allowed.allow("a/b: d", &difference("/code")));
    assert!(allowed.allow("a/b: e", &difference("/code")));
    let miscounted = [
        "1 cases differ at /body/*/x of a/*, not 2",
        "there is no difference at /code of b",
        "1 cases differ at /code of *: d, not 2",
    ];
    assert_eq!(allowed.miscounted(false), miscounted);
    assert!(allowed.allow("a/c: c", &difference("/body/1/x")));
    assert_eq!(allowed.miscounted(false), miscounted[1..]);
    assert!(allowed.allow("a/d: c", &difference("/body/1/x")));
    assert_eq!(allowed.miscounted(false)[0], "3 cases differ at /body/*/x of a/*, not 2");
}

/// Number of cases that `fixtures/oracle/allowed.yaml` excuses. It only goes down: a new difference is
/// mended, or takes the place of an old one.
const EXCUSED: usize = 208;

#[test]
fn the_list_of_allowed_differences_only_becomes_shorter() {
    let list = std::fs::read_to_string(crate::files::allow_list()).unwrap();
    let cases = crate::AllowedDifferences::parse(&list).unwrap().cases();
    assert!(cases <= EXCUSED, "the list excuses {cases} cases, and may excuse {EXCUSED}");
    assert_eq!(cases, EXCUSED, "the list became shorter: lower the number to keep it so");
}

#[test]
fn protobuf_that_the_decoder_does_not_read_in_full_is_found() {
    let whole =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let whole = kinds::protobuf::encode(kinds::schema::builtin(), &whole).unwrap();
    assert_eq!(crate::wire::unread(&whole), None);
    // An unknown field behind the known ones of the envelope: field 100, a varint.
    let more = [&whole[..], &[0xa0, 0x06, 0x01]].concat();
    assert!(crate::wire::unread(&more).is_some());
    assert!(crate::wire::unread(b"k8s\0\xff").is_some());
}

#[test]
fn mistakes_in_scripts_are_named() {
    for (text, problem) in [
        ("{about: x, cases: [{case: a}]}", "exactly one of"),
        ("{about: x, cases: [{case: a, GET: /}, {case: a, GET: /}]}", "duplicate case"),
        ("{about: x, cases: [{case: a, GET: /, boddy: 1}]}", "unknown field"),
    ] {
        let error = Script::parse(text).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn protobuf_of_kubernetes_is_decoded_in_full() {
    let mut count = 0;
    for fixture in crate::fixtures("").unwrap() {
        let text = std::fs::read_to_string(&fixture.answers).unwrap_or_default();
        if !text.contains("\n  protobuf: ") {
            continue;
        }
        for (case, mut answer) in crate::read_answers(&text).unwrap() {
            count += usize::from(answer.get(crate::wire::RAW).is_some());
            assert_eq!(crate::wire::check(&mut answer), None, "{}: {case}", fixture.name);
        }
    }
    assert!(count >= 19, "{count} answers in protobuf are recorded");
}
