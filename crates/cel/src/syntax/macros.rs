//! Macros: calls that the parser expands to larger trees, such as comprehensions, presence tests and optional
//! values.

use super::{
    ast::{Comprehension, Expr, ExprId, ExprKind, Literal},
    operators,
    parser::MAX_NODES,
};

/// The accumulator variable of macros. Expressions cannot spell its name.
pub(crate) const ACCUMULATOR: &str = "@result";
/// The variable of loops that never run.
pub(crate) const UNUSED: &str = "#unused";

/// A call that the parser replaces by a tree.
#[derive(Clone, Copy)]
pub struct Macro {
    /// The function's name.
    pub name: &'static str,
    /// Whether it is called on a receiver.
    pub is_member: bool,
    /// The number of arguments; `None` for any.
    pub args: Option<usize>,
    /// Builds the tree from receiver and arguments.
    pub expand: Expansion,
}

/// Builds a tree from receiver and arguments.
pub type Expansion = fn(&mut Expander<'_>, Option<Expr>, Vec<Expr>) -> Result<Expr, MacroError>;

/// The error of a macro about its arguments.
#[derive(Debug)]
pub struct MacroError {
    /// The node in error; the call itself if there is none.
    pub id: Option<ExprId>,
    /// The error message.
    pub message: String,
}

/// The lookup key of a macro.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MacroKey {
    name: String,
    is_member: bool,
    args: Option<usize>,
}

impl MacroKey {
    pub fn of(name: &str, is_member: bool, args: Option<usize>) -> Self {
        MacroKey { name: name.to_owned(), is_member, args }
    }
}

impl Macro {
    /// A macro with a receiver.
    pub const fn member(name: &'static str, args: usize, expand: Expansion) -> Self {
        Macro { name, is_member: true, args: Some(args), expand }
    }

    /// A macro without a receiver.
    pub const fn global(name: &'static str, args: usize, expand: Expansion) -> Self {
        Macro { name, is_member: false, args: Some(args), expand }
    }

    pub(crate) fn key(&self) -> MacroKey {
        MacroKey::of(self.name, self.is_member, self.args)
    }
}

/// Creates nodes at the position of the expanded call.
pub struct Expander<'p> {
    pub(super) positions: &'p mut Vec<u32>,
    pub(super) position: u32,
}

impl Expander<'_> {
    fn node(&mut self, kind: ExprKind) -> Expr {
        let id = ExprId::try_from(self.positions.len()).expect("the number of nodes is limited");
        self.positions.push(self.position);
        Expr { id, kind }
    }

    /// A literal.
    pub fn literal(&mut self, literal: Literal) -> Expr {
        self.node(ExprKind::Literal(literal))
    }

    /// An identifier.
    pub fn ident(&mut self, name: &str) -> Expr {
        self.node(ExprKind::Ident(name.to_owned()))
    }

    /// The accumulator variable.
    pub fn accumulator(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    /// A list literal.
    pub fn list(&mut self, items: Vec<Expr>) -> Expr {
        self.node(ExprKind::List { items, optional: Vec::new() })
    }

    /// An empty map literal.
    pub fn empty_map(&mut self) -> Expr {
        self.node(ExprKind::Map(Vec::new()))
    }

    /// A call of a function or an operator.
    pub fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        self.node(ExprKind::Call { target: None, function: function.to_owned(), args })
    }

    /// A member call.
    pub fn member_call(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        let target = Some(Box::new(target));
        self.node(ExprKind::Call { target, function: function.to_owned(), args })
    }

    /// A comprehension.
    pub fn comprehension(&mut self, comprehension: Comprehension) -> Expr {
        self.node(ExprKind::Comprehension(Box::new(comprehension)))
    }

    /// `expr` with a variable for a value that is evaluated once.
    pub fn bind(&mut self, name: &str, value: Expr, expr: Expr) -> Expr {
        let comprehension = Comprehension {
            range: self.list(Vec::new()),
            variable: UNUSED.to_owned(),
            second_variable: None,
            accumulator: name.to_owned(),
            init: value,
            condition: self.literal(Literal::Bool(false)),
            step: self.ident(name),
            result: expr,
        };
        self.comprehension(comprehension)
    }

    /// A copy of a tree with new ids.
    pub fn copy(&mut self, expr: &Expr) -> Result<Expr, MacroError> {
        let mut copy = expr.clone();
        self.renumber(&mut copy)?;
        Ok(copy)
    }

    fn renumber(&mut self, expr: &mut Expr) -> Result<(), MacroError> {
        if self.positions.len() >= MAX_NODES {
            let message = format!("expression node limit exceeded: {MAX_NODES}");
            return Err(MacroError { id: None, message });
        }
        let position = self.positions[expr.id as usize];
        expr.id = ExprId::try_from(self.positions.len()).expect("the number of nodes is limited");
        self.positions.push(position);
        match &mut expr.kind {
            ExprKind::Map(entries) => entries.iter_mut().for_each(|entry| entry.id = expr.id),
            ExprKind::Struct { fields, .. } => fields.iter_mut().for_each(|field| field.id = expr.id),
            _ => {}
        }
        expr.children_mut().into_iter().try_for_each(|child| self.renumber(child))
    }
}

