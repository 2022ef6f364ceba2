//! Request scripts, and what a real kube-apiserver answers to them.
//!
//! A script is a file of requests that a person writes; beside it stands a file with the answers that were recorded. Whoever plays
//! a script takes requests from a [`Run`] and gives it responses: the recorder those of a real server, the test of the API server
//! those of Orlop. What differs between two runs of the same server, such as times and uids, is [masked](mask).

mod allowed;
mod answers;
mod compare;
mod events;
mod files;
mod hooks;
pub mod mask;
mod replay;
mod run;
mod script;
#[cfg(test)]
mod tests;
mod wire;
mod yaml;

pub use allowed::{Allowed, AllowedDifferences};
pub use answers::{Answers, read_answers, write_answers};
pub use compare::{Difference, compare};
pub use events::Events;
pub use files::{Fixture, allow_list, fixtures, folder};
pub use hooks::Hooks;
pub use replay::Replay;
pub use run::{NAMESPACE, Request, Response, Run, preparation};
pub use script::{Case, Script, Setting};
