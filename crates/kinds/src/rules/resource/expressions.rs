//! CEL expressions of device selectors.

use std::sync::{Arc, LazyLock};

use cel::library::kubernetes;
use cel::{CompileError, Declared, Env, Field, ObjectType, Type};
use model::error::{FieldError, Path};

use crate::policies::type_name;

const LENGTH_MAX: usize = 10 * 1024;
const COST_MAX: u64 = 1_000_000;
/// Length limits of the names and values of attributes, and the most attributes of a device.
const DOMAIN_MAX: u64 = 63;
const ID_MAX: u64 = 32;
const VALUE_MAX: u64 = 64;
const ATTRIBUTES_MAX: u64 = 32;

static ENVIRONMENT: LazyLock<Env> = LazyLock::new(|| {
    let libraries = kubernetes::libraries().into_iter().chain([kubernetes::bindings_library()]);
    Env::new(libraries).declared("device", Arc::new(device()))
});

/// The type of a device: its driver, and attributes and capacities by domain and name.
fn device() -> Declared {
    let text = |most: u64| Arc::new(Declared::sized(Type::String, most));
    let by_name = |item: Declared| {
        let inner = Declared::map(text(ID_MAX), Arc::new(item), ATTRIBUTES_MAX);
        Arc::new(Declared::map(text(DOMAIN_MAX), Arc::new(inner), ATTRIBUTES_MAX))
    };
    let fields = [
        ("driver", text(DOMAIN_MAX)),
        ("attributes", by_name(Declared::sized(Type::Any, VALUE_MAX))),
        ("capacity", by_name(Declared::scalar(Type::object("kubernetes.Quantity")))),
    ];
    let fields = fields.map(|(name, declared)| (name.into(), Field { json_name: name.into(), declared }));
    let device = ObjectType { name: "kubernetes.DRADevice".into(), fields: fields.into_iter().collect() };
    Declared::object(device, 0)
}

/// Validates an expression.
pub fn bad_expression(path: &Path<'_>, expression: &str) -> Option<FieldError> {
    if expression.len() > LENGTH_MAX {
        return Some(FieldError::too_long(path, LENGTH_MAX));
    }
    let program = match ENVIRONMENT.compile(expression) {
        Ok(program) => program,
        Err(CompileError::Issues(issues)) => {
            return Some(FieldError::invalid(path, expression, format!("compilation failed: {issues}")));
        }
        Err(CompileError::Program(error)) => {
            return Some(FieldError::internal(path, format!("program instantiation failed: {error}")));
        }
    };
    if !matches!(program.ty(), Type::Bool | Type::Any) {
        let found = type_name(program.ty());
        let detail = format!("must evaluate to bool or the unknown type, not {found}");
        return Some(FieldError::invalid(path, expression, detail));
    }
    (program.estimate().max > COST_MAX)
        .then(|| FieldError::forbidden(path, "too complex, exceeds cost limit"))
}