/// The name of an argument that must be an identifier.
fn simple_name(expr: &Expr, message: &str) -> Result<String, MacroError> {
    let error = |message: &str| MacroError { id: Some(expr.id), message: message.to_owned() };
    match &expr.kind {
        ExprKind::Ident(name) if name == ACCUMULATOR || name == "__result__" => {
            Err(error("iteration variable overwrites accumulator variable"))
        }
        ExprKind::Ident(name) => Ok(name.clone()),
        _ => Err(error(message)),
    }
}

const MUST_BE_NAME: &str = "argument must be a simple name";
const NOT_A_NAME: &str = "argument is not an identifier";

/// The loop variables: the first one or two arguments.
struct Variables {
    first: String,
    second: Option<String>,
}

fn one_variable(args: &mut Vec<Expr>, message: &str) -> Result<Variables, MacroError> {
    Ok(Variables { first: simple_name(&args.remove(0), message)?, second: None })
}

fn two_variables(args: &mut Vec<Expr>) -> Result<Variables, MacroError> {
    let (first_arg, second_arg) = (args.remove(0), args.remove(0));
    let first = simple_name(&first_arg, MUST_BE_NAME)?;
    let second = simple_name(&second_arg, MUST_BE_NAME)?;
    if first == second {
        let message = format!("duplicate variable name: {first}");
        return Err(MacroError { id: Some(second_arg.id), message });
    }
    Ok(Variables { first, second: Some(second) })
}

/// The components of a comprehension besides its range and variables.
struct Fold {
    init: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
}

fn fold(expander: &mut Expander<'_>, range: Option<Expr>, variables: Variables, fold: Fold) -> Expr {
    let range = range.expect("macros with a range are called on a receiver");
    expander.comprehension(Comprehension {
        range,
        variable: variables.first,
        second_variable: variables.second,
        accumulator: ACCUMULATOR.to_owned(),
        init: fold.init,
        condition: fold.condition,
        step: fold.step,
        result: fold.result,
    })
}

fn has(expander: &mut Expander<'_>, _: Option<Expr>, mut args: Vec<Expr>) -> Result<Expr, MacroError> {
    let arg = args.remove(0);
    match arg.kind {
        ExprKind::Select { operand, field, is_test: false } => {
            Ok(expander.node(ExprKind::Select { operand, field, is_test: true }))
        }
        _ => Err(MacroError { id: Some(arg.id), message: "invalid argument to has() macro".to_owned() }),
    }
}

fn all(expander: &mut Expander<'_>, range: Option<Expr>, variables: Variables, predicate: Expr) -> Expr {
    let init = expander.literal(Literal::Bool(true));
    let accumulator = expander.accumulator();
    let condition = expander.call(operators::NOT_STRICTLY_FALSE, vec![accumulator]);
    let accumulator = expander.accumulator();
    let step = expander.call(operators::AND, vec![accumulator, predicate]);
    let result = expander.accumulator();
    fold(expander, range, variables, Fold { init, condition, step, result })
}

