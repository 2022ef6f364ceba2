//! The decision about an object, from the state of its owners.

/// The state of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The owner exists.
    Solid,
    /// The owner is in foreground deletion and waits for its dependents.
    Waiting,
    /// The owner does not exist, or its name belongs to another object.
    Absent,
}

/// The deletion propagation policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// The decision about an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CollectorStep {
    Nothing,
    /// Remove the references to absent and waiting owners: a solid owner remains.
    Release,
    /// Delete the object in the foreground. If one of its dependents waits for dependents, too, there may be a cycle:
    /// then the object no longer blocks its owners.
    DeleteForeground {
        unblock: bool,
    },
    Delete(Propagation),
}

/// The state of an object beside its owners.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// The propagation policy of its finalizers.
    pub(super) propagation: Propagation,
    pub(super) has_dependents: bool,
    /// Whether one of its dependents is in foreground deletion.
    pub(super) is_dependent_waiting: bool,
}

/// Decides about an object by the states of its owners.
pub(super) fn decide(standings: &[Standing], facts: Facts) -> CollectorStep {
    let is_any = |wanted: Standing| standings.contains(&wanted);
    if standings.is_empty() {
        CollectorStep::Nothing
    } else if is_any(Standing::Solid) {
        if standings.iter().all(|standing| *standing == Standing::Solid) {
            CollectorStep::Nothing
        } else {
            CollectorStep::Release
        }
    } else if is_any(Standing::Waiting) && facts.has_dependents {
        CollectorStep::DeleteForeground { unblock: facts.is_dependent_waiting }
    } else {
        CollectorStep::Delete(facts.propagation)
    }
}
