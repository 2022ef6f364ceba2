//! Libraries and variables, put together.

use std::{collections::HashMap, sync::Arc};

use crate::{
    Declared, Issues, Library, Macro, Overload, Result, Type, Value,
    cost::{CostEstimate, Estimate, RuntimeCost},
    syntax::{self, Ast, MacroKey},
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
    pub functions: HashMap<&'static str, Vec<Overload>>,
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
        for library in libraries {
            for (name, overload) in library.functions {
                base.functions.entry(name).or_default().push(overload);
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

    /// A program, or everything that is wrong with the expression.
    pub fn compile(&self, source: &str) -> std::result::Result<Program, Issues> {
        let ast = syntax::parse(source, &self.base.macros)?;
        Ok(Program { ast })
    }
}

/// An expression that is ready to run.
pub struct Program {
    ast: Ast,
}

/// What came of a run.
pub struct Outcome<'a> {
    /// The value, or the error that the expression came to.
    pub value: Result<Value<'a>>,
    /// What it has cost.
    pub cost: u64,
}

impl Program {
    /// The type of its values.
    pub fn ty(&self) -> &Type {
        &Type::Dyn
    }

    /// What a run may cost.
    pub fn estimate(&self) -> CostEstimate {
        CostEstimate::default()
    }

    /// Runs it. `bindings` are the variables; those that it uses and that are missing are errors. It ends with an error
    /// when it has cost more than `cost_limit`.
    pub fn evaluate<'a>(&'a self, bindings: &[(&str, Value<'a>)], cost_limit: u64) -> Outcome<'a> {
        let _ = (bindings, cost_limit, &self.ast);
        Outcome { value: Err(crate::Error::no_such_overload()), cost: 0 }
    }
}
