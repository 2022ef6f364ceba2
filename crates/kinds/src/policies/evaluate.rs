//! Evaluates the expressions of a policy for a request: variables are computed lazily, and all costs count against one
//! budget.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use cel::library::authorizer::{Authorizer, ResourceCheck, authorizer_value, resource_check_value};
use cel::{Bindings, Declared, Error, Map, Outcome, Program, Value};
use model::Object;

use super::compile::{Composer, Unusable};
use super::environment::{
    AUTHORIZER, NAMESPACE, OBJECT, OLD_OBJECT, PARAMS, REQUEST, RESOURCE_CHECK, VARIABLES,
};

/// The cost limit of one expression.
const CALL_LIMIT: u64 = 1_000_000;
/// The cost limit of all expressions of one kind in a policy.
pub const BUDGET: u64 = 10_000_000;
/// The cost limit of all match conditions of a policy.
pub const CONDITIONS_BUDGET: u64 = BUDGET / 4;
/// Variables with a longer chain of dependencies have these computed first, so that the recursion stays shallow.
const CHAIN_MAX: usize = 32;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The input of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The new object; `None` for a delete.
    pub object: Option<&'a Object>,
    /// The old object; `None` for a create.
    pub old_object: Option<&'a Object>,
    /// The request: [`super::request_value`].
    pub request: &'a Object,
    /// The namespace; `None` for a cluster-scoped object.
    pub namespace: Option<&'a Object>,
    /// The parameters; `None` if the binding has none.
    pub params: Option<&'a Object>,
    /// Decides authorization checks for the caller.
    pub authorizer: &'a Arc<dyn Authorizer>,
    /// The resource of the request without the verb.
    pub resource_check: &'a ResourceCheck,
}

/// An expression, or the reason why it does not compile.
pub struct Expression {
    pub source: String,
    pub program: Result<Program, String>,
}

impl Expression {
    pub fn new(source: &str, compiled: Result<Program, Unusable>) -> Self {
        Self { source: source.to_owned(), program: compiled.map_err(|unusable| unusable.detail) }
    }
}

/// The variables of a policy.
#[derive(Default)]
pub struct Variables {
    all: Vec<Variable>,
    by_name: HashMap<String, usize>,
}

struct Variable {
    name: String,
    program: Result<Program, String>,
    /// The length of the longest chain of variables that it depends on.
    depth: usize,
}

impl Variables {
    /// Compiles variables in their order.
    pub fn compile<'v>(variables: impl Iterator<Item = (&'v str, &'v str)>, composer: &mut Composer) -> Self {
        let mut made = Self::default();
        for (name, source) in variables {
            let program = composer.variable(name, source).map_err(|unusable| unusable.detail);
            let before = |field: &str| made.by_name.get(field).map(|index| made.all[*index].depth + 1);
            let used = program.as_ref().ok().into_iter().flat_map(|program| program.fields_of(VARIABLES));
            let depth = used.filter_map(before).max().unwrap_or(0);
            made.by_name.insert(name.to_owned(), made.all.len());
            made.all.push(Variable { name: name.to_owned(), program, depth });
        }
        made
    }
}

/// The budget is exhausted.
#[derive(Debug)]
pub struct OutOfBudget;

impl std::fmt::Display for OutOfBudget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(OUT_OF_BUDGET)
    }
}

/// The activation of all expressions of one kind. Each variable is computed once.
pub struct Activation<'a> {
    input: &'a Input<'a>,
    variables: &'a Variables,
    has_authorizer: bool,
    computed: RefCell<Vec<Option<cel::Result<Value<'a>>>>>,
    /// Only variables before this index are visible: the variable being computed may use no later ones.
    below: Cell<usize>,
    cost: Cell<u64>,
}

impl<'a> Activation<'a> {
    pub fn new(input: &'a Input<'a>, variables: &'a Variables, has_authorizer: bool) -> Self {
        let count = variables.all.len();
        Self {
            input,
            variables,
            has_authorizer,
            computed: RefCell::new(vec![None; count]),
            below: Cell::new(count),
            cost: Cell::new(0),
        }
    }

