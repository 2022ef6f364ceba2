//! Server-side apply: who owns which field of an object, and what an applied configuration makes of it.
//!
//! Sets of fields (`set`, `element`, `encoding`), the view of a type that says how its parts are owned (`types`), walks over
//! objects (`compare`, `fields`, `check`, `merge`, `remove`), and on top of them the managers of an object: what a write makes of
//! them (`track`), and what an applied configuration makes of them and of the object (`config`).

mod check;
mod compare;
mod config;
mod element;
mod encoding;
mod fields;
mod last_applied;
mod managers;
mod merge;
mod mutation;
mod remove;
mod reset;
mod scale;
mod set;
#[cfg(test)]
mod tests;
mod track;
mod types;

pub use config::{Applied, ApplyError, Conflict, apply};
pub use element::{Element, Key, NoElement};
pub use managers::{Manager, Managers, Operation, manager_name};
pub use mutation::merge_configuration;
pub use reset::Reset;
pub use scale::ScaleManagers;
pub use set::{Entry, FieldSet, path_text};
pub use track::{Scope, Tracked, Version, Versions, track};
pub use types::Node;
