//! MutatingAdmissionPolicy: compilation and evaluation.

use cel::{Map, Value as CelValue};
use model::Object;
use model::error::Error;
use model::object::{maps, text, value};
use serde_json::Value;

use super::compile::{Composer, Options, Wanted};
use super::conditions::Conditions;
use super::evaluate::{Activation, BUDGET, Expression, Input, Variables};
use super::matching::Criteria;
use super::validating::{param_kind, variables};
use crate::patch::json;

/// A compiled MutatingAdmissionPolicy.
pub struct MutatingPolicy {
    /// Its name.
    pub name: String,
    /// `apiVersion` and kind of its parameters.
    pub param_kind: Option<(String, String)>,
    /// The requests that it mutates.
    pub criteria: Criteria,
    /// Whether its failure policy is `Ignore`.
    pub ignores_failures: bool,
    /// Whether it is called again after other mutations.
    pub is_reinvoked: bool,
    conditions: Conditions,
    variables: Variables,
    mutations: Vec<Mutation>,
}

struct Mutation {
    expression: Expression,
    is_patch: bool,
}

/// A mutation of an object.
#[derive(Debug, PartialEq)]
pub enum MutationResult {
    /// A configuration to apply: [`crate::apply::merge_configuration`].
    Configuration(Object),
    /// JSON patch operations: [`apply_operations`].
    Operations(Vec<Value>),
}

impl MutatingPolicy {
    /// Compiles a valid policy. An expression that does not compile fails at evaluation.
    pub fn compile(object: &Object) -> Self {
        let nothing = Object::new();
        let spec = value(object, &["spec"]).and_then(Value::as_object).unwrap_or(&nothing);
        let param_kind = param_kind(spec);
        let options = Options { has_authorizer: true };
        let mut composer = Composer::new(param_kind.is_some(), true);
        let variables = Variables::compile(variables(spec), &mut composer);
        let mutations = maps(spec, &["mutations"]).map(|(_, mutation)| {
            let is_patch = text(mutation, &["patchType"]) == "JSONPatch";
            let (field, wanted) = match is_patch {
                true => ("jsonPatch", Wanted::Operations),
                false => ("applyConfiguration", Wanted::Configuration),
            };
            let source = text(mutation, &[field, "expression"]);
            let expression = Expression::new(source, composer.compile(source, options, wanted));
            Mutation { expression, is_patch }
        });
        let mutations = mutations.collect();
        let criteria = value(spec, &["matchConstraints"]).and_then(Value::as_object);
        Self {
            name: text(object, &["metadata", "name"]).to_owned(),
            criteria: criteria.map(Criteria::read).unwrap_or_default(),
            ignores_failures: text(spec, &["failurePolicy"]) == "Ignore",
            is_reinvoked: text(spec, &["reinvocationPolicy"]) == "IfNeeded",
            conditions: Conditions::compile(spec, &composer),
            param_kind,
            variables,
            mutations,
        }
    }

    /// Whether the match conditions of the policy hold.
    ///
    /// # Errors
    /// The error of its match conditions.
    pub fn is_about(&self, input: &Input<'_>) -> Result<bool, String> {
        self.conditions.hold(input, &self.variables, self.ignores_failures)
    }

    /// The number of its mutations, which are applied in order.
    pub fn changes(&self) -> usize {
        self.mutations.len()
    }

    /// Evaluates one mutation on the object that the previous ones left.
    ///
    /// # Errors
    /// The reason why the expression fails or returns no mutation.
    pub fn change(&self, index: usize, input: &Input<'_>) -> Result<MutationResult, String> {
        let Mutation { expression, is_patch } = &self.mutations[index];
        if let Err(problem) = &expression.program {
            return Err(problem.clone());
        }
        let activation = Activation::new(input, &self.variables, true);
        let mut budget = BUDGET;
        let made = activation.run(expression, &mut budget).map_err(|out| out.to_string())??;
        match is_patch {
            true => operations(&made).map(MutationResult::Operations),
            false => configuration(&made).map(MutationResult::Configuration),
        }
    }
}

fn configuration(made: &CelValue<'_>) -> Result<Object, String> {
    check_names(made, "Object")?;
    match made.to_json().map_err(|error| error.to_string())? {
        Value::Object(object) => Ok(object),
        _ => Err("unsupported return type from ApplyConfiguration expression".to_owned()),
    }
}

/// The operations that an expression returned, as JSON patch.
fn operations(made: &CelValue<'_>) -> Result<Vec<Value>, String> {
    let list = made.as_list().map_err(|error| error.to_string())?;
    let operations = (0..list.len()).filter_map(|index| list.get(index));
    let operation = |made: cel::Result<CelValue<'_>>| {
        let made = made.map_err(|error| error.to_string())?;
        if let Some(value) = made.as_map().ok().and_then(|map| map.field("value")) {
            let value = value.map_err(|error| error.to_string())?;
            if let CelValue::Map(Map::Made { name, .. }) = &value {
                check_names(&value, name)?;
            }
        }
        made.to_json().map_err(|error| {
            format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}")
        })
    };
    operations.map(operation).collect()
}

/// Checks that the type names of objects match their path.
fn check_names(value: &CelValue<'_>, path: &str) -> Result<(), String> {
    let mut wrong = Vec::new();
    collect_name_errors(value, path, &mut wrong);
    if wrong.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", wrong.join("\n"))) }
}

fn collect_name_errors(value: &CelValue<'_>, path: &str, wrong: &mut Vec<String>) {
    match value {
        CelValue::Map(Map::Made { name, entries }) => {
            if *name != path {
                wrong.push(format!(
                    "unexpected type name \"{name}\", expected \"{path}\", which matches field name path from \
                     root Object type"
                ));
            }
            for (key, value) in entries.iter() {
                collect_name_errors(value, &format!("{path}.{key}"), wrong);
            }
        }
        CelValue::Map(Map::Owned(entries)) => {
            entries.values().for_each(|value| collect_name_errors(value, path, wrong));
        }
        CelValue::List(list) => {
            for item in (0..list.len()).filter_map(|index| list.get(index)?.ok()) {
                collect_name_errors(&item, path, wrong);
            }
        }
        _ => {}
    }
}

/// Patches an object; `None` if a `test` operation fails.
///
/// # Errors
/// An operation fails.
pub fn apply_operations(object: &Value, operations: &[Value]) -> Result<Option<Value>, String> {
    let mut patched = object.clone();
    for operation in operations {
        let kind = operation.get("op").and_then(Value::as_str).unwrap_or_default();
        let path = operation.get("path").and_then(Value::as_str).unwrap_or_default();
        match json::apply(&mut patched, &Value::Array(vec![operation.clone()])) {
            Ok(()) => {}
            Err(_) if kind == "test" => return Ok(None),
            Err(Error::Invalid { .. }) => {
                return Err(format!(
                    "JSON Patch: {kind} operation does not apply: doc is missing path: \"{path}\": missing value"
                ));
            }
            Err(error) => return Err(format!("JSON Patch: {error}")),
        }
    }
    Ok(Some(patched))
}