fn exists(expander: &mut Expander<'_>, range: Option<Expr>, variables: Variables, predicate: Expr) -> Expr {
    let init = expander.literal(Literal::Bool(false));
    let accumulator = expander.accumulator();
    let negated = expander.call(operators::NOT, vec![accumulator]);
    let condition = expander.call(operators::NOT_STRICTLY_FALSE, vec![negated]);
    let accumulator = expander.accumulator();
    let step = expander.call(operators::OR, vec![accumulator, predicate]);
    let result = expander.accumulator();
    fold(expander, range, variables, Fold { init, condition, step, result })
}

fn exists_one(
    expander: &mut Expander<'_>,
    range: Option<Expr>,
    variables: Variables,
    predicate: Expr,
) -> Expr {
    let init = expander.literal(Literal::Int(0));
    let condition = expander.literal(Literal::Bool(true));
    let (accumulator, one) = (expander.accumulator(), expander.literal(Literal::Int(1)));
    let more = expander.call(operators::ADD, vec![accumulator, one]);
    let accumulator = expander.accumulator();
    let step = expander.call(operators::CONDITIONAL, vec![predicate, more, accumulator]);
    let (accumulator, one) = (expander.accumulator(), expander.literal(Literal::Int(1)));
    let result = expander.call(operators::EQUALS, vec![accumulator, one]);
    fold(expander, range, variables, Fold { init, condition, step, result })
}