    /// Evaluates an expression; the error is its message.
    pub fn run(
        &self,
        expression: &'a Expression,
        budget: &mut u64,
    ) -> Result<Result<Value<'a>, String>, OutOfBudget> {
        let program = match &expression.program {
            Ok(program) => program,
            Err(problem) => return Ok(Err(format!("compilation error: {problem}"))),
        };
        let Outcome { value, cost } = program.evaluate_with(self, CALL_LIMIT);
        let of_variables = self.cost.replace(0);
        *budget =
            budget.checked_sub(of_variables).and_then(|rest| rest.checked_sub(cost)).ok_or(OutOfBudget)?;
        let source = &expression.source;
        Ok(value.map_err(|error| format!("expression '{source}' resulted in error: {error}")))
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.variables.by_name.get(name).copied()
    }

    fn compute(&self, index: usize) -> cel::Result<Value<'a>> {
        if let Some(known) = &self.computed.borrow()[index] {
            return known.clone();
        }
        let variable = &self.variables.all[index];
        if index >= self.below.get() {
            return Err(Error::no_such_key(&variable.name));
        }
        if variable.depth > CHAIN_MAX {
            self.compute_before(index);
        }
        self.keep(index)
    }

    fn keep(&self, index: usize) -> cel::Result<Value<'a>> {
        let value = self.evaluate(&self.variables.all[index], index);
        self.computed.borrow_mut()[index] = Some(value.clone());
        value
    }

    fn evaluate(&self, variable: &'a Variable, index: usize) -> cel::Result<Value<'a>> {
        let name = &variable.name;
        let program = match &variable.program {
            Ok(program) => program,
            Err(problem) => {
                return Err(Error::new(format!(
                    "composited variable \"{name}\" fails to compile: {problem}"
                )));
            }
        };
        let outer = self.below.replace(index);
        let Outcome { value, cost } = program.evaluate_with(self, CALL_LIMIT);
        self.below.set(outer);
        self.cost.set(self.cost.get().saturating_add(cost));
        value
            .map_err(|error| Error::new(format!("composited variable \"{name}\" fails to evaluate: {error}")))
    }

    /// Computes the dependencies of a variable in order, within the budget. An error is cached, and returned to every
    /// expression that uses the variable.
    fn compute_before(&self, index: usize) {
        let mut needed = vec![false; index];
        self.mark(index, &mut needed);
        for at in (0..index).filter(|at| needed[*at]) {
            if self.cost.get() > BUDGET {
                break;
            }
            if self.computed.borrow()[at].is_none() {
                drop(self.keep(at));
            }
        }
    }

    /// Marks the dependencies of a variable.
    fn mark(&self, index: usize, needed: &mut [bool]) {
        let mut open = vec![index];
        while let Some(at) = open.pop() {
            let Ok(program) = &self.variables.all[at].program else { continue };
            for used in program.fields_of(VARIABLES).filter_map(|name| self.index(name)) {
                if used < at && !std::mem::replace(&mut needed[used], true) {
                    open.push(used);
                }
            }
        }
    }
}

/// An object as a CEL value of dynamic type.
fn value<'a>(object: Option<&'a Object>) -> Value<'a> {
    match object {
        Some(entries) => Value::Map(Map::Json { entries, declared: Declared::dynamic() }),
        None => Value::Null,
    }
}

impl<'a> Bindings<'a> for Activation<'a> {
    fn variable(&self, name: &str) -> Option<Value<'a>> {
        let input = self.input;
        match name {
            OBJECT => Some(value(input.object)),
            OLD_OBJECT => Some(value(input.old_object)),
            REQUEST => Some(value(Some(input.request))),
            NAMESPACE => Some(value(input.namespace)),
            PARAMS => Some(value(input.params)),
            AUTHORIZER if self.has_authorizer => Some(authorizer_value(Arc::clone(input.authorizer))),
            RESOURCE_CHECK if self.has_authorizer => {
                let check = input.resource_check.clone();
                Some(resource_check_value(Arc::clone(input.authorizer), check))
            }
            _ => None,
        }
    }

    fn field(&self, variable: &str, field: &str) -> Option<cel::Result<Value<'a>>> {
        if variable != VARIABLES {
            return None;
        }
        self.index(field).map(|index| self.compute(index))
    }
}
