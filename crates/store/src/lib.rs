//! A revisioned object log on SQL: read, write, watch, compact.
//!
//! Every change gets the next revision of one clock; commit order is revision order; a reader never sees a gap.

pub mod engine;
pub mod plan;
mod types;

pub use engine::Engine;

pub use types::{
    Action, Change, ClockState, Error, ListQuery, Page, Position, Precondition, Stored, Write, Written,
};
