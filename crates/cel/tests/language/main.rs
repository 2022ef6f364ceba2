//! The language as cel-go implements it with Kubernetes' settings: types, values, errors and costs of
//! expressions.
//!
//! `cases.jsonl` has the answers of cel-go 0.26, one expression per line.

mod limits;
mod schema;

use std::sync::Arc;

use cel::{CompileError, Declared, Env, ListKind, Type, Value};
use serde_json::{Value as Json, json};

/// The variables of the cases, with the sizes for estimates.
fn env() -> Env {
    let text = |max| Arc::new(Declared::sized(Type::String, max));
    let int = Arc::new(Declared::scalar(Type::Int));
    let wide_int = Arc::new(Declared::sized(Type::Int, 20));
    Env::new(cel::library::kubernetes::libraries())
        .declared("i", int.clone())
        .declared("j", int)
        .declared("s", text(100))
        .declared("b", Arc::new(Declared::scalar(Type::Bool)))
        .declared("d", Arc::new(Declared::scalar(Type::Double)))
        .declared("l", Arc::new(Declared::list(wide_int, 10, ListKind::Atomic)))
        .declared("ls", Arc::new(Declared::list(text(20), 10, ListKind::Atomic)))
        .declared("m", Arc::new(Declared::map(text(20), text(20), 10)))
        .variable("x", Type::Dyn)
        .variable("mm", Type::map(Type::String, Type::map(Type::String, Type::Int)))
}

fn object() -> Json {
    json!({
        "i": 5, "j": 7, "s": "hello", "b": true, "d": 1.5, "l": [1, 2, 3], "ls": ["a", "bb", "ccc"],
        "m": {"k": "v", "k2": "v2"}, "x": {"a": 1, "s": "str", "l": [1, "two"], "m": {"n": 2}},
        "mm": {"a": {"b": 1}},
    })
}

/// The result of an expression, in the form of the cases.
fn outcome(env: &Env, object: &Json, expression: &str) -> Json {
    let program = match env.compile(expression) {
        Err(CompileError::Issues(issues)) => {
            return json!({"expr": expression, "issues": issues.to_string()});
        }
        Err(CompileError::Program(error)) => return json!({"expr": expression, "progerr": error.to_string()}),
        Ok(program) => program,
    };
    let estimate = program.estimate();
    let max = if estimate.max == u64::MAX { "max".to_owned() } else { estimate.max.to_string() };
    let variables = object.as_object().expect("the variables are an object").iter();
    let bindings: Vec<_> = variables.map(|(name, value)| (name.as_str(), dynamic(value))).collect();
    let outcome = program.evaluate(&bindings, 1_000_000);
    let mut shown = json!({
        "expr": expression,
        "type": program.ty().to_string(),
        "est": format!("{}..{max}", estimate.min),
        "cost": outcome.cost,
    });
    match outcome.value {
        Ok(value) => shown["val"] = literal(&value).into(),
        Err(error) => shown["err"] = error.to_string().into(),
    }
    shown
}

fn dynamic(json: &Json) -> Value<'_> {
    Value::from_json(json, Declared::dynamic()).expect("any JSON is a value")
}

/// A value as a literal.
fn literal(value: &Value<'_>) -> String {
    match value {
        Value::List(list) => {
            let items: Vec<_> = list.iter().map(|item| literal(&item.expect("items can be read"))).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let entries = map.entries().expect("entries can be read");
            let entries: Vec<_> =
                entries.iter().map(|(key, value)| format!("{}: {}", literal(key), literal(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Optional(Some(inner)) => format!("optional.of({})", literal(inner)),
        Value::String(text) => format!("{:?}", &**text),
        Value::Bytes(bytes) => {
            let octets: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
            format!("b\"{octets}\"")
        }
        Value::Uint(number) => format!("{number}u"),
        Value::Double(number) if number.is_infinite() => "double(\"Infinity\")".to_owned(),
        Value::Double(number) => format!("{number:?}"),
        Value::Duration(span) => format!("duration(\"{span}\")"),
        Value::Timestamp(time) => format!("timestamp(\"{time}\")"),
        other => other.to_string(),
    }
}

#[test]
fn every_case_evaluates_as_in_cel_go() {
    let (env, object) = (env(), object());
    let mut differences = Vec::new();
    let mut count = 0;
    for line in include_str!("cases.jsonl").lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let ours = outcome(&env, &object, case["expr"].as_str().unwrap());
        count += 1;
        if ours != case {
            differences.push(format!("cel-go: {case}\nours:   {ours}"));
        }
    }
    assert!(count > 400, "only {count} cases");
    assert!(differences.is_empty(), "{} of {count}:\n{}", differences.len(), differences.join("\n"));
}
