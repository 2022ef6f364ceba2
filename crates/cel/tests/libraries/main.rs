//! Expressions and their results in Kubernetes 1.35, recorded from its own compiler and evaluator with the
//! libraries, checks and costs that it enables.

use cel::{CompileError, Env, Value};
use serde_json::{Value as Json, json};

const CASES: &str = include_str!("cases.json");

/// The cost limit of an evaluation.
const COST_LIMIT: u64 = 1_000_000;

#[test]
fn expressions_evaluate_as_in_kubernetes() {
    let cases: Vec<Json> = serde_json::from_str(CASES).expect("the cases are JSON");
    let mut libraries = cel::library::kubernetes::libraries();
    libraries.push(cel::library::kubernetes::patch_library());
    let env = Env::new(libraries);
    let differences: Vec<String> = cases.iter().filter_map(|case| difference(case, &env)).collect();
    let count = differences.len();
    assert!(differences.is_empty(), "{count} of {} differ:\n{}", cases.len(), differences.join("\n"));
}

fn difference(case: &Json, env: &Env) -> Option<String> {
    let expr = case["expr"].as_str().expect("a case has an expression");
    let mut result = json!({ "expr": expr });
    match env.compile(expr) {
        Err(CompileError::Issues(issues)) => result["issues"] = issues.to_string().into(),
        Err(CompileError::Program(error)) => result["program"] = error.to_string().into(),
        Ok(program) => {
            let outcome = program.evaluate(&[], COST_LIMIT);
            match outcome.value {
                Ok(value) => result["value"] = format!("{}:{}", value.ty().name(), shown(&value)).into(),
                Err(error) => result["error"] = error.to_string().into(),
            }
            result["estimate"] = json!([program.estimate().min, program.estimate().max]);
            result["cost"] = outcome.cost.into();
        }
    }
    (result != *case).then(|| format!("expected {case}\n   found {result}"))
}

/// A value in recorded form: a string as it is, anything else as JSON.
fn shown(value: &Value<'_>) -> String {
    match value {
        Value::List(_) | Value::Map(_) => to_json(value).to_string(),
        Value::Optional(None) => "<nil>".to_owned(),
        Value::Optional(Some(inner)) => to_json(inner).to_string(),
        _ => value.to_string(),
    }
}

fn to_json(value: &Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(number) => json!(number),
        Value::Uint(number) => json!(number),
        Value::Double(number) => json!(number),
        Value::List(list) => list.iter().map(|item| item.map_or(Json::Null, |item| to_json(&item))).collect(),
        Value::Map(map) => {
            let entries = map.entries().unwrap_or_default();
            entries.iter().map(|(key, value)| (key.to_string(), to_json(value))).collect()
        }
        _ => value.to_string().into(),
    }
}
