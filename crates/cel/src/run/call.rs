//! Evaluation of function calls, and their costs.

use super::{Run, pattern::Compiled};
use crate::{
    Call, Error, Result, Value,
    cost::{REGEX_LENGTH_FACTOR, RuntimeCall, STRING_TRAVERSAL_FACTOR, compares},
    plan::CallNode,
    syntax::operators,
};

/// The default cost of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CostRule {
    One,
    /// Proportional to the size of the first argument.
    First,
    /// Proportional to the number of items in the second argument.
    EachOfSecond,
    /// Proportional to the shorter argument, for comparisons.
    Shorter,
    /// Proportional to the sum of both sizes, for copies.
    Sum,
    /// The cost of a regular expression match.
    Matches,
    /// Proportional to the product of both sizes, for searches.
    Product,
}

impl CostRule {
    pub fn of(overload: &str) -> CostRule {
        match overload {
            "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
            | "strings_quote" | "string_format" => CostRule::First,
            "in_list" => CostRule::EachOfSecond,
            overload if compares(overload) => CostRule::Shorter,
            "add_string" | "add_bytes" => CostRule::Sum,
            "matches_string" => CostRule::Matches,
            "contains_string" => CostRule::Product,
            _ => CostRule::One,
        }
    }

    fn cost(self, args: &[Value<'_>]) -> u64 {
        let size = |index: usize| args.get(index).map_or(1, Value::cost_size) as f64;
        let walked = |size: f64| (size * STRING_TRAVERSAL_FACTOR).ceil() as u64;
        match self {
            CostRule::One => 1,
            CostRule::First => walked(size(0)),
            CostRule::EachOfSecond => size(1) as u64,
            CostRule::Shorter => walked(size(0).min(size(1))),
            CostRule::Sum => walked(size(0) + size(1)),
            CostRule::Matches => {
                walked(1.0 + size(0)).saturating_mul((size(1) * REGEX_LENGTH_FACTOR).ceil() as u64)
            }
            CostRule::Product => walked(size(0)).saturating_mul(walked(size(1))),
        }
    }
}

/// Evaluates a call with constant arguments.
pub(crate) fn constant(call: &CallNode) -> Result<Value<'static>> {
    let args = call.args.iter().map(|arg| match arg {
        crate::plan::Node::Constant(value) => Ok(value.clone()),
        _ => Err(Error::no_such_overload()),
    });
    invoke(call, &args.collect::<Result<Vec<_>>>()?, None)
}

fn invoke<'a>(call: &CallNode, args: &[Value<'a>], pattern: Option<&Compiled>) -> Result<Value<'a>> {
    let fits = |params: &[crate::Type]| args.iter().zip(params).all(|(arg, param)| arg.fits(param));
    match call.candidates.iter().find(|overload| fits(&overload.params)) {
        Some(overload) => {
            let made = pattern.map(|made| made.as_ref().map_err(String::as_str));
            (overload.call)(&Call { regex: call.regex.as_ref().map(Ok).or(made) }, args)
        }
        None => Err(no_overload(call, args)),
    }
}

fn no_overload(call: &CallNode, args: &[Value<'_>]) -> Error {
    let named = || Error::new(format!("no such overload: {}", call.function));
    let is_operator = call.function.contains('_') || call.function.starts_with('@');
    let is_standard = is_operator || matches!(call.function, "size" | "matches");
    match (call.function, args) {
        ("contains" | "startsWith" | "endsWith", _) => Error::no_such_overload(),
        // cel-go dispatches to these receivers themselves, which report a generic error.
        (_, [Value::String(_) | Value::Duration(_) | Value::Timestamp(_), ..]) if is_standard => {
            Error::no_such_overload()
        }
        ("size" | "matches", _) => named(),
        (function, [operand, ..]) if is_operator && !has_operator(function, operand) => named(),
        _ if is_operator => Error::no_such_overload(),
        _ => {
            let types: Vec<_> = args.iter().map(|arg| arg.ty().name().to_owned()).collect();
            Error::new(format!("no such overload: {}({})", call.function, types.join(", ")))
        }
    }
}

/// Whether the operand's type supports an operator at all.
fn has_operator(function: &str, operand: &Value<'_>) -> bool {
    use Value::{Bool, Bytes, Double, Duration, Int, List, String, Timestamp, Uint};
    match function {
        operators::ADD => {
            matches!(operand, Bytes(_) | List(_) | String(_)) || has_operator(operators::SUBTRACT, operand)
        }
        operators::SUBTRACT => {
            matches!(operand, Duration(_) | Timestamp(_)) || has_operator(operators::MULTIPLY, operand)
        }
        operators::MULTIPLY | operators::DIVIDE => matches!(operand, Double(_) | Int(_) | Uint(_)),
        operators::MODULO => matches!(operand, Int(_) | Uint(_)),
        operators::NEGATE => matches!(operand, Bool(_) | Double(_) | Duration(_) | Int(_)),
        operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS => {
            matches!(operand, Bool(_) | Bytes(_) | String(_)) || has_operator(operators::SUBTRACT, operand)
        }
        _ => true,
    }
}

impl<'a> Run<'a, '_> {
    pub(super) fn call(&mut self, call: &'a CallNode) -> Result<Value<'a>> {
        match &call.args[..] {
            [arg] => {
                let arg = self.node(arg);
                self.finish(call, [arg])
            }
            [first, second] => {
                let first = self.node(first);
                // With a precompiled pattern, an error in the first argument ends the call.
                if first.as_ref().is_err_and(|error| call.regex.is_some() || error.is_cost_limit()) {
                    return first;
                }
                let second = self.node(second);
                self.finish(call, [first, second])
            }
            args => {
                let mut values = Vec::with_capacity(args.len());
                for (index, arg) in args.iter().enumerate() {
                    let is_last = index + 1 == args.len();
                    let value = self.node(arg);
                    values.push(if is_last { self.argument(value)? } else { value? });
                }
                self.charged(call, &values)
            }
        }
    }

    /// Finishes a call whose arguments may be errors, which only one function accepts. An error counts as a
    /// value of size one.
    fn finish<const N: usize>(&mut self, call: &CallNode, args: [Result<Value<'a>>; N]) -> Result<Value<'a>> {
        let error = args.iter().find_map(|arg| arg.as_ref().err()).cloned();
        if error.as_ref().is_some_and(Error::is_cost_limit) {
            return Err(error.unwrap_or_else(Error::cost_limit));
        }
        let args = args.map(|arg| arg.unwrap_or(Value::Null));
        let Some(error) = error else { return self.charged(call, &args) };
        self.charge(cost(call, &args, &Value::Null))?;
        if call.is_lenient { Ok(Value::Bool(true)) } else { Err(error) }
    }

    fn charged(&mut self, call: &CallNode, args: &[Value<'a>]) -> Result<Value<'a>> {
        let pattern = self.pattern(call, args)?;
        let result = invoke(call, args, pattern.as_ref());
        self.charge(cost(call, args, result.as_ref().unwrap_or(&Value::Null)))?;
        result
    }
}

/// The actual cost of a call.
fn cost<'a>(call: &CallNode, args: &[Value<'a>], result: &Value<'a>) -> u64 {
    let ran = RuntimeCall { overload: call.overload, args, result };
    let said = call.costs.iter().flatten().find_map(|cost| cost(&ran));
    said.unwrap_or_else(|| call.cost_rule.cost(args))
}
