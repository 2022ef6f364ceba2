//! Rules of this repository that no compiler checks: imports, dependencies, how a file looks, documents that tell the truth.

mod dead_files;
mod dependencies;
mod guards;
mod informers;
mod pem;
mod sources;
mod supply_chain;
mod tidy;
