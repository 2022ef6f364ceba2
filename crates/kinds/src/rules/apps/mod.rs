//! The group `apps`.

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;

use super::KindRules;
use super::go::{Go, NUMBER, TEXT};

pub(super) const RULES: &[KindRules] = &[
    controller_revision::RULES,
    daemon_set::RULES,
    deployment::RULES,
    replica_set::RULES,
    stateful_set::RULES,
];

/// The update strategy of Deployments and DaemonSets, for messages.
const STRATEGY: Go = Go::Struct(&[
    ("type", TEXT),
    ("rollingUpdate", Go::Pointer(&[("maxUnavailable", NUMBER), ("maxSurge", NUMBER)])),
]);
