//! Cost estimates of expressions, from the AST and the declared sizes of variables.

use std::{collections::HashMap, sync::Arc};

use super::{
    CallEstimate, CostEstimate, CostNode, EstimateCall, LIST_CREATE, MAP_CREATE, STRUCT_CREATE, SizeEstimate,
    Sizes, functions,
};
use crate::{
    Env, Overload, Type,
    check::{Checked, Reference},
    syntax::{ACCUMULATOR, Comprehension, Expr, ExprKind, Literal, operators},
};

/// Estimates the cost of evaluating a checked expression.
pub(crate) fn estimate(checked: &Checked, env: &Env) -> CostEstimate {
    let count = checked.types.len();
    let mut estimator = Estimator {
        checked,
        env,
        paths: vec![Vec::new(); count],
        sizes: vec![None; count],
        entries: vec![None; count],
        locals: HashMap::new(),
    };
    estimator.cost(&checked.ast.root)
}

/// The sizes of keys and values of a list or map that the expression creates.
#[derive(Clone, Copy)]
pub(super) struct EntrySize {
    is_list: bool,
    key: SizeEstimate,
    value: SizeEstimate,
}

impl EntrySize {
    fn or(self, other: EntrySize) -> EntrySize {
        EntrySize { key: self.key.or(other.key), value: self.value.or(other.value), ..self }
    }
}

/// The known path and size of a comprehension variable.
struct Local {
    path: Vec<String>,
    size: Option<SizeEstimate>,
    entry: Option<EntrySize>,
}

pub(super) struct Estimator<'e> {
    checked: &'e Checked,
    env: &'e Env,
    paths: Vec<Vec<String>>,
    sizes: Vec<Option<SizeEstimate>>,
    entries: Vec<Option<EntrySize>>,
    locals: HashMap<&'e str, Vec<Local>>,
}

const ONE: CostEstimate = CostEstimate::fixed(1);

impl<'e> Estimator<'e> {
    fn cost(&mut self, expr: &'e Expr) -> CostEstimate {
        match &expr.kind {
            ExprKind::Literal(_) => CostEstimate::default(),
            ExprKind::Ident(name) => {
                let local = self.locals.get(&**name).and_then(|stack| stack.last());
                self.paths[expr.id as usize] = match local {
                    Some(local) => local.path.clone(),
                    None => vec![name.clone()],
                };
                ONE
            }
            ExprKind::Select { operand, field, is_test } => self.select(expr, operand, field, *is_test),
            ExprKind::Call { target, function, args } => self.call(expr, target.as_deref(), function, args),
            ExprKind::List { items, .. } => self.list(expr, items),
            ExprKind::Map(_) => self.map(expr),
            ExprKind::Struct { fields, .. } => {
                let costs = fields.iter().map(|field| self.cost(&field.value));
                costs.fold(CostEstimate::fixed(STRUCT_CREATE), CostEstimate::plus)
            }
            ExprKind::Comprehension(fold) if is_bind(fold) => self.bind(expr, fold),
            ExprKind::Comprehension(fold) => self.fold(expr, fold),
        }
    }

    fn select(&mut self, expr: &'e Expr, operand: &'e Expr, field: &str, is_test: bool) -> CostEstimate {
        let cost = self.cost(operand);
        if is_test {
            return cost;
        }
        let mut path = self.path(operand).to_vec();
        path.push(field.to_owned());
        self.paths[expr.id as usize] = path;
        match self.checked.ty(operand) {
            Type::Map(_) | Type::Object(_) | Type::Param(_) => cost.plus(ONE),
            _ => cost,
        }
    }

    fn list(&mut self, expr: &'e Expr, items: &'e [Expr]) -> CostEstimate {
        let mut cost = CostEstimate::fixed(LIST_CREATE);
        let mut size = nothing_yet(items.is_empty());
        for item in items {
            cost = cost.plus(self.cost(item));
            size = size.or(self.size_or_unknown(item));
        }
        self.entries[expr.id as usize] =
            Some(EntrySize { is_list: true, key: SizeEstimate::fixed(1), value: size });
        cost
    }

