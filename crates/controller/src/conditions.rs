//! Conditions of a status: set with a new state, they keep `lastTransitionTime` while their status stays the same.
//!
//! ```
//! use controller::conditions::{self, ConditionStatus};
//!
//! let (mut list, early, late) = (Vec::new(), jiff::Timestamp::UNIX_EPOCH, jiff::Timestamp::MAX);
//! conditions::set(&mut list, conditions::new("Ready", ConditionStatus::False, "Starting", "", early));
//! conditions::set(&mut list, conditions::new("Ready", ConditionStatus::False, "Pulling", "image 2 of 3", late));
//! assert_eq!((&*list[0].reason, list[0].last_transition_time.0), ("Pulling", early));
//! ```

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use model::condition::set_typed_condition;

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows.
    Unknown,
}

impl ConditionStatus {
    /// As the API has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// An element of `status.conditions`: that of meta/v1, or one of the older forms that some built-in kinds have.
pub trait StatusCondition: PartialEq {
    /// Its type, such as `Ready`, by which it is found.
    fn type_name(&self) -> &str;

    /// `True`, `False` or `Unknown`.
    fn status(&self) -> &str;

    /// Takes over the time of the last transition.
    fn keep_transition_time(&mut self, old: &Self);
}

impl StatusCondition for Condition {
    fn type_name(&self) -> &str {
        &self.type_
    }

    fn status(&self) -> &str {
        &self.status
    }

    fn keep_transition_time(&mut self, old: &Self) {
        self.last_transition_time = old.last_transition_time.clone();
    }
}

/// A condition of meta/v1 whose status changes now. Times of conditions have whole seconds.
#[must_use]
pub fn new(
    type_name: &str,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
    now: Timestamp,
) -> Condition {
    Condition {
        type_: type_name.to_owned(),
        status: status.as_str().to_owned(),
        reason: reason.to_owned(),
        message: message.into(),
        observed_generation: None,
        last_transition_time: Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
    }
}

/// Sets a condition in place of the one of its type. Its transition time is the old one if the status is the same. Returns whether the list
/// has changed, so that a status is not written for nothing.
pub fn set<C: StatusCondition>(conditions: &mut Vec<C>, new: C) -> bool {
    set_typed_condition(conditions, new, |of| (of.type_name(), of.status()), C::keep_transition_time)
}

/// Whether there is a condition of a type with the status `True`.
pub fn is_true<C: StatusCondition>(conditions: &[C], type_name: &str) -> bool {
    let found = conditions.iter().find(|condition| condition.type_name() == type_name);
    found.is_some_and(|condition| condition.status() == ConditionStatus::True.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_transition_time_changes_with_the_status_and_with_nothing_else() {
        let ready = |status: bool, reason: &str, now: i64| new("Ready", status.into(), reason, "m", at(now));
        let mut list = vec![new("Other", ConditionStatus::Unknown, "R", "", at(0))];
        for (condition, is_changed, since) in [
            (ready(false, "Starting", 1), true, 1),
            (ready(false, "Starting", 2), false, 1),
            (ready(false, "Waiting", 3), true, 1),
            (ready(true, "Waiting", 4), true, 4),
            (Condition { observed_generation: Some(7), ..ready(true, "Waiting", 5) }, true, 4),
            (ready(false, "Failed", 6), true, 6),
        ] {
            let shown = format!("{condition:?}");
            assert_eq!(set(&mut list, condition), is_changed, "{shown}");
            assert_eq!(list[1].last_transition_time.0, at(since), "{shown}");
            assert_eq!(is_true(&list, "Ready"), list[1].status == "True");
        }
        assert_eq!(list.len(), 2);
        assert!(!is_true(&list, "Other") && !is_true(&list, "Missing"));
    }

    #[test]
    fn times_have_whole_seconds() {
        let now = Timestamp::from_millisecond(1_500).unwrap();
        assert_eq!(new("Ready", true.into(), "R", "", now).last_transition_time.0, at(1));
    }
}
