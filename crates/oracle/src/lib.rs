//! Request scripts and the answers of a real kube-apiserver to them.
//!
//! A script is a hand-written file of requests; a file beside it has the recorded answers. A player takes
//! requests from a [`Run`] and passes responses back: the recorder those of a real server, the test of the
//! API server those of Orlop. Values that differ between two runs of one server, such as times and uids, are
//! [masked](mask).

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
pub use events::AuditEvents;
pub use files::{Fixture, allow_list, fixtures, folder};
pub use hooks::Hooks;
pub use replay::Replay;
pub use run::{NAMESPACE, Request, Response, Run, preparation};
pub use script::{Case, Script, ServerSettings};
