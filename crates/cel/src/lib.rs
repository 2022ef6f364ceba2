//! The Common Expression Language as Kubernetes uses it: parsed, type-checked, estimated, evaluated with a cost limit.
//!
//! It is pure: no I/O, no clock, no state outside the values that it is given.
//!
//! - [`Type`] and [`Declared`] describe what variables hold. A [`Declared`] also says how JSON becomes a value and how
//!   large it may be; it is built at run time from a schema.
//! - [`Value`] is what expressions compute. Values borrow from the object, the declarations and the program: nothing is
//!   converted before it is reached. [`Opaque`] is how a library has values of its own type.
//! - [`Library`] brings functions ([`Overload`]), macros ([`Macro`]) and names of types. An overload is a function
//!   pointer ([`Implementation`]), with what it costs before ([`cost::Estimate`]) and after ([`cost::RuntimeCost`]).
//! - [`Env`] is libraries and variables. `Env::compile` makes a [`Program`], which is `Send + Sync` and cheap to share.
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
    function::{Call, Implementation, Library, Overload, Site, Validate},
    syntax::{Issue, Issues, Macro},
    time::{Duration, Timestamp},
    types::{Field, ObjectType, OpaqueType, Type},
    value::{Key, List, Map, Opaque, Str, Value},
};
