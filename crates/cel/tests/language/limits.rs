//! No expression that is too long, too deep or too expensive hangs or overflows.

use cel::{Env, Type, Value};
use serde_json::json;

fn error(expression: &str) -> String {
    match Env::new([]).variable("x", Type::Dyn).compile(expression) {
        Err(error) => error.to_string(),
        Ok(_) => "none".to_owned(),
    }
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn grammar_nesting_is_limited() {
    const TOO_DEEP: &str = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250";
    let kinds = [("(", ")"), ("[", "]"), ("int(", ")"), ("[x].map(y, ", ")"), ("true ? 1 : ", "")];
    for (open, close) in kinds {
        assert_eq!(error(&nested(open, "1", close, 249)), "none", "{open}");
        assert_eq!(error(&nested(open, "1", close, 250)), TOO_DEEP, "{open}");
    }
    assert_eq!(error(&nested("1 + (", "1", ")", 124)), "none");
    assert_eq!(error(&nested("1 + (", "1", ")", 125)), TOO_DEEP);
    assert_eq!(error(&nested("[", "1", "", 99_999)), TOO_DEEP);
}

#[test]
fn chain_lengths_are_limited() {
    const TOO_DEEP: &str = "ERROR: <input>:-1:0: max recursion depth exceeded";
    for link in [".a", "[0]", " + x", " == x"] {
        assert_eq!(error(&format!("x{}", link.repeat(250))), "none", "{link}");
        assert_eq!(error(&format!("x{}", link.repeat(251))), TOO_DEEP, "{link}");
    }
    assert_eq!(error(&format!("true{}", " && true".repeat(2000))), "none");
    assert_eq!(error(&format!("{}true", "!".repeat(2001))), "none");
}

#[test]
fn expression_length_is_limited() {
    let message = error(&" ".repeat(100_001));
    let expected =
        "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000";
    assert_eq!(message, expected);
}

#[test]
fn macro_expansion_is_limited() {
    let message = error(&format!("optional.of(x){}", ".optMap(y, y)".repeat(60)));
    assert!(message.contains("expression node limit exceeded: 200000"), "{message}");
}

#[test]
fn loops_end_at_the_cost_limit() {
    let env = Env::new([]).variable("x", Type::list(Type::Int));
    let program = env.compile("x.all(a, x.all(b, x.all(c, a + b + c >= 0)))").unwrap();
    let numbers = json!((0..200).collect::<Vec<_>>());
    let bound = Value::from_json(&numbers, cel::Declared::dynamic()).unwrap();
    let outcome = program.evaluate(&[("x", bound)], 1_000_000);
    let error = outcome.value.unwrap_err();
    assert_eq!(error.message(), "operation cancelled: actual cost limit exceeded");
    assert!(error.is_cost_limit());
    assert!(outcome.cost <= 1_000_010, "{}", outcome.cost);
}

/// Kubernetes charges a pattern by its length, on which the time to compile it does not depend.
#[test]
fn patterns_that_are_expensive_to_compile_end_a_loop() {
    let env = Env::new([]).variable("x", Type::list(Type::String));
    let program = env.compile("x.all(a, x.all(b, 'y'.matches(a + b) || true))").unwrap();
    let run = |patterns: Vec<String>| {
        let list = json!(patterns);
        let bound = Value::from_json(&list, cel::Declared::dynamic()).unwrap();
        program.evaluate(&[("x", bound)], 1_000_000).value.map(|value| value.as_bool().unwrap())
    };
    let different = |class: &str| (1..=25).map(|times| format!("{class}{{{times}}}")).collect::<Vec<_>>();
    assert!(run(different("[a-z]")).unwrap());
    assert!(run(vec![r"\pL{20}".to_owned(); 25]).unwrap(), "the same one is compiled once");
    let error = run(different(r"\pL")).unwrap_err();
    assert!(error.is_cost_limit(), "{error}");
}

#[test]
fn no_operator_absorbs_the_cost_limit() {
    let env = Env::new([]).variable("x", Type::list(Type::Int));
    let numbers = json!([1, 2, 3]);
    for expression in ["x.all(a, a > 0) || true", "x.exists(a, a > 5) && false", "!x.all(a, a > 0) || true"] {
        let program = env.compile(expression).unwrap();
        let bound = Value::from_json(&numbers, cel::Declared::dynamic()).unwrap();
        let error = program.evaluate(&[("x", bound)], 5).value.unwrap_err();
        assert!(error.is_cost_limit(), "{expression}");
    }
}

#[test]
fn deep_expressions_run_on_a_small_stack() {
    let env = Env::new([]).variable("x", Type::Dyn);
    let deep = nested("[x].map(y, ", "1", ")", 249);
    let ternary = nested("x == 1 ? 1 : (2 + ", "3", ")", 120);
    for expression in [deep, ternary, format!("x{}", " + x".repeat(250))] {
        let program = env.compile(&expression).unwrap();
        assert!(program.evaluate(&[("x", Value::Int(1))], 1_000_000).value.is_ok());
    }
}

#[test]
fn doubled_lists_are_not_materialized() {
    let doubled = "x".to_owned() + &".optMap(l, l + l)".repeat(12);
    let env = Env::new([]).variable("x", Type::optional(Type::list(Type::Int)));
    let program = env.compile(&format!("{doubled}.value().size()")).unwrap();
    let list = Value::some(Value::list(vec![Value::Int(1); 1000]));
    let outcome = program.evaluate(&[("x", list)], 1_000_000);
    assert_eq!(outcome.value.unwrap().as_int().unwrap(), 4_096_000);
}
