//! What only PostgreSQL can have: several servers on one database, and a database that fails by itself.

mod commits_of_others;
mod faults;
mod kit;
mod opening;
