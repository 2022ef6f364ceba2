//! Libraries: functions, macros and type names.

use std::borrow::Cow;

use regex::Regex;

use crate::{
    Error, Result, Type, Value,
    cost::{Estimate, RuntimeCost},
    syntax::{Expr, ExprId, Macro},
};

/// The implementation of an overload. Arguments have the declared types, receiver first.
pub type Implementation = for<'a> fn(&Call<'_>, &[Value<'a>]) -> Result<Value<'a>>;

/// The context of a call beyond its arguments.
#[derive(Clone, Copy, Default)]
pub struct Call<'c> {
    /// The compiled pattern argument, or its error.
    pub(crate) regex: Option<std::result::Result<&'c Regex, &'c str>>,
}

impl<'c> Call<'c> {
    /// The compiled regular expression of the argument that `Overload::pattern` names.
    pub fn regex(&self, pattern: &str) -> Result<Cow<'c, Regex>> {
        match self.regex {
            Some(Ok(regex)) => Ok(Cow::Borrowed(regex)),
            Some(Err(problem)) => Err(Error::new(problem.to_owned())),
            None => crate::pattern::compile(pattern).map(Cow::Owned).map_err(Error::new),
        }
    }
}

/// A signature of a function with its implementation and cost.
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

/// Checks a call site statically: returns errors that every evaluation would run into, each with its node.
pub type Validate = fn(&CallSite<'_>) -> Vec<(ExprId, String)>;

/// A call in an expression.
pub struct CallSite<'s> {
    /// The node of the call.
    pub id: ExprId,
    /// The receiver.
    pub target: Option<&'s Expr>,
    /// The arguments.
    pub args: &'s [Expr],
    pub(crate) types: &'s [Type],
}

impl CallSite<'_> {
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

    /// Declares that the argument with this index (the receiver is 0) is a regular expression. A constant one
    /// is compiled once; an invalid one is a compile error.
    pub fn pattern(mut self, index: usize) -> Self {
        self.pattern = Some(index);
        self
    }

    /// Adds a static check of call sites.
    pub fn validate(mut self, validate: Validate) -> Self {
        self.validate = Some(validate);
        self
    }

    /// Sets the cost estimate, if it is not one. It takes precedence over the library's estimate for the
    /// function.
    pub fn estimate(mut self, estimate: Estimate) -> Self {
        self.estimate = Some(estimate);
        self
    }

    /// Sets the actual cost, if it is not one. It takes precedence over the library's cost of the function.
    pub fn cost(mut self, cost: RuntimeCost) -> Self {
        self.cost = Some(cost);
        self
    }
}

/// A set of functions, macros and types for `Env::new`.
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
    /// An empty library.
    pub fn new() -> Self {
        Library::default()
    }

    /// Adds overloads of a function; other libraries may add more to the same name.
    pub fn function(mut self, name: &'static str, overloads: impl IntoIterator<Item = Overload>) -> Self {
        self.functions.extend(overloads.into_iter().map(|overload| (name, overload)));
        self
    }

    /// Adds a macro.
    pub fn expands(mut self, expansion: Macro) -> Self {
        self.macros.push(expansion);
        self
    }

    /// Adds a type name.
    pub fn named_type(mut self, ty: Type) -> Self {
        self.types.push(ty);
        self
    }

    /// Adds a type that accepts any field, also under every name that extends its name with a dot.
    pub fn open_type(mut self, name: &'static str) -> Self {
        self.open_types.push(name);
        self
    }

    /// Sets the estimate of all overloads of a function, in any library; also of operators such as `_==_`.
    /// Where it returns `None`, the language's own rules apply.
    pub fn estimates(mut self, function: &'static str, estimate: Estimate) -> Self {
        self.estimates.push((function, estimate));
        self
    }

    /// Sets the actual cost of all overloads of a function, in any library.
    pub fn costs(mut self, function: &'static str, cost: RuntimeCost) -> Self {
        self.costs.push((function, cost));
        self
    }
}
