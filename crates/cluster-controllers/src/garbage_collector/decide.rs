//! The decision about an object, from the state of its owners.

/// The state of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is there.
    Solid,
    /// It is on its way out, and waits for its dependents.
    Waiting,
    /// It is not there, or is another object with its name.
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
pub(super) enum Step {
    Nothing,
    /// It has an owner that stays: the references to the others go.
    Release,
    /// It goes, and its own dependents before it. If one of those waits for dependents, too, there may be a circle: then
    /// this object is to hold up nobody.
    DeleteForeground {
        unblock: bool,
    },
    Delete(Propagation),
}

/// The facts about an object beside its owners.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// The policy that its finalizers ask for.
    pub(super) propagation: Propagation,
    pub(super) has_dependents: bool,
    /// Whether one of its dependents waits for dependents.
    pub(super) is_dependent_waiting: bool,
}

/// Decides about an object whose owners have these standings.
pub(super) fn decide(standings: &[Standing], facts: Facts) -> Step {
    let is_any = |wanted: Standing| standings.contains(&wanted);
    if standings.is_empty() {
        Step::Nothing
    } else if is_any(Standing::Solid) {
        if standings.iter().all(|standing| *standing == Standing::Solid) {
            Step::Nothing
        } else {
            Step::Release
        }
    } else if is_any(Standing::Waiting) && facts.has_dependents {
        Step::DeleteForeground { unblock: facts.is_dependent_waiting }
    } else {
        Step::Delete(facts.propagation)
    }
}