    fn map(&mut self, expr: &'e Expr) -> CostEstimate {
        let ExprKind::Map(entries) = &expr.kind else { return CostEstimate::default() };
        let mut cost = CostEstimate::fixed(MAP_CREATE);
        let (mut key, mut value) = (nothing_yet(entries.is_empty()), nothing_yet(entries.is_empty()));
        for entry in entries {
            cost = cost.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
            key = key.or(self.size_or_unknown(&entry.key));
            value = value.or(self.size_or_unknown(&entry.value));
        }
        self.entries[expr.id as usize] = Some(EntrySize { is_list: false, key, value });
        cost
    }

    fn call(
        &mut self,
        expr: &'e Expr,
        target: Option<&'e Expr>,
        function: &'e str,
        args: &'e [Expr],
    ) -> CostEstimate {
        if let ("dyn", [arg]) = (function, args) {
            let cost = self.cost(arg);
            self.copy_sizes(expr, arg);
            return cost.plus(ONE);
        }
        let mut arg_costs = Vec::with_capacity(args.len());
        let mut nodes = Vec::with_capacity(args.len());
        for arg in args {
            arg_costs.push(self.cost(arg));
            nodes.push(self.cost_node(arg));
        }
        let Some(overloads) = self.overloads(expr) else {
            return self.optional_select(expr, function, args, &arg_costs);
        };
        let target_cost = target.map_or(CostEstimate::default(), |target| self.cost(target));
        let target = target.map(|target| self.cost_node(target));
        let mut cost = CostEstimate { min: u64::MAX, max: 0 };
        let mut result_size: Option<SizeEstimate> = None;
        for overload in overloads {
            let call = FunctionCall { expr, function, overload, target: target.as_ref(), args: &nodes };
            let estimate = self.function_cost(&call, &arg_costs);
            cost = cost.or(estimate.cost);
            result_size = match (result_size, estimate.result_size) {
                (Some(one), Some(two)) => Some(one.or(two)),
                (one, two) => one.or(two),
            };
            let item_path = match overload.id {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let (Some(item_path), Some(operand)) = (item_path, args.first()) {
                result_size = self.entry_size(operand).map(|entry| entry.value);
                let mut path = self.path(operand).to_vec();
                path.push(item_path.to_owned());
                self.paths[expr.id as usize] = path;
            }
            result_size = result_size.or_else(|| self.size(expr));
        }
        if result_size.is_some() {
            self.sizes[expr.id as usize] = result_size;
        }
        target_cost.plus(cost)
    }

    fn overloads(&self, expr: &Expr) -> Option<Vec<&'e Arc<Overload>>> {
        match self.checked.reference(expr)? {
            Reference::Overloads(name, indexes) => {
                let all = &self.env.libraries.functions[name];
                Some(indexes.iter().map(|index| &all[*index]).collect())
            }
            _ => None,
        }
    }

    /// Estimates `a.?b`, which has no overload: one plus its operands.
    fn optional_select(
        &mut self,
        expr: &'e Expr,
        function: &str,
        args: &'e [Expr],
        arg_costs: &[CostEstimate],
    ) -> CostEstimate {
        if function != operators::OPT_SELECT {
            return CostEstimate::default();
        }
        let size = args.first().and(self.size(expr));
        self.sizes[expr.id as usize] = size;
        arg_costs.iter().fold(ONE, |sum, cost| sum.plus(*cost))
    }

    /// Estimates a call: by its overload, then by the libraries, then by the language's own rules.
    fn function_cost(&mut self, call: &FunctionCall<'e, '_>, arg_costs: &[CostEstimate]) -> CallEstimate {
        let args_cost = arg_costs.iter().fold(CostEstimate::default(), |sum, cost| sum.plus(*cost));
        let asked = EstimateCall {
            overload: call.overload.id,
            target: call.target,
            args: call.args,
            sizes: self.env,
        };
        let of_function = self.env.libraries.estimates.get(call.function).copied();
        let said = [call.overload.estimate, of_function].into_iter().flatten().find_map(|said| said(&asked));
        if let Some(said) = said {
            return CallEstimate { cost: said.cost.plus(args_cost), ..said };
        }
        if let Some(said) = functions::estimate(&asked) {
            if matches!(call.overload.id, "add_string" | "add_bytes" | "add_list") {
                self.join_entries(call);
            }
            return CallEstimate { cost: said.cost.plus(args_cost), ..said };
        }
        match (call.overload.id, arg_costs) {
            ("logical_and" | "logical_or", [first, second]) => {
                CallEstimate::of(CostEstimate { min: first.min, max: first.plus(*second).max })
            }
            ("conditional", [condition, if_true, if_false]) => {
                self.join_entries(call);
                let size = |node: &CostNode<'_>| node.computed_size.unwrap_or(SizeEstimate::UNKNOWN);
                let cost = condition.plus(if_true.or(*if_false));
                CallEstimate::sized(cost, size(&call.args[1]).or(size(&call.args[2])))
            }
            _ => CallEstimate::of(ONE.plus(args_cost)),
        }
    }

