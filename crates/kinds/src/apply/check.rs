//! Validates an applied configuration against its type, with Kubernetes' messages.

use serde_json::{Map, Value};

use super::element::Element;
use super::types::{Form, List, Mapping, Node, Relation, Scalar};
use crate::patch::go_text;

/// A type error and its path.
struct Fault {
    path: String,
    problem: String,
}

/// Validates an applied configuration, in which no key may be duplicated.
///
/// # Errors
/// All type errors as one message.
pub(super) fn check(node: Node<'_>, object: &Map<String, Value>) -> Result<(), String> {
    let faults = node.resolve().map.map(|map| of_entries(map, object)).unwrap_or_default();
    let show = |fault: &Fault| match fault.path.as_str() {
        "" => fault.problem.clone(),
        path => format!("{path}: {}", fault.problem),
    };
    match faults.as_slice() {
        [] => Ok(()),
        [one] => Err(show(one)),
        many => {
            let lines: Vec<String> = many.iter().map(|fault| format!("  {}", show(fault))).collect();
            Err(format!("errors:\n{}", lines.join("\n")))
        }
    }
}

fn of_value(node: Node<'_>, value: &Value) -> Vec<Fault> {
    let fault = |problem: String| vec![Fault { path: String::new(), problem }];
    match (node.form(value), value) {
        (_, Value::Null) => Vec::new(),
        (Form::Scalar(scalar), value) => of_scalar(scalar, value).map(fault).unwrap_or_default(),
        (Form::List(list), Value::Array(items)) => of_items(list, items),
        (Form::List(_), value) => fault(format!("expected list, got &{{{}}}", go_text(value))),
        (Form::Map(map), Value::Object(entries)) => of_entries(map, entries),
        (Form::Map(_), value) => fault(format!("expected map, got &{{{}}}", go_text(value))),
    }
}

fn of_scalar(scalar: Scalar, value: &Value) -> Option<String> {
    match (scalar, value) {
        (Scalar::Number, Value::Number(_))
        | (Scalar::Text, Value::String(_))
        | (Scalar::Bool, Value::Bool(_))
        | (Scalar::Any, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Scalar::Number, other) => Some(format!("expected numeric (int or float), got {}", go_type(other))),
        (Scalar::Text, other) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(other)))
        }
        (Scalar::Bool, other) => Some(format!("expected boolean, got &{{{}}}", go_text(other))),
        (Scalar::Any, other) => Some(format!("expected any scalar, got &{{{}}}", go_text(other))),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value in Go syntax.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => model::error::quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("{}:{}", model::error::quote(key), go_syntax(value)));
            format!("map[string]interface {{}}{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn below(element: &Element<'_>, mut faults: Vec<Fault>) -> Vec<Fault> {
    if !faults.is_empty() {
        let element = element.to_string();
        faults.iter_mut().for_each(|fault| fault.path.insert_str(0, &element));
    }
    faults
}

fn of_entries(map: Mapping<'_>, entries: &Map<String, Value>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (name, value) in entries {
        let element = Element::field(name);
        let Some(node) = map.child(name) else {
            faults.push(Fault {
                path: element.to_string(),
                problem: "field not declared in schema".to_owned(),
            });
            break;
        };
        faults.extend(below(&element, of_value(node, value)));
    }
    faults
}

fn of_items(list: List<'_>, items: &[Value]) -> Vec<Fault> {
    let (mut faults, mut seen) = (Vec::new(), Vec::new());
    for (index, item) in (0i64..).zip(items) {
        let element = if let Relation::Atomic = list.relation {
            Element::Index(index)
        } else {
            match list.element(item) {
                Ok(element) => element,
                Err(problem) => {
                    faults
                        .push(Fault { path: String::new(), problem: format!("element {index}: {problem}") });
                    break;
                }
            }
        };
        faults.extend(below(&element, of_value(list.item, item)));
        seen.push(element);
    }
    seen.sort();
    let repeated = seen.chunk_by(|a, b| a == b).filter(|same| same.len() > 1);
    faults.extend(repeated.flat_map(|same| {
        let problem = format!("duplicate entries for key {}", same[0]);
        same[1..].iter().map(move |_| Fault { path: String::new(), problem: problem.clone() })
    }));
    faults
}
