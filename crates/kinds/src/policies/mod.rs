//! Admission policies: CEL rules about requests.
//!
//! A policy is compiled once ([`ValidatingPolicy`], [`MutatingPolicy`]); a [`Binding`] selects its requests and
//! parameters. Policies evaluate an [`Input`]; the caller provides it, including parameters and the namespace.

mod binding;
mod compile;
mod conditions;
mod environment;
mod evaluate;
mod matching;
mod mutating;
mod request;
mod schema_types;
#[cfg(test)]
mod tests;
mod type_check;
#[cfg(test)]
mod type_check_tests;
mod validating;

pub use cel::Type;
pub use cel::library::authorizer::{Authorizer, Check, Decision, ResourceCheck};

pub use binding::{Binding, NotFound, ParamRef, Params};
pub(crate) use compile::{Composer, Options, Wanted, type_name};
pub use conditions::Conditions;
pub use evaluate::Input;
pub use matching::{Criteria, MatchAttributes, Matched, MatchedResource};
pub use mutating::{MutatingPolicy, MutationResult, apply_operations};
pub use request::{Caller, RequestFacts, Resource, request_value};
pub use schema_types::{builtin_type, custom_type};
pub use type_check::{ExpressionWarning, Kinds, TypedKind, checked_status, type_check};
pub use validating::{Denial, Judgement, Refusal, ValidatingPolicy, Verdict};
