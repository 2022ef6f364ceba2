//! A revisioned object log on SQL: read, write, watch, compact.
//!
//! Every change gets the next revision of one clock; commit order is revision order; a reader never sees a gap.

mod types;

pub use types::{
    Action, Change, ClockState, Error, ListQuery, Page, Position, Precondition, Stored, Write, Written,
};
