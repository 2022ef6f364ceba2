//! A revisioned object log on SQL: read, write, watch, compact.
//!
//! Every change gets the next revision of one clock; commit order is revision order; a reader never sees a gap.

mod committer;
mod compactor;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod doctor;
pub mod engine;
mod event;
mod health;
mod history;
mod hub;
pub mod listing;
mod metrics;
pub mod plan;
pub mod postgres;
pub mod remote;
pub mod sqlite;
mod store;
mod types;

pub use committer::Hold;
pub use engine::Engine;
pub use event::{Event, EventKind, SharedChange, WatchScope};
pub use hub::Watch;
pub use metrics::Metrics;
pub use postgres::{Postgres, PostgresOptions};
pub use remote::Remote;
pub use sqlite::{Durability, FileOptions, Sqlite};
pub use store::{Options, Store};
pub use types::{
    Action, Change, ClockState, Error, ListQuery, Page, Position, Precondition, Stored, Write, Written,
};
