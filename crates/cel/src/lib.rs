//! The Common Expression Language (CEL) as Kubernetes uses it: parser, type checker, cost estimate, and
//! evaluation with a cost limit.
//!
//! The crate is pure: no I/O, no clock, no state besides its inputs.
//!
//! - [`Type`] and [`Declared`] describe variables. A [`Declared`] also defines the conversion from JSON and
//!   size limits; it is built at run time from a schema.
//! - [`Value`] is the result of an expression. Values borrow from the object, the declarations and the
//!   program: nothing is converted before it is accessed. A library implements [`Opaque`] for values of its
//!   own types.
//! - [`Library`] adds functions ([`Overload`]), macros ([`Macro`]) and type names. An overload is a function
//!   pointer ([`Implementation`]) with a cost estimate ([`cost::Estimate`]) and an actual cost
//!   ([`cost::RuntimeCost`]).
//! - [`Env`] combines libraries and variables. `Env::compile` returns a [`Program`], which is `Send + Sync`
//!   and cheap to share.
//!
//! ```
//! use cel::{Env, Value};
//! use serde_json::json;
//!
//! let env = Env::new([]).variable("self", cel::Type::Dyn);
//! let program = env.compile("self.replicas <= self.maxReplicas").unwrap();
//! let object = json!({"replicas": 2, "maxReplicas": 3});
//! let bound = Value::from_json(&object, cel::Declared::dynamic()).unwrap();
//! let outcome = program.evaluate(&[("self", bound)], 1_000_000);
//! assert!(outcome.value.unwrap().as_bool().unwrap());
//! ```

mod check;
pub mod cost;
mod declared;
mod env;
mod error;
mod function;
pub mod library;
pub mod pattern;
mod plan;
mod run;
pub mod syntax;
mod time;
mod types;
mod value;

pub use self::{
    declared::{Declared, ListKind},
    env::{Bindings, CompileError, Env, Outcome, Program},
    error::{Error, Result},
    function::{Call, CallSite, Implementation, Library, Overload, Validate},
    syntax::{Issue, Issues, Macro},
    time::{Duration, Timestamp},
    types::{Field, ObjectType, OpaqueType, Type},
    value::{Key, List, Map, Opaque, Str, Value},
};
