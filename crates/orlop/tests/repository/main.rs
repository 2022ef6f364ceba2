//! Rules of this repository that no compiler checks: imports, dependencies, the form of files, the truth of
//! documents.

mod dead_files;
mod dependencies;
mod guards;
mod informers;
mod language;
mod modules;
mod pem;
mod purity;
mod sources;
mod supply_chain;
mod syntax;
mod tidy;
mod writes;
