//! Rules of this repository that no compiler checks: who may import whom, and how a file looks.

mod dead_files;
mod dependencies;
mod sources;
mod tidy;
