//! The planner: turns a checked AST into an evaluable tree with resolved names, folded constants, overloads
//! and costs.

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

/// A node of a plan.
#[derive(Debug)]
pub(crate) enum Node {
    /// A constant.
    Constant(Value<'static>),
    /// A variable or value with qualifiers.
    Attribute(Box<Attribute>),
    /// A presence test of the last qualifier.
    Test(Box<Attribute>),
    /// Logical and; absorbs errors if one side is false.
    And(Box<(Node, Node)>),
    /// Logical or; absorbs errors if one side is true.
    Or(Box<(Node, Node)>),
    /// A function call.
    Call(Box<CallNode>),
    /// Membership in a list of constants.
    IsAmong(Box<(Node, Vec<Value<'static>>)>),
    /// `optional.or(optional)`.
    OptionalOr(Box<(Node, Node)>),
    /// `optional.orValue(value)`.
    OptionalOrValue(Box<(Node, Node)>),
    /// A list literal.
    List(Box<[Item]>),
    /// A map literal.
    Map(Box<[MapItem]>),
    /// An object literal of a named type.
    Object(Box<ObjectNode>),
    /// Appends to the accumulator of a comprehension, in place.
    Grow(Box<Grow>),
    /// A comprehension.
    Fold(Box<Fold>),
    /// A binding that is evaluated on first use.
    Bind(Box<Bind>),
}

/// An item of a list, or a value of a map.
#[derive(Debug)]
pub(crate) struct Item {
    pub node: Node,
    pub is_optional: bool,
}

/// An object literal.
#[derive(Debug)]
pub(crate) struct ObjectNode {
    pub name: Arc<str>,
    pub fields: Box<[(Arc<str>, Item)]>,
}

/// An entry of a map literal.
#[derive(Debug)]
pub(crate) struct MapItem {
    pub key: Node,
    pub value: Item,
}

/// A base value and a path of qualifiers into it.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub base: AttributeBase,
    pub qualifiers: Vec<Qualifier>,
}

/// The base of an attribute.
#[derive(Debug)]
pub(crate) enum AttributeBase {
    /// A declared variable.
    Global(Arc<str>),
    /// A comprehension variable.
    Local(usize),
    /// A computed value.
    Node(Node),
    /// One of two attributes, chosen by a condition. Reading a variable there costs nothing.
    Conditional(Box<(Node, Attribute, Attribute)>),
}

/// A step into a value.
#[derive(Debug)]
pub(crate) struct Qualifier {
    pub key: QualifierKey,
    /// Whether the result is optional.
    pub is_optional: bool,
}

/// The key of a qualifier.
#[derive(Debug)]
pub(crate) enum QualifierKey {
    /// A field, or a string key.
    Field(String),
    /// A constant key.
    Constant(Value<'static>),
    /// The value of another attribute, which costs only its qualifiers.
    Attribute(Attribute),
    /// A computed key.
    Node(Node),
}

/// A function call.
pub(crate) struct CallNode {
    pub function: &'static str,
    /// The overload, if the argument types determine it.
    pub overload: &'static str,
    pub candidates: Vec<Arc<Overload>>,
    pub args: Vec<Node>,
    /// The compiled pattern, if it is a constant.
    pub regex: Option<Regex>,
    /// The index of the pattern argument, if it is not constant.
    pub pattern: Option<usize>,
    pub costs: [Option<RuntimeCost>; 2],
    pub cost_rule: run::CostRule,
    /// Whether the call is evaluated even if an argument is an error.
    pub is_lenient: bool,
}

impl std::fmt::Debug for CallNode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}{:?}", self.function, self.args)
    }
}

/// An append to an accumulator.
#[derive(Debug)]
pub(crate) struct Grow {
    /// The slot of the accumulator.
    pub slot: usize,
    pub more: More,
}

/// The appended part.
#[derive(Debug)]
pub(crate) enum More {
    /// One item, from a list literal whose creation has this cost.
    Item(Node, u64),
    /// One map entry.
    Entry(Node, Node),
    /// The entries of a map.
    Entries(Node),
}

/// A comprehension.
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

/// A binding.
#[derive(Debug)]
pub(crate) struct Bind {
    pub slot: usize,
    pub init: Node,
    pub result: Node,
}

/// A plan, and the number of slots of its comprehension variables.
pub(crate) struct Plan {
    pub root: Node,
    pub slots: usize,
}

/// Plans a checked expression. Errors that do not depend on variables are returned here.
pub(crate) fn plan(checked: &Checked, env: &Env) -> Result<Plan> {
    let mut planner = Planner { checked, env, locals: Vec::new(), slots: 0 };
    let root = planner.node(&checked.ast.root)?;
    Ok(Plan { root, slots: planner.slots })
}

struct Planner<'p> {
    checked: &'p Checked,
    env: &'p Env,
    /// Comprehension variables and their slots, innermost last.
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
            Some((_, slot)) => AttributeBase::Local(*slot),
            None => AttributeBase::Global(name.into()),
        };
        Node::Attribute(Box::new(Attribute { base, qualifiers: Vec::new() }))
    }

    fn select(&mut self, operand: &'p Expr, field: &str, is_test: bool) -> Result<Node> {
        let mut attribute = into_attribute(self.node(operand)?);
        attribute
            .qualifiers
            .push(Qualifier { key: QualifierKey::Field(field.to_owned()), is_optional: false });
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

/// Converts a node to an attribute.
fn into_attribute(node: Node) -> Box<Attribute> {
    match node {
        Node::Attribute(attribute) => attribute,
        node => Box::new(Attribute { base: AttributeBase::Node(node), qualifiers: Vec::new() }),
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
