//! Planning of calls: operators that the evaluator implements itself, and functions with their overloads.

use std::sync::Arc;

use super::{
    Attribute, AttributeBase, CallNode, Grow, More, Node, Planner, Qualifier, QualifierKey, into_attribute,
};
use crate::{
    Error, Overload, Result, Value,
    check::Reference,
    cost::LIST_CREATE,
    pattern,
    run::{self, CostRule},
    syntax::{ACCUMULATOR, Expr, ExprKind, MAP_INSERT, operators},
};

/// Conversion functions: with a constant argument, the result is a constant.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

impl<'p> Planner<'p> {
    pub(super) fn call(
        &mut self,
        expr: &'p Expr,
        target: Option<&'p Expr>,
        function: &str,
        args: &'p [Expr],
    ) -> Result<Node> {
        if let Some(grow) = self.grow(function, args)? {
            return Ok(grow);
        }
        let nodes = self.nodes(target.into_iter().chain(args))?;
        if let [_, _] = &nodes[..] {
            return self.binary(expr, function, nodes);
        }
        if function == operators::CONDITIONAL {
            return conditional(nodes);
        }
        self.function(expr, nodes)
    }

    /// Plans `accumulator + [item]` and similar expressions, which only macros produce.
    fn grow(&mut self, function: &str, args: &'p [Expr]) -> Result<Option<Node>> {
        let Some((Expr { kind: ExprKind::Ident(name), .. }, more)) = args.split_first() else {
            return Ok(None);
        };
        let slot = match self.locals.iter().rev().find(|(local, _)| local == name) {
            Some((local, slot)) if *local == ACCUMULATOR => *slot,
            _ => return Ok(None),
        };
        let more = match (function, more) {
            (operators::ADD, [Expr { kind: ExprKind::List { items, .. }, .. }]) if items.len() == 1 => {
                let item = self.node(&items[0])?;
                let cost = if matches!(item, Node::Constant(_)) { 0 } else { LIST_CREATE };
                More::Item(item, cost)
            }
            (MAP_INSERT, [key, value]) => More::Entry(self.node(key)?, self.node(value)?),
            (MAP_INSERT, [entries]) => More::Entries(self.node(entries)?),
            _ => return Ok(None),
        };
        Ok(Some(Node::Grow(Box::new(Grow { slot, more }))))
    }

    /// Plans a binary operator; many are not calls at run time.
    fn binary(&mut self, expr: &Expr, function: &str, mut nodes: Vec<Node>) -> Result<Node> {
        let overload = self.single_overload(expr).map(|overload| overload.id);
        if function == operators::IN && overload == Some("in_list") {
            return self.is_in_list(expr, nodes);
        }
        let mut pair = || {
            let second = nodes.pop().expect("there are two");
            let first = nodes.pop().expect("there are two");
            Box::new((first, second))
        };
        match (function, overload) {
            (operators::AND, _) => Ok(Node::And(pair())),
            (operators::OR, _) => Ok(Node::Or(pair())),
            (operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT, _) => {
                let (operand, key) = *pair();
                Ok(index(operand, key, function != operators::INDEX))
            }
            (_, Some("optional_or_optional")) => Ok(Node::OptionalOr(pair())),
            (_, Some("optional_orValue_value")) => Ok(Node::OptionalOrValue(pair())),
            _ => self.function(expr, nodes),
        }
    }

    fn overloads(&self, expr: &Expr) -> Result<(&'static str, Vec<&'p Arc<Overload>>)> {
        let Some(Reference::Overloads(name, indexes)) = self.checked.reference(expr) else {
            return Err(Error::no_such_overload());
        };
        let all = &self.env.libraries.functions[name];
        Ok((name, indexes.iter().map(|index| &all[*index]).collect()))
    }

    fn single_overload(&self, expr: &Expr) -> Option<&'p Arc<Overload>> {
        match self.overloads(expr).ok()?.1[..] {
            [overload] => Some(overload),
            _ => None,
        }
    }

    /// Plans `x in [1, 2]`: comparison with constant primitives costs nothing.
    fn is_in_list(&mut self, expr: &Expr, mut nodes: Vec<Node>) -> Result<Node> {
        let Some(Node::Constant(Value::List(list))) = nodes.last() else { return self.function(expr, nodes) };
        if list.is_empty() {
            return Ok(Node::Constant(Value::Bool(false)));
        }
        let values = list.to_vec()?;
        if !values.iter().all(is_primitive) {
            return self.function(expr, nodes);
        }
        Ok(Node::IsAmong(Box::new((nodes.swap_remove(0), values))))
    }

    fn function(&mut self, expr: &Expr, args: Vec<Node>) -> Result<Node> {
        let (function, overloads) = self.overloads(expr)?;
        let overload = match overloads[..] {
            [overload] => overload.id,
            _ => "",
        };
        let is_constant = CONVERSIONS.contains(&function) && matches!(args[..], [Node::Constant(_)]);
        let pattern = overloads.iter().find_map(|overload| overload.pattern);
        let regex = constant_pattern(pattern, &args)?;
        let of_overload = match overloads[..] {
            [overload] => overload.cost,
            _ => None,
        };
        let costs = [of_overload, self.env.libraries.costs.get(function).copied()];
        let call = CallNode {
            function,
            overload,
            candidates: overloads.into_iter().cloned().collect(),
            args,
            pattern: pattern.filter(|_| regex.is_none()),
            regex,
            costs,
            cost_rule: CostRule::of(overload),
            is_lenient: function == operators::NOT_STRICTLY_FALSE,
        };
        if is_constant { Ok(Node::Constant(run::constant(&call)?)) } else { Ok(Node::Call(Box::new(call))) }
    }
}

fn constant_pattern(index: Option<usize>, args: &[Node]) -> Result<Option<regex::Regex>> {
    match index.and_then(|index| args.get(index)) {
        Some(Node::Constant(Value::String(text))) => pattern::compile(text).map(Some).map_err(Error::new),
        _ => Ok(None),
    }
}

fn is_primitive(value: &Value<'_>) -> bool {
    matches!(value, Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_))
}

/// Plans `a[b]` as a qualifier of `a`.
fn index(operand: Node, index: Node, is_optional: bool) -> Node {
    let mut attribute = into_attribute(operand);
    let key = match index {
        Node::Constant(Value::String(text)) => QualifierKey::Field(text.to_string()),
        Node::Constant(value) => QualifierKey::Constant(value),
        Node::Attribute(attribute) => QualifierKey::Attribute(*attribute),
        node => QualifierKey::Node(node),
    };
    attribute.qualifiers.push(Qualifier { key, is_optional });
    Node::Attribute(attribute)
}

/// Plans `a ? b : c` as the base of an attribute.
fn conditional(nodes: Vec<Node>) -> Result<Node> {
    let [condition, if_true, if_false] =
        <[Node; 3]>::try_from(nodes).map_err(|_| Error::no_such_overload())?;
    let branches = (condition, *into_attribute(if_true), *into_attribute(if_false));
    let base = AttributeBase::Conditional(Box::new(branches));
    Ok(Node::Attribute(Box::new(Attribute { base, qualifiers: Vec::new() })))
}
