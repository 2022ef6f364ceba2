//! From a checked tree to one that runs: names are resolved, constants computed, overloads and costs looked up.

mod call;

use std::sync::Arc;

use regex::Regex;

use crate::{
    Env, Error, Key, Overload, Result, Str, Value,
    check::{Checked, Reference},
    cost::RuntimeCost,
    run,
    syntax::{Comprehension, Expr, ExprKind, Literal},
};

/// A step of a program.
#[derive(Debug)]
pub(crate) enum Node {
    /// A value that is known.
    Constant(Value<'static>),
    /// A variable or another value, and a way into it.
    Attribute(Box<Attribute>),
    /// Whether the last step of a way into a value leads to something.
    Test(Box<Attribute>),
    /// Both, as far as errors allow.
    And(Box<(Node, Node)>),
    /// Either, as far as errors allow.
    Or(Box<(Node, Node)>),
    /// A call of a function.
    Call(Box<CallNode>),
    /// Whether a value is among constants.
    IsAmong(Box<(Node, Vec<Value<'static>>)>),
    /// The first of two optional values that is there.
    OptionalOr(Box<(Node, Node)>),
    /// What an optional value holds, or something else.
    OptionalOrValue(Box<(Node, Node)>),
    /// A list.
    List(Box<[Item]>),
    /// A map.
    Map(Box<[MapItem]>),
    /// An object of a type that the expression names.
    Object(Box<ObjectNode>),
    /// What a loop builds, with more in it. It is changed in place.
    Grow(Box<Grow>),
    /// A loop.
    Fold(Box<Fold>),
    /// A name for a value that is computed when it is first used.
    Bind(Box<Bind>),
}

/// An item of a list, or a value of a map.
#[derive(Debug)]
pub(crate) struct Item {
    pub node: Node,
    pub is_optional: bool,
}

/// An object that an expression makes.
#[derive(Debug)]
pub(crate) struct ObjectNode {
    pub name: Arc<str>,
    pub fields: Box<[(Arc<str>, Item)]>,
}

/// An entry of a map.
#[derive(Debug)]
pub(crate) struct MapItem {
    pub key: Node,
    pub value: Item,
}

/// A value, and a way into it.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub base: Base,
    pub steps: Vec<Step>,
}

/// Where a way begins.
#[derive(Debug)]
pub(crate) enum Base {
    /// At a declared variable.
    Global(Arc<str>),
    /// At a variable of a loop.
    Local(usize),
    /// At a value that is computed.
    Node(Node),
    /// At one of two, which is for a condition to decide. Reading a variable there costs nothing.
    Conditional(Box<(Node, Attribute, Attribute)>),
}

/// A step into a value.
#[derive(Debug)]
pub(crate) struct Step {
    pub key: StepKey,
    /// Whether it may lead to nothing.
    pub is_optional: bool,
}

/// What a step looks for.
#[derive(Debug)]
pub(crate) enum StepKey {
    /// A field, or a key that is text.
    Field(String),
    /// A constant.
    Constant(Value<'static>),
    /// What stands at the end of another way; walking it costs its steps alone.
    Attribute(Attribute),
    /// A value that is computed.
    Node(Node),
}

/// A call of a function.
pub(crate) struct CallNode {
    pub function: &'static str,
    /// The overload, if the types of the arguments decide it.
    pub overload: &'static str,
    pub candidates: Vec<Arc<Overload>>,
    pub args: Vec<Node>,
    /// The pattern, if it is a constant.
    pub regex: Option<Regex>,
    /// Which argument is a pattern, if it is none.
    pub pattern: Option<usize>,
    pub costs: [Option<RuntimeCost>; 2],
    pub cost_rule: run::CostRule,
    /// Whether it is computed although an argument is an error.
    pub is_lenient: bool,
}

impl std::fmt::Debug for CallNode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}{:?}", self.function, self.args)
    }
}

/// What a loop builds, with more in it.
#[derive(Debug)]
pub(crate) struct Grow {
    /// The variable that holds it.
    pub slot: usize,
    pub more: More,
}

/// What is added.
#[derive(Debug)]
pub(crate) enum More {
    /// An item, which stands in a list of its own; making that list has a cost.
    Item(Node, u64),
    /// An entry.
    Entry(Node, Node),
    /// The entries of a map.
    Entries(Node),
}

/// A loop.
#[derive(Debug)]
pub(crate) struct Fold {
    pub range: Node,
    pub first: usize,
    pub second: Option<usize>,
    pub accumulator: usize,
    pub init: Node,
    pub condition: Node,
    pub step: Node,
    pub result: Node,
}

/// A name for a value.
#[derive(Debug)]
pub(crate) struct Bind {
    pub slot: usize,
    pub init: Node,
    pub result: Node,
}

/// A plan, and how many variables its loops have together.
pub(crate) struct Plan {
    pub root: Node,
    pub slots: usize,
}

/// Plans a checked expression. What is an error whatever the variables hold is found here.
pub(crate) fn plan(checked: &Checked, env: &Env) -> Result<Plan> {
    let mut planner = Planner { checked, env, locals: Vec::new(), slots: 0 };
    let root = planner.node(&checked.ast.root)?;
    Ok(Plan { root, slots: planner.slots })
}

struct Planner<'p> {
    checked: &'p Checked,
    env: &'p Env,
    /// Variables of loops and their places, the innermost last.
    locals: Vec<(&'p str, usize)>,
    slots: usize,
}