    /// A call that concatenates its last two operands has entries of either size.
    fn join_entries(&mut self, call: &FunctionCall<'e, '_>) {
        let entry = |index: usize| {
            let expr = call.args.get(call.args.len().checked_sub(index)?)?.expr?;
            self.entry_size(expr)
        };
        if let (Some(one), Some(two)) = (entry(2), entry(1)) {
            self.entries[call.expr.id as usize] = Some(one.or(two));
        }
    }

    fn fold(&mut self, expr: &'e Expr, fold: &'e Comprehension) -> CostEstimate {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_value(&fold.accumulator, &fold.init);
        match &fold.second_variable {
            Some(second) => {
                self.push_entry(&fold.variable, &fold.range, Part::Key);
                self.push_entry(second, &fold.range, Part::Value);
            }
            None => self.push_entry(&fold.variable, &fold.range, Part::Single),
        }
        let round = self.cost(&fold.condition).plus(self.cost(&fold.step));
        self.pop(&fold.variable);
        if let Some(second) = &fold.second_variable {
            self.pop(second);
        }
        sum = sum.plus(self.cost(&fold.result));
        self.pop(&fold.accumulator);
        let rounds = self.size_or_unknown(&fold.range);
        match &fold.init.kind {
            ExprKind::Literal(_) => self.sizes[expr.id as usize] = self.size(&fold.init),
            ExprKind::List { .. } | ExprKind::Map(_) => {
                self.sizes[expr.id as usize] = Some(rounds);
                if let Some(entry) = self.entry_size(&fold.step) {
                    self.entries[expr.id as usize] = Some(entry);
                }
            }
            _ => {}
        }
        sum.plus(rounds.each(round))
    }

    fn bind(&mut self, expr: &'e Expr, fold: &'e Comprehension) -> CostEstimate {
        let sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_value(&fold.accumulator, &fold.init);
        let sum = sum.plus(self.cost(&fold.result));
        self.pop(&fold.accumulator);
        self.copy_sizes(expr, &fold.result);
        sum
    }

    fn push_value(&mut self, name: &'e str, value: &'e Expr) {
        let local =
            Local { path: self.path(value).to_vec(), size: self.size(value), entry: self.entry_size(value) };
        self.locals.entry(name).or_default().push(local);
    }

    /// Adds the comprehension variable of a list or map.
    fn push_entry(&mut self, name: &'e str, range: &'e Expr, part: Part) {
        let entry = self.entry_size(range);
        let is_list = match entry {
            Some(entry) => entry.is_list,
            None => matches!(self.checked.ty(range), Type::List(_)),
        };
        let (is_value, step) = match (part, is_list) {
            (Part::Key, true) => (false, "@indices"),
            (Part::Key | Part::Single, false) => (false, "@keys"),
            (Part::Value, false) => (true, "@values"),
            (Part::Value | Part::Single, true) => (true, "@items"),
        };
        let mut path = self.path(range).to_vec();
        path.push(step.to_owned());
        let size = entry.map(|entry| if is_value { entry.value } else { entry.key });
        self.locals.entry(name).or_default().push(Local { path, size, entry: None });
    }

    fn pop(&mut self, name: &str) {
        if let Some(stack) = self.locals.get_mut(name) {
            stack.pop();
        }
    }

