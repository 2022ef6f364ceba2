//! Cases of PostgreSQL alone: several servers on one database, and a database that fails by itself.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod commits_of_others;
mod faults;
mod kit;
mod lost_history;
mod opening;
mod tls;
