//! Libraries and variables, put together.

use std::{collections::HashMap, fmt, sync::Arc};

use crate::{
    Declared, Error, Issues, Library, Macro, Overload, Result, Type, Value, check,
    cost::{self, CostEstimate, Estimate, RuntimeCost},
    library,
    plan::{self, Plan},
    run,
    syntax::{self, Expr, ExprKind, MacroKey},
};

/// What expressions can use. To extend it is cheap: the libraries are shared.
#[derive(Clone)]
pub struct Env {
    pub(crate) base: Arc<Base>,
    pub(crate) variables: Vec<Variable>,
}

/// What the libraries bring.
#[derive(Default)]
pub(crate) struct Base {
    pub functions: HashMap<&'static str, Vec<Arc<Overload>>>,
    pub macros: HashMap<MacroKey, Macro>,
    pub types: HashMap<String, Type>,
    pub estimates: HashMap<&'static str, Estimate>,
    pub costs: HashMap<&'static str, RuntimeCost>,
}

/// A name that expressions can use, and what it stands for.
#[derive(Clone)]
pub(crate) struct Variable {
    pub name: Arc<str>,
    pub ty: Type,
    pub declared: Option<Arc<Declared>>,
}

impl Env {
    /// The language with libraries.
    pub fn new(libraries: impl IntoIterator<Item = Library>) -> Env {
        let mut base = Base::default();
        base.macros
            .extend(syntax::standard_macros().into_iter().map(|expansion| (expansion.key(), expansion)));
        for library in library::standard().into_iter().chain(libraries) {
            for (name, overload) in library.functions {
                base.functions.entry(name).or_default().push(Arc::new(overload));
            }
            base.macros.extend(library.macros.into_iter().map(|expansion| (expansion.key(), expansion)));
            base.types.extend(library.types.into_iter().map(|ty| (ty.name().to_owned(), ty)));
            base.estimates.extend(library.estimates);
            base.costs.extend(library.costs);
        }
        Env { base: Arc::new(base), variables: Vec::new() }
    }

    /// With a variable of a type, of whose size nothing is known.
    pub fn variable(mut self, name: &str, ty: Type) -> Env {
        self.variables.push(Variable { name: name.into(), ty, declared: None });
        self
    }

    /// With a variable that a schema declares.
    pub fn declared(mut self, name: &str, declared: Arc<Declared>) -> Env {
        self.variables.push(Variable {
            name: name.into(),
            ty: declared.ty.clone(),
            declared: Some(declared),
        });
        self
    }

    /// A program, or what is wrong with the expression.
    pub fn compile(&self, source: &str) -> std::result::Result<Program, CompileError> {
        let ast = syntax::parse(source, &self.base.macros).map_err(CompileError::Issues)?;
        let checked = check::check(source, ast, self).map_err(CompileError::Issues)?;
        let plan = plan::plan(&checked, self).map_err(CompileError::Program)?;
        let ty = checked.ty(&checked.ast.root).clone();
        let mut names = Vec::new();
        collect_names(&checked.ast.root, &mut names);
        Ok(Program { plan, ty, estimate: cost::estimate(&checked, self), names })
    }
}

/// Why an expression did not become a program.
#[derive(Clone, Debug, PartialEq)]
pub enum CompileError {
    /// It does not parse or check.
    Issues(Issues),
    /// It checks, but a constant in it makes an error whatever the variables hold.
    Program(Error),
}

impl fmt::Display for CompileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::Issues(issues) => issues.fmt(formatter),
            CompileError::Program(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for CompileError {}

/// An expression that is ready to run.
pub struct Program {
    plan: Plan,
    ty: Type,
    estimate: CostEstimate,
    names: Vec<String>,
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// The value, or the error that the expression came to.
    pub value: Result<Value<'a>>,
    /// What it has cost.
    pub cost: u64,
}

impl Program {
    /// The type of its values.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Whether the expression uses a name: a variable of this name, or one of a loop.
    pub fn uses(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// What a run may cost.
    pub fn estimate(&self) -> CostEstimate {
        self.estimate
    }

    /// Runs it. `bindings` are the variables; those that it uses and that are missing are errors. It ends with an error
    /// when it has cost more than `cost_limit`.
    pub fn evaluate<'a>(&'a self, bindings: &[(&str, Value<'a>)], cost_limit: u64) -> Outcome<'a> {
        let (value, cost) = run::run(&self.plan, bindings, cost_limit);
        Outcome { value, cost }
    }
}

/// The names in an expression, each once.
fn collect_names(expr: &Expr, names: &mut Vec<String>) {
    if let ExprKind::Ident(name) = &expr.kind
        && !names.contains(name)
    {
        names.push(name.clone());
    }
    for child in expr.children() {
        collect_names(child, names);
    }
}