type Quantifier = fn(&mut Expander<'_>, Option<Expr>, Variables, Expr) -> Expr;

fn quantifier<'e, 'p>(
    expander: &'e mut Expander<'p>,
    range: Option<Expr>,
    mut args: Vec<Expr>,
    make: Quantifier,
) -> Result<Expr, MacroError> {
    let variables =
        if args.len() == 2 { one_variable(&mut args, MUST_BE_NAME)? } else { two_variables(&mut args)? };
    Ok(make(expander, range, variables, args.remove(0)))
}

/// A list that grows by one item per iteration, or only in iterations that satisfy a predicate.
fn growing(
    expander: &mut Expander<'_>,
    range: Option<Expr>,
    variables: Variables,
    predicate: Option<Expr>,
    item: Expr,
) -> Expr {
    let init = expander.list(Vec::new());
    let condition = expander.literal(Literal::Bool(true));
    let (accumulator, item) = (expander.accumulator(), expander.list(vec![item]));
    let step = expander.call(operators::ADD, vec![accumulator, item]);
    let step = filtered(expander, predicate, step);
    let result = expander.accumulator();
    fold(expander, range, variables, Fold { init, condition, step, result })
}

fn filtered(expander: &mut Expander<'_>, predicate: Option<Expr>, step: Expr) -> Expr {
    let Some(predicate) = predicate else { return step };
    let accumulator = expander.accumulator();
    expander.call(operators::CONDITIONAL, vec![predicate, step, accumulator])
}

/// The last argument, and the one before it if there is an additional argument.
fn predicate_and_last(mut args: Vec<Expr>) -> (Option<Expr>, Expr) {
    let last = args.pop().expect("the number of arguments is fixed");
    (args.pop(), last)
}

/// Expands `range.map(item, value)`; libraries use it too.
pub(crate) fn map(
    e: &mut Expander<'_>,
    range: Option<Expr>,
    mut args: Vec<Expr>,
) -> Result<Expr, MacroError> {
    let variables = one_variable(&mut args, NOT_A_NAME)?;
    let (predicate, item) = predicate_and_last(args);
    Ok(growing(e, range, variables, predicate, item))
}

fn filter(e: &mut Expander<'_>, range: Option<Expr>, mut args: Vec<Expr>) -> Result<Expr, MacroError> {
    let variables = one_variable(&mut args, NOT_A_NAME)?;
    let item = e.ident(&variables.first);
    Ok(growing(e, range, variables, args.pop(), item))
}

fn transform_list(
    e: &mut Expander<'_>,
    range: Option<Expr>,
    mut args: Vec<Expr>,
) -> Result<Expr, MacroError> {
    let variables = two_variables(&mut args)?;
    let (predicate, item) = predicate_and_last(args);
    Ok(growing(e, range, variables, predicate, item))
}

/// The function that inserts an entry, or the entries of a map, into the accumulator.
pub(crate) const MAP_INSERT: &str = "cel.@mapInsert";

fn transform_map(e: &mut Expander<'_>, range: Option<Expr>, mut args: Vec<Expr>) -> Result<Expr, MacroError> {
    let variables = two_variables(&mut args)?;
    let (predicate, value) = predicate_and_last(args);
    let insert = vec![e.accumulator(), e.ident(&variables.first), value];
    Ok(growing_map(e, range, variables, predicate, insert))
}

fn transform_map_entry(
    e: &mut Expander<'_>,
    range: Option<Expr>,
    mut args: Vec<Expr>,
) -> Result<Expr, MacroError> {
    let variables = two_variables(&mut args)?;
    let (predicate, entry) = predicate_and_last(args);
    let insert = vec![e.accumulator(), entry];
    Ok(growing_map(e, range, variables, predicate, insert))
}

fn growing_map(
    expander: &mut Expander<'_>,
    range: Option<Expr>,
    variables: Variables,
    predicate: Option<Expr>,
    insert: Vec<Expr>,
) -> Expr {
    let init = expander.empty_map();
    let condition = expander.literal(Literal::Bool(true));
    let step = expander.call(MAP_INSERT, insert);
    let step = filtered(expander, predicate, step);
    let result = expander.accumulator();
    fold(expander, range, variables, Fold { init, condition, step, result })
}

fn opt_map(e: &mut Expander<'_>, target: Option<Expr>, args: Vec<Expr>) -> Result<Expr, MacroError> {
    on_value(e, target, args, "optMap", true)
}

fn opt_flat_map(e: &mut Expander<'_>, target: Option<Expr>, args: Vec<Expr>) -> Result<Expr, MacroError> {
    on_value(e, target, args, "optFlatMap", false)
}

/// Applies an expression to the value of an optional, if present.
fn on_value(
    expander: &mut Expander<'_>,
    target: Option<Expr>,
    mut args: Vec<Expr>,
    name: &str,
    is_wrapped: bool,
) -> Result<Expr, MacroError> {
    let target = target.expect("it is called on a receiver");
    let variable = args.remove(0);
    let ExprKind::Ident(variable) = variable.kind else {
        let message = format!("{name}() variable name must be a simple identifier");
        return Err(MacroError { id: Some(variable.id), message });
    };
    let copy = expander.copy(&target)?;
    let value = expander.member_call("value", copy, Vec::new());
    let mapped = expander.bind(&variable, value, args.remove(0));
    let mapped = if is_wrapped { expander.call("optional.of", vec![mapped]) } else { mapped };
    let has_value = expander.member_call("hasValue", target, Vec::new());
    let none = expander.call("optional.none", Vec::new());
    Ok(expander.call(operators::CONDITIONAL, vec![has_value, mapped, none]))
}

/// The macros of the language, of optional values and of two-variable comprehensions.
pub(crate) fn standard_macros() -> Vec<Macro> {
    let mut macros = vec![
        Macro::global("has", 1, has),
        Macro::member("map", 2, map),
        Macro::member("map", 3, map),
        Macro::member("filter", 2, filter),
        Macro::member("optMap", 2, opt_map),
        Macro::member("optFlatMap", 2, opt_flat_map),
    ];
    for args in [2, 3] {
        macros.push(Macro::member("all", args, |e, range, args| quantifier(e, range, args, all)));
        macros.push(Macro::member("exists", args, |e, range, args| quantifier(e, range, args, exists)));
        macros
            .push(Macro::member("exists_one", args, |e, range, args| quantifier(e, range, args, exists_one)));
    }
    macros.push(Macro::member("existsOne", 3, |e, range, args| quantifier(e, range, args, exists_one)));
    for args in [3, 4] {
        macros.push(Macro::member("transformList", args, transform_list));
        macros.push(Macro::member("transformMap", args, transform_map));
        macros.push(Macro::member("transformMapEntry", args, transform_map_entry));
    }
    macros
}
