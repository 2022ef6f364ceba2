//! Server-side apply: field managers, and the merge of applied configurations.
//!
//! Sets of fields (`set`, `element`, `encoding`), the schema view that tells which fields are owned one by one and
//! which are atomic (`types`), walks over objects (`compare`, `fields`, `check`, `merge`, `remove`), and on top of them
//! the field managers of an object: after any write (`track`) and after an apply (`config`).

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
pub use set::{FieldEntry, FieldSet, path_text};
pub use track::{Tracked, Version, Versions, WriteContext, track};
pub use types::Node;