    fn local(&self, expr: &Expr) -> Option<&Local> {
        match &expr.kind {
            ExprKind::Ident(name) => self.locals.get(&**name)?.last(),
            _ => None,
        }
    }

    fn path(&self, expr: &Expr) -> &[String] {
        self.local(expr).map_or(&self.paths[expr.id as usize], |local| &local.path)
    }

    fn cost_node(&self, expr: &'e Expr) -> CostNode<'e> {
        let path = self.path(expr);
        let is_folded = path.first().is_some_and(|root| root == ACCUMULATOR);
        let path = if is_folded { Vec::new() } else { path.to_vec() };
        let ty = self.checked.ty(expr).clone();
        CostNode { path, ty, expr: Some(expr), computed_size: self.size(expr) }
    }

    fn size_or_unknown(&self, expr: &Expr) -> SizeEstimate {
        self.size(expr).unwrap_or(SizeEstimate::UNKNOWN)
    }

    fn size(&self, expr: &Expr) -> Option<SizeEstimate> {
        let ty = self.checked.ty(expr);
        self.sizes[expr.id as usize]
            .or_else(|| literal_size(expr))
            .or_else(|| self.env.size(self.path(expr)))
            .or_else(|| ty.is_scalar().then_some(SizeEstimate::fixed(1)))
            .or_else(|| self.local(expr).and_then(|local| local.size))
    }

    fn entry_size(&self, expr: &Expr) -> Option<EntrySize> {
        self.entries[expr.id as usize].or_else(|| self.local(expr).and_then(|local| local.entry))
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        if let Some(size) = self.size(from) {
            self.sizes[to.id as usize] = Some(size);
        }
        if let Some(entry) = self.entry_size(from) {
            self.entries[to.id as usize] = Some(entry);
        }
    }
}

/// One overload of a call.
struct FunctionCall<'e, 'c> {
    expr: &'e Expr,
    function: &'e str,
    overload: &'e Overload,
    target: Option<&'c CostNode<'e>>,
    args: &'c [CostNode<'e>],
}

/// The part of an entry that a comprehension variable holds.
#[derive(Clone, Copy)]
enum Part {
    Key,
    Value,
    /// The items of a list, or the keys of a map.
    Single,
}

/// The neutral size for a union over items; zero if there are no items.
fn nothing_yet(is_empty: bool) -> SizeEstimate {
    SizeEstimate { min: if is_empty { 0 } else { u64::MAX }, max: 0 }
}

fn is_bind(fold: &Comprehension) -> bool {
    matches!(&fold.range.kind, ExprKind::List { items, .. } if items.is_empty())
        && fold.condition.kind == ExprKind::Literal(Literal::Bool(false))
        && fold.accumulator != "__result__"
}

/// The size of a literal.
fn literal_size(expr: &Expr) -> Option<SizeEstimate> {
    let size = match &expr.kind {
        ExprKind::Literal(Literal::String(text)) => text.chars().count(),
        ExprKind::Literal(Literal::Bytes(bytes)) => bytes.len(),
        ExprKind::Literal(_) => 1,
        ExprKind::List { items, .. } => items.len(),
        ExprKind::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(SizeEstimate::fixed(size as u64))
}

/// Declared sizes of variables. A path without a variable (the items of a computed list) is resolved in the
/// first declared variable, as in Kubernetes.
impl Sizes for Env {
    fn size(&self, path: &[String]) -> Option<SizeEstimate> {
        let (root, steps) = path.split_first()?;
        let named = self.variables.iter().rev().find(|variable| *variable.name == **root);
        let first = || self.variables.iter().find(|variable| variable.declared.is_some());
        let mut declared = named.or_else(first)?.declared.as_deref()?;
        for step in steps {
            declared = match &**step {
                "@items" | "@values" => declared.item.as_deref()?,
                "@keys" => declared.key.as_deref()?,
                field => match &declared.ty {
                    Type::Object(object) => &*object.fields.get(field)?.declared,
                    // The values are of unknown type but have one declared size.
                    Type::Map(pair) if pair.1 == Type::Any => declared.item.as_deref()?,
                    _ => return None,
                },
            };
        }
        Some(SizeEstimate { min: 0, max: declared.max_size })
    }
}
