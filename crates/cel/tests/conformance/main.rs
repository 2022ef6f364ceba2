//! The public CEL conformance cases, as far as they apply. `cargo xtask test` downloads them; without them
//! the test is recorded as not run.

mod cases;
mod values;

use std::collections::BTreeSet;

use cases::{Case, read};
use cel::{Env, Program, Value};
use values::{declared_type, describe, is_expected, to_value};

/// Exclusions with their reasons: a case name, or a prefix with a star.
const EXCLUDED: &str = include_str!("excluded.txt");

/// The cost limit, far above the cost of any case.
const COST_LIMIT: u64 = 10_000_000;

#[test]
fn conformance_cases_pass() {
    let Some(path) = test_tools::provided("cel-spec/conformance.json") else { return };
    let text = std::fs::read_to_string(path).expect("the file is there");
    let cases = read(&serde_json::from_str(&text).expect("the cases are JSON"));
    assert!(cases.len() > 2000, "there are only {} cases", cases.len());
    let count = cases.len();
    let cases: Vec<_> = cases.into_iter().filter(|case| !case.is_about_messages()).collect();
    let excluded: Vec<&str> = EXCLUDED
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(' ').expect("an exclusion has a reason").0)
        .collect();
    let env = Env::new(cel::library::kubernetes::libraries());
    let (mut failures, mut used, mut passed) = (Vec::new(), BTreeSet::new(), 0);
    for case in &cases {
        let pattern = excluded.iter().find(|pattern| matches(pattern, &case.name));
        let result = run(case, &env);
        match (pattern, result) {
            (None, Ok(())) => passed += 1,
            (None, Err(problem)) => failures.push(format!("{} `{}`: {problem}", case.name, case.expr)),
            (Some(pattern), Err(_)) => {
                used.insert(*pattern);
            }
            (Some(pattern), Ok(())) if !pattern.ends_with('*') => {
                failures.push(format!("{} passes: take it off the list of exclusions", case.name));
                used.insert(*pattern);
            }
            (Some(_), Ok(())) => {}
        }
    }
    let unused = excluded.iter().filter(|pattern| !used.contains(**pattern));
    failures.extend(unused.map(|pattern| format!("the exclusion {pattern} excludes nothing")));
    println!("{passed} of {count} cases pass, the others do not apply");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

fn run(case: &Case, env: &Env) -> Result<(), String> {
    let mut env = env.clone();
    for (name, ty) in &case.variables {
        env = env.variable(name, declared_type(ty).ok_or_else(|| format!("unknown type {ty}"))?);
    }
    let program = match env.compile(&case.expr) {
        Ok(program) => program,
        Err(_) if case.is_error => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    check_type(case, &program)?;
    if case.is_check_only {
        return Ok(());
    }
    let mut bindings = Vec::new();
    for (name, value) in &case.bindings {
        bindings.push((name.as_str(), to_value(value).ok_or_else(|| format!("unknown value {value}"))?));
    }
    let outcome = program.evaluate(&bindings, COST_LIMIT);
    match outcome.value {
        Err(_) if case.is_error => Ok(()),
        Err(error) => Err(error.to_string()),
        Ok(value) if case.is_error => Err(format!("is {} and should be an error", describe(&value))),
        Ok(value) => check_value(case, &value),
    }
}

fn check_type(case: &Case, program: &Program) -> Result<(), String> {
    let ty = program.ty().to_string();
    match &case.ty {
        Some(expected) if *expected != ty => Err(format!("has type {ty} and should have {expected}")),
        _ => Ok(()),
    }
}

fn check_value(case: &Case, value: &Value<'_>) -> Result<(), String> {
    match is_expected(value, &case.value) {
        true => Ok(()),
        false => Err(format!("is {} and should be {}", describe(value), case.value)),
    }
}
