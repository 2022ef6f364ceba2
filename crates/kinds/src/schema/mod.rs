//! The schema table: every type of the API as data, and the decoding that it drives.
//!
//! A [`Schema`] is immutable. The built-in kinds come from a text file (see `table`), which is parsed once per process;
//! other sources of kinds compile to the same form.

mod base64;
#[cfg(test)]
mod builtin_tests;
mod check;
mod lines;
pub mod strict;
mod table;
#[cfg(test)]
mod tests;
mod time;
mod types;

use std::sync::LazyLock;

pub use check::{Checked, Mismatch, check, unrecognized};
pub use lines::TableError;
pub use table::parse;
pub use types::{Field, ListKind, Name, Or, Patch, Schema, Shape, Type, TypeId, Wire, WireEntry};

pub(crate) use base64::{decode as decode_base64, encode as encode_base64};
pub(crate) use check::{check_at, double, finish};
pub(crate) use time::{Precision, Timestamp};

/// The table of the built-in kinds.
pub const TABLE: &str = include_str!("../../schema/kubernetes-1.35.txt");

/// The built-in kinds of Kubernetes 1.35.
pub fn builtin() -> &'static Schema {
    static BUILTIN: LazyLock<Schema> =
        LazyLock::new(|| table::index(TABLE).expect("a test reads the same checked-in table"));
    &BUILTIN
}
