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
    /// The first parts of the names of types with any field.
    pub open_types: Vec<&'static str>,
    pub estimates: HashMap<&'static str, Estimate>,
    pub costs: HashMap<&'static str, RuntimeCost>,
}

impl Base {
    /// The type that a name stands for.
    pub fn named_type(&self, name: &str) -> Option<Type> {
        self.types.get(name).cloned().or_else(|| self.is_open(name).then(|| Type::object(name)))
    }

    /// Whether a name is that of a type with any field.
    pub fn is_open(&self, name: &str) -> bool {
        let root = name.split_once('.').map_or(name, |(root, _)| root);
        self.open_types.contains(&root)
    }
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
            base.open_types.extend(library.open_types);
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
        let mut names = Names::default();
        names.collect(&checked.ast.root);
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
    names: Names,
}

/// Where a run finds its variables.
pub trait Bindings<'a> {
    /// The value of a variable.
    fn variable(&self, name: &str) -> Option<Value<'a>>;

    /// A field of a variable whose fields are computed when they are first asked for.
    fn field(&self, _variable: &str, _field: &str) -> Option<Result<Value<'a>>> {
        None
    }
}

/// Values by name.
impl<'a> Bindings<'a> for &[(&str, Value<'a>)] {
    fn variable(&self, name: &str) -> Option<Value<'a>> {
        self.iter().find(|(bound, _)| *bound == name).map(|(_, value)| value.clone())
    }
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
        self.names.all.iter().any(|known| known == name)
    }

    /// The fields of a name that the expression selects.
    pub fn fields_of<'p>(&'p self, name: &'p str) -> impl Iterator<Item = &'p str> {
        self.names.fields.iter().filter(move |(of, _)| of == name).map(|(_, field)| field.as_str())
    }

    /// What a run may cost.
    pub fn estimate(&self) -> CostEstimate {
        self.estimate
    }

    /// Runs it. `bindings` are the variables; those that it uses and that are missing are errors. It ends with an error
    /// when it has cost more than `cost_limit`.
    pub fn evaluate<'a>(&'a self, bindings: &[(&str, Value<'a>)], cost_limit: u64) -> Outcome<'a> {
        self.evaluate_with(&bindings, cost_limit)
    }

    /// The same with variables that are looked up when they are reached.
    pub fn evaluate_with<'a>(&'a self, bindings: &dyn Bindings<'a>, cost_limit: u64) -> Outcome<'a> {
        let (value, cost) = run::run(&self.plan, bindings, cost_limit);
        Outcome { value, cost }
    }
}

/// The names in an expression, each once.
#[derive(Default)]
struct Names {
    all: Vec<String>,
    /// Names with the fields that are selected of them.
    fields: Vec<(String, String)>,
}

impl Names {
    fn collect(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Ident(name) if !self.all.contains(name) => self.all.push(name.clone()),
            ExprKind::Select { operand, field, .. } => {
                if let ExprKind::Ident(name) = &operand.kind {
                    let pair = (name.clone(), field.clone());
                    if !self.fields.contains(&pair) {
                        self.fields.push(pair);
                    }
                }
            }
            _ => {}
        }
        for child in expr.children() {
            self.collect(child);
        }
    }
}
