//! What becomes of an object, from what is known of its owners.

/// What an owner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is there.
    Solid,
    /// It is on its way out, and waits for its dependents.
    Waiting,
    /// It is not there, or is another object with its name.
    Absent,
}

/// What becomes of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// What to do with an object.
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

/// What is known of an object beside its owners.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// What its finalizers say becomes of its dependents.
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
