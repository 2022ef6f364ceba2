//! What a library brings into the language: functions, macros and names of types.

use std::borrow::Cow;

use regex::Regex;

use crate::{
    Error, Result, Type, Value,
    cost::{Estimate, RuntimeCost},
    syntax::{Expr, ExprId, Macro},
};

/// What an overload does. Arguments have the types that the overload declares; the receiver comes first.
pub type Implementation = for<'a> fn(&Call<'_>, &[Value<'a>]) -> Result<Value<'a>>;

/// What an implementation may know beyond its arguments.
#[derive(Clone, Copy, Default)]
pub struct Call<'c> {
    /// The pattern among the arguments, or what is wrong with it.
    pub(crate) regex: Option<std::result::Result<&'c Regex, &'c str>>,
}

impl<'c> Call<'c> {
    /// The regular expression of the argument that `Overload::pattern` names: compiled already.
    pub fn regex(&self, pattern: &str) -> Result<Cow<'c, Regex>> {
        match self.regex {
            Some(Ok(regex)) => Ok(Cow::Borrowed(regex)),
            Some(Err(problem)) => Err(Error::new(problem.to_owned())),
            None => crate::pattern::compile(pattern).map(Cow::Owned).map_err(Error::new),
        }
    }
}

/// One signature of a function, with what it does and what it costs.
#[derive(Clone)]
pub struct Overload {
    pub(crate) id: &'static str,
    pub(crate) is_member: bool,
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
    pub(crate) call: Implementation,
    pub(crate) pattern: Option<usize>,
    pub(crate) estimate: Option<Estimate>,
    pub(crate) cost: Option<RuntimeCost>,
    pub(crate) validate: Option<Validate>,
}

/// Looks at a call that checks: what would fail whenever it runs is refused, with the node that is wrong.
pub type Validate = fn(&Site<'_>) -> Vec<(ExprId, String)>;

/// A call as it stands in an expression.
pub struct Site<'s> {
    /// The call's node.
    pub id: ExprId,
    /// The receiver.
    pub target: Option<&'s Expr>,
    /// The arguments.
    pub args: &'s [Expr],
    pub(crate) types: &'s [Type],
}

impl Site<'_> {
    /// The type of a node.
    pub fn ty(&self, expr: &Expr) -> &Type {
        &self.types[expr.id as usize]
    }
}

impl Overload {
    /// A function that is called as `name(a, b)`.
    pub fn global(
        id: &'static str,
        params: impl IntoIterator<Item = Type>,
        result: Type,
        call: Implementation,
    ) -> Self {
        let params = params.into_iter().collect();
        Overload {
            id,
            is_member: false,
            params,
            result,
            call,
            pattern: None,
            estimate: None,
            cost: None,
            validate: None,
        }
    }

    /// A function that is called as `a.name(b)`; the receiver is its first parameter.
    pub fn member(
        id: &'static str,
        params: impl IntoIterator<Item = Type>,
        result: Type,
        call: Implementation,
    ) -> Self {
        Overload { is_member: true, ..Overload::global(id, params, result, call) }
    }

    /// The argument with this index (the receiver is 0) is a regular expression: a constant one is compiled once, and
    /// refused when the expression is compiled if it is none.
    pub fn pattern(mut self, index: usize) -> Self {
        self.pattern = Some(index);
        self
    }

    /// Looks at calls before they run.
    pub fn validate(mut self, validate: Validate) -> Self {
        self.validate = Some(validate);
        self
    }

    /// What it may cost, where that is not one. It comes before what the library says of the function.
    pub fn estimate(mut self, estimate: Estimate) -> Self {
        self.estimate = Some(estimate);
        self
    }

    /// What it has cost, where that is not one. It comes before what the library says of the function.
    pub fn cost(mut self, cost: RuntimeCost) -> Self {
        self.cost = Some(cost);
        self
    }
}

/// A set of functions, macros and types. `Env::new` puts them together.
#[derive(Clone, Default)]
pub struct Library {
    pub(crate) functions: Vec<(&'static str, Overload)>,
    pub(crate) macros: Vec<Macro>,
    pub(crate) types: Vec<Type>,
    pub(crate) open_types: Vec<&'static str>,
    pub(crate) estimates: Vec<(&'static str, Estimate)>,
    pub(crate) costs: Vec<(&'static str, RuntimeCost)>,
}

impl Library {
    /// A library with nothing in it.
    pub fn new() -> Self {
        Library::default()
    }

    /// Adds overloads of a function; other libraries may have more of the same name.
    pub fn function(mut self, name: &'static str, overloads: impl IntoIterator<Item = Overload>) -> Self {
        self.functions.extend(overloads.into_iter().map(|overload| (name, overload)));
        self
    }

    /// Adds a macro.
    pub fn expands(mut self, expansion: Macro) -> Self {
        self.macros.push(expansion);
        self
    }

    /// Makes the name of a type known to expressions.
    pub fn named_type(mut self, ty: Type) -> Self {
        self.types.push(ty);
        self
    }

    /// Makes a name, and every name that begins with it and a dot, known as a type with any field.
    pub fn open_type(mut self, name: &'static str) -> Self {
        self.open_types.push(name);
        self
    }

    /// What a function may cost, all overloads of whatever library alike: operators such as `_==_` too. Where it
    /// answers nothing, the language's own rules hold.
    pub fn estimates(mut self, function: &'static str, estimate: Estimate) -> Self {
        self.estimates.push((function, estimate));
        self
    }

    /// What a function has cost, all overloads of whatever library alike.
    pub fn costs(mut self, function: &'static str, cost: RuntimeCost) -> Self {
        self.costs.push((function, cost));
        self
    }
}
