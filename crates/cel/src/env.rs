//! Environments: libraries and variables.

use std::{collections::HashMap, fmt, sync::Arc};

use crate::{
    Declared, Error, Issues, Library, Macro, Overload, Result, Type, Value, check,
    cost::{self, CostEstimate, Estimate, RuntimeCost},
    library,
    plan::{self, Plan},
    run,
    syntax::{self, Expr, ExprKind, MacroKey},
};

/// The functions, macros, types and variables of expressions. Cheap to extend, because libraries are shared.
#[derive(Clone)]
pub struct Env {
    pub(crate) libraries: Arc<MergedLibraries>,
    pub(crate) variables: Vec<Variable>,
}

/// The merged libraries.
#[derive(Default)]
pub(crate) struct MergedLibraries {
    pub functions: HashMap<&'static str, Vec<Arc<Overload>>>,
    pub macros: HashMap<MacroKey, Macro>,
    pub types: HashMap<String, Type>,
    /// The first segments of type names that accept any field.
    pub open_types: Vec<&'static str>,
    pub estimates: HashMap<&'static str, Estimate>,
    pub costs: HashMap<&'static str, RuntimeCost>,
}

impl MergedLibraries {
    /// The type of a name.
    pub fn named_type(&self, name: &str) -> Option<Type> {
        self.types.get(name).cloned().or_else(|| self.is_open(name).then(|| Type::object(name)))
    }

    /// Whether a name is a type that accepts any field.
    pub fn is_open(&self, name: &str) -> bool {
        let root = name.split_once('.').map_or(name, |(root, _)| root);
        self.open_types.contains(&root)
    }
}

/// A declared variable.
#[derive(Clone)]
pub(crate) struct Variable {
    pub name: Arc<str>,
    pub ty: Type,
    pub declared: Option<Arc<Declared>>,
}

impl Env {
    /// An environment of the language and these libraries.
    pub fn new(libraries: impl IntoIterator<Item = Library>) -> Env {
        let mut merged = MergedLibraries::default();
        merged
            .macros
            .extend(syntax::standard_macros().into_iter().map(|expansion| (expansion.key(), expansion)));
        for library in library::standard().into_iter().chain(libraries) {
            for (name, overload) in library.functions {
                merged.functions.entry(name).or_default().push(Arc::new(overload));
            }
            merged.macros.extend(library.macros.into_iter().map(|expansion| (expansion.key(), expansion)));
            merged.types.extend(library.types.into_iter().map(|ty| (ty.name().to_owned(), ty)));
            merged.open_types.extend(library.open_types);
            merged.estimates.extend(library.estimates);
            merged.costs.extend(library.costs);
        }
        Env { libraries: Arc::new(merged), variables: Vec::new() }
    }

    /// Adds a variable of a type, of unknown size.
    pub fn variable(mut self, name: &str, ty: Type) -> Env {
        self.variables.push(Variable { name: name.into(), ty, declared: None });
        self
    }

    /// Adds a variable with a schema declaration.
    pub fn declared(mut self, name: &str, declared: Arc<Declared>) -> Env {
        self.variables.push(Variable {
            name: name.into(),
            ty: declared.ty.clone(),
            declared: Some(declared),
        });
        self
    }

    /// Compiles an expression.
    pub fn compile(&self, source: &str) -> std::result::Result<Program, CompileError> {
        let ast = syntax::parse(source, &self.libraries.macros).map_err(CompileError::Issues)?;
        let checked = check::check(source, ast, self).map_err(CompileError::Issues)?;
        let plan = plan::plan(&checked, self).map_err(CompileError::Program)?;
        let ty = checked.ty(&checked.ast.root).clone();
        let mut names = Names::default();
        names.collect(&checked.ast.root);
        Ok(Program { plan, ty, estimate: cost::estimate(&checked, self), names })
    }
}

/// The reason why an expression does not compile.
#[derive(Clone, Debug, PartialEq)]
pub enum CompileError {
    /// Parse or type errors.
    Issues(Issues),
    /// A constant subexpression fails in every evaluation.
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

/// A compiled expression.
pub struct Program {
    plan: Plan,
    ty: Type,
    estimate: CostEstimate,
    names: Names,
}

/// The variables of an evaluation.
pub trait Bindings<'a> {
    /// The value of a variable.
    fn variable(&self, name: &str) -> Option<Value<'a>>;

    /// A field of a variable whose fields are computed on first access.
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

/// The result of an evaluation.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// The value, or the evaluation error.
    pub value: Result<Value<'a>>,
    /// The actual cost.
    pub cost: u64,
}

impl Program {
    /// The type of the result.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Whether the expression mentions a name: a variable of this name, also of a comprehension.
    pub fn uses(&self, name: &str) -> bool {
        self.names.all.iter().any(|known| known == name)
    }

    /// The fields that the expression selects of a name.
    pub fn fields_of<'p>(&'p self, name: &'p str) -> impl Iterator<Item = &'p str> {
        self.names.fields.iter().filter(move |(of, _)| of == name).map(|(_, field)| field.as_str())
    }

    /// The estimated cost.
    pub fn estimate(&self) -> CostEstimate {
        self.estimate
    }

    /// Evaluates the expression. A variable that is missing in `bindings` is an error. Fails when the cost
    /// exceeds `cost_limit`.
    pub fn evaluate<'a>(&'a self, bindings: &[(&str, Value<'a>)], cost_limit: u64) -> Outcome<'a> {
        self.evaluate_with(&bindings, cost_limit)
    }

    /// Like [`Program::evaluate`], with variables that are looked up on access.
    pub fn evaluate_with<'a>(&'a self, bindings: &dyn Bindings<'a>, cost_limit: u64) -> Outcome<'a> {
        let (value, cost) = run::run(&self.plan, bindings, cost_limit);
        Outcome { value, cost }
    }
}

/// The names in an expression, without duplicates.
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
