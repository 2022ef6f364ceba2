//! The language's own functions: operators, conversions, strings, times, optional values.

mod compare;
mod convert;
mod math;
mod optional;
mod structure;
mod text;
mod time;

pub(crate) use self::structure::insert_entry;
use crate::{Call, Error, Library, Result, Type, Value};

/// The language without Kubernetes' libraries.
pub(crate) fn standard() -> Vec<Library> {
    vec![
        types(),
        structure::library(),
        compare::library(),
        math::library(),
        convert::library(),
        text::library(),
        time::library(),
        optional::library(),
    ]
}

/// The built-in type names.
fn types() -> Library {
    let types = [
        Type::Bool,
        Type::Bytes,
        Type::Double,
        Type::Duration,
        Type::Int,
        Type::list(Type::Dyn),
        Type::map(Type::Dyn, Type::Dyn),
        Type::Null,
        Type::String,
        Type::Timestamp,
        Type::Type(None),
        Type::Uint,
        Type::optional(Type::Dyn),
    ];
    types.into_iter().fold(Library::new(), Library::named_type)
}

fn a() -> Type {
    Type::Param("A")
}

fn b() -> Type {
    Type::Param("B")
}

/// The placeholder implementation of operators that the evaluator implements itself.
fn special<'a>(_: &Call<'_>, _: &[Value<'a>]) -> Result<Value<'a>> {
    Err(Error::no_such_overload())
}

fn identity<'a>(_: &Call<'_>, args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(args[0].clone())
}
