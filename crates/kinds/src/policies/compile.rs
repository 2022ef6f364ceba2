//! Compiles the expressions of a policy.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::library::authorizer;
use cel::{CompileError, Declared, Env, Field, ObjectType, Program, Type};
use model::error::FieldError;

use super::environment::{Objects, RESOURCE_CHECK, VARIABLES, environment};

/// The type that an expression must return.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wanted {
    /// A condition.
    Bool,
    /// A message.
    Text,
    /// A message or annotation, or null.
    TextOrNull,
    /// Any type.
    Anything,
    /// A configuration to apply.
    Configuration,
    /// JSON patch operations.
    Operations,
}

/// Optional variables of an expression.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether `authorizer` is available.
    pub has_authorizer: bool,
}

/// The reason why an expression does not compile.
#[derive(Clone, Debug, PartialEq)]
pub struct Unusable {
    /// The message.
    pub detail: String,
    /// Whether the expression is valid but its program cannot be built.
    is_internal: bool,
}

impl Unusable {
    /// As a field error of the expression, with `shown` as its value.
    pub fn at(self, path: impl Into<String>, shown: &str) -> FieldError {
        match self.is_internal {
            true => FieldError::internal(path, self.detail),
            false => FieldError::invalid(path, shown, self.detail),
        }
    }
}

impl Wanted {
    fn check(self, found: &Type) -> Result<(), Unusable> {
        let fits = match self {
            Self::Anything => true,
            Self::Bool => matches!(found, Type::Bool),
            Self::Text => matches!(found, Type::String),
            Self::TextOrNull => matches!(found, Type::String | Type::Null),
            Self::Configuration => matches!(found, Type::Object(_)) && found.name() == "Object",
            Self::Operations => matches!(found, Type::List(item) if item.name() == "JSONPatch"),
        };
        let wanted = match self {
            _ if fits => return Ok(()),
            Self::Anything => return Ok(()),
            Self::Bool => "bool",
            Self::Text => "string",
            Self::TextOrNull => "one of [string null_type]",
            Self::Configuration => "Object",
            Self::Operations => "list(JSONPatch)",
        };
        let detail = format!("must evaluate to {wanted} but got {}", type_name(found));
        Err(Unusable { detail, is_internal: false })
    }
}

/// The full name of a type.
pub fn type_name(ty: &Type) -> String {
    match ty {
        Type::Wrapper(inner) => format!("wrapper({})", type_name(inner)),
        Type::Map(pair) => format!("map({}, {})", type_name(&pair.0), type_name(&pair.1)),
        _ => match ty.params() {
            [] => ty.name().to_owned(),
            params => {
                let params: Vec<String> = params.iter().map(type_name).collect();
                format!("{}({})", ty.name(), params.join(", "))
            }
        },
    }
}

/// Compiles the expressions of one policy: later expressions can use earlier variables.
pub struct Composer {
    objects: Objects,
    /// The type of `variables`; `None` if the policy supports none.
    variables: Option<Arc<ObjectType>>,
    /// Whether `authorizer.requestResource` is available.
    has_resource_check: bool,
}

impl Composer {
    /// A composer for a policy, with or without variables. Objects have dynamic types.
    pub fn new(has_params: bool, has_variables: bool) -> Self {
        let params = has_params.then_some(Type::Dyn);
        let objects = Objects { object: Type::Dyn, params };
        let variables = has_variables.then(no_variables);
        Self { objects, variables, has_resource_check: true }
    }

    /// A composer for type checks: objects and parameters have these types, and variables are available.
    pub(super) fn typed(objects: Objects) -> Self {
        Self { objects, variables: Some(no_variables()), has_resource_check: false }
    }

    /// The type errors of an expression; its return type does not matter.
    pub(super) fn issues(&self, source: &str) -> Option<String> {
        match self.env(Options { has_authorizer: true }, false).compile(source) {
            Err(CompileError::Issues(issues)) => Some(issues.to_string()),
            _ => None,
        }
    }

    fn env(&self, options: Options, is_patching: bool) -> Env {
        let mut env = environment(&self.objects, options.has_authorizer, is_patching);
        if options.has_authorizer && self.has_resource_check {
            env = env.variable(RESOURCE_CHECK, authorizer::resource_check_type());
        }
        match &self.variables {
            Some(variables) => env.variable(VARIABLES, Type::Object(Arc::clone(variables))),
            None => env,
        }
    }

    /// Compiles an expression.
    pub fn compile(&self, source: &str, options: Options, wanted: Wanted) -> Result<Program, Unusable> {
        let is_patching = matches!(wanted, Wanted::Configuration | Wanted::Operations);
        let program = self.env(options, is_patching).compile(source).map_err(|error| match error {
            CompileError::Issues(issues) => {
                Unusable { detail: format!("compilation failed: {issues}"), is_internal: false }
            }
            CompileError::Program(error) => {
                Unusable { detail: format!("program instantiation failed: {error}"), is_internal: true }
            }
        })?;
        wanted.check(program.ty())?;
        Ok(program)
    }

    /// Compiles a variable. Later expressions can name it even if it does not compile.
    pub fn variable(&mut self, name: &str, source: &str) -> Result<Program, Unusable> {
        let options = Options { has_authorizer: true };
        let compiled = self.compile(source, options, Wanted::Anything);
        let ty = compiled.as_ref().map_or(Type::Dyn, |program| known_type(program.ty()));
        if let Some(variables) = &mut self.variables {
            let field = Field { json_name: name.into(), declared: Arc::new(Declared::scalar(ty)) };
            Arc::make_mut(variables).fields.insert(name.into(), field);
        }
        compiled
    }
}

/// The type of `variables` without any.
fn no_variables() -> Arc<ObjectType> {
    Arc::new(ObjectType { name: "kubernetes.variables".into(), fields: BTreeMap::new() })
}

/// The type that other expressions see of a variable: objects become dynamic.
fn known_type(ty: &Type) -> Type {
    match ty {
        Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => ty.clone(),
        Type::List(item) => Type::list(known_type(item)),
        Type::Map(pair) => Type::map(known_type(&pair.0), known_type(&pair.1)),
        _ => Type::Dyn,
    }
}