impl<'p> Planner<'p> {
    fn node(&mut self, expr: &'p Expr) -> Result<Node> {
        match &expr.kind {
            ExprKind::Literal(literal) => Ok(Node::Constant(constant(literal))),
            ExprKind::Ident(name) => Ok(self.ident(expr, name)),
            ExprKind::Select { operand, field, is_test } => self.select(operand, field, *is_test),
            ExprKind::Call { target, function, args } => self.call(expr, target.as_deref(), function, args),
            ExprKind::List { items, optional } => self.list(items, optional),
            ExprKind::Map(_) => self.map(expr),
            ExprKind::Struct { .. } => self.object(expr),
            ExprKind::Comprehension(fold) => self.comprehension(fold),
        }
    }

    fn nodes(&mut self, exprs: impl Iterator<Item = &'p Expr>) -> Result<Vec<Node>> {
        exprs.map(|expr| self.node(expr)).collect()
    }

    fn ident(&self, expr: &Expr, name: &str) -> Node {
        if let Some(Reference::Type(ty)) = self.checked.reference(expr) {
            return Node::Constant(Value::Type(ty.clone()));
        }
        let local = self.locals.iter().rev().find(|(local, _)| *local == name);
        let base = match local {
            Some((_, slot)) => Base::Local(*slot),
            None => Base::Global(name.into()),
        };
        Node::Attribute(Box::new(Attribute { base, steps: Vec::new() }))
    }

    fn select(&mut self, operand: &'p Expr, field: &str, is_test: bool) -> Result<Node> {
        let mut attribute = into_attribute(self.node(operand)?);
        attribute.steps.push(Step { key: StepKey::Field(field.to_owned()), is_optional: false });
        Ok(if is_test { Node::Test(attribute) } else { Node::Attribute(attribute) })
    }

    fn list(&mut self, items: &'p [Expr], optional: &[usize]) -> Result<Node> {
        let nodes = self.nodes(items.iter())?;
        let is_constant = optional.is_empty() && nodes.iter().all(|node| matches!(node, Node::Constant(_)));
        if is_constant {
            let values = nodes.into_iter().filter_map(into_constant).collect();
            return Ok(Node::Constant(Value::list(values)));
        }
        let items = nodes.into_iter().enumerate();
        let items = items.map(|(index, node)| Item { node, is_optional: optional.contains(&index) });
        Ok(Node::List(items.collect()))
    }

    fn map(&mut self, expr: &'p Expr) -> Result<Node> {
        let ExprKind::Map(entries) = &expr.kind else { return Err(Error::no_such_overload()) };
        let mut items = Vec::with_capacity(entries.len());
        for entry in entries {
            let key = self.node(&entry.key)?;
            let value = Item { node: self.node(&entry.value)?, is_optional: entry.is_optional };
            items.push(MapItem { key, value });
        }
        let is_constant = |item: &MapItem| {
            matches!((&item.key, &item.value), (Node::Constant(key), Item { node: Node::Constant(_), is_optional: false })
                if Key::from_value(key).is_some())
        };
        if !items.iter().all(is_constant) {
            return Ok(Node::Map(items.into()));
        }
        let entries = items.into_iter().filter_map(|item| {
            Some((Key::from_value(&into_constant(item.key)?)?, into_constant(item.value.node)?))
        });
        Ok(Node::Constant(Value::Map(crate::Map::Owned(Arc::new(entries.collect())))))
    }

    fn object(&mut self, expr: &'p Expr) -> Result<Node> {
        let ExprKind::Struct { name, fields } = &expr.kind else { return Err(Error::no_such_overload()) };
        let field = |field: &'p crate::syntax::FieldInit| {
            let item = Item { node: self.node(&field.value)?, is_optional: field.is_optional };
            Ok((field.name.as_str().into(), item))
        };
        let fields = fields.iter().map(field).collect::<Result<_>>()?;
        Ok(Node::Object(Box::new(ObjectNode { name: name.as_str().into(), fields })))
    }

    fn slot(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    fn comprehension(&mut self, fold: &'p Comprehension) -> Result<Node> {
        let range = self.node(&fold.range)?;
        let init = self.node(&fold.init)?;
        let accumulator = self.slot();
        self.locals.push((&fold.accumulator, accumulator));
        let never_runs = matches!(&range, Node::Constant(Value::List(list)) if list.is_empty());
        if never_runs && fold.accumulator != crate::syntax::ACCUMULATOR {
            let result = self.node(&fold.result)?;
            self.locals.pop();
            return Ok(Node::Bind(Box::new(Bind { slot: accumulator, init, result })));
        }
        let outer = self.locals.len();
        let first = self.slot();
        self.locals.push((&fold.variable, first));
        let second = fold.second_variable.as_ref().map(|name| (name, self.slot()));
        self.locals.extend(second.map(|(name, slot)| (name.as_str(), slot)));
        let condition = self.node(&fold.condition)?;
        let step = self.node(&fold.step)?;
        self.locals.truncate(outer);
        let result = self.node(&fold.result)?;
        self.locals.pop();
        let second = second.map(|(_, slot)| slot);
        let fold = Fold { range, first, second, accumulator, init, condition, step, result };
        Ok(Node::Fold(Box::new(fold)))
    }
}

/// A node as the beginning of a way.
fn into_attribute(node: Node) -> Box<Attribute> {
    match node {
        Node::Attribute(attribute) => attribute,
        node => Box::new(Attribute { base: Base::Node(node), steps: Vec::new() }),
    }
}

fn into_constant(node: Node) -> Option<Value<'static>> {
    match node {
        Node::Constant(value) => Some(value),
        _ => None,
    }
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(number) => Value::Int(*number),
        Literal::Uint(number) => Value::Uint(*number),
        Literal::Double(number) => Value::Double(*number),
        Literal::String(text) => Value::String(Str::Shared(text.as_str().into())),
        Literal::Bytes(bytes) => Value::Bytes(bytes.as_slice().into()),
    }
}
