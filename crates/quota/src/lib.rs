//! Evaluation of ResourceQuotas, pure: the admission plugin and the resource quota controller share these
//! functions.

pub mod amounts;
mod charge;
mod counted;
mod scope;
mod tally;

pub use charge::{Quota, charge};
pub use counted::Counted;
pub use tally::{QuotaResource, Tally, resources};
