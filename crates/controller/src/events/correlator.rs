//! The decision about an event that is like earlier ones: pure, with the rules and numbers of client-go's correlator.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use jiff::{SignedDuration, Timestamp};

use super::{EventType, Reference};

/// Different messages of otherwise similar events within [`INTERVAL`], from which on they are combined.
const SIMILAR_MAX: usize = 10;
/// The time without similar events after which they are no longer combined.
const INTERVAL: SignedDuration = SignedDuration::from_mins(10);
/// Events about one object that are written at once, and the time after which it may have one more.
const BURST: u32 = 25;
const REFILL: SignedDuration = SignedDuration::from_mins(5);
/// Entries of each table.
const REMEMBERED: usize = 1024;
/// The longest name that an event takes from its object, so that the time fits behind it.
const NAME_MAX: usize = 236;

/// An event that a controller reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sighting<'a> {
    pub(super) about: &'a Reference<'a>,
    pub(super) event_type: EventType,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

/// An event object that counts sightings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) message: String,
    pub(super) count: u32,
    pub(super) first: Timestamp,
}

/// The decision about a sighting.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// There are too many events about the object.
    Drop,
    Create(Series),
    /// Count it in the event that exists.
    Update(Series),
}

/// The object of events, by which they are limited.
type Object = String;
/// Events that differ in their message only.
type Similar = (Object, EventType, String);

/// The memory of a recorder.
#[derive(Debug, Default)]
pub(super) struct Correlator {
    budgets: Table<Object, Budget>,
    similar: Table<Similar, HashSet<String>>,
    /// The events that were written; without a message, the combined ones.
    written: Table<(Similar, Option<String>), Series>,
}

/// The events that an object may still have.
#[derive(Clone, Copy, Debug)]
struct Budget {
    left: u32,
    refilled: Timestamp,
}

impl Correlator {
    pub(super) fn correlate(&mut self, sighting: &Sighting<'_>, now: Timestamp) -> Action {
        let Reference { api_version, kind, namespace, name, uid } = sighting.about;
        let object = format!("{api_version}/{kind}/{namespace}/{name}/{uid}");
        if !self.spend(&object, now) {
            return Action::Drop;
        }
        let similar = (object, sighting.event_type, sighting.reason.to_owned());
        let is_combined = self.is_combined(&similar, sighting.message, now);
        let (key, message) = match is_combined {
            true => ((similar, None), format!("(combined from similar events): {}", sighting.message)),
            false => ((similar, Some(sighting.message.to_owned())), sighting.message.to_owned()),
        };
        if let Some(series) = self.written.get(&key, now) {
            series.count = series.count.saturating_add(1);
            series.message = message;
            return Action::Update(series.clone());
        }
        let series = Series { name: event_name(name, now), message, count: 1, first: now };
        self.written.insert(key, series.clone(), now);
        Action::Create(series)
    }

    /// Takes one from the budget of an object. False if it has none.
    fn spend(&mut self, object: &Object, now: Timestamp) -> bool {
        let full = Budget { left: BURST, refilled: now };
        let budget = self.budgets.get_or_insert(object, full, now);
        let refills = now.duration_since(budget.refilled).as_secs() / REFILL.as_secs();
        if refills > 0 {
            budget.left = budget.left.saturating_add(u32::try_from(refills).unwrap_or(u32::MAX)).min(BURST);
            budget.refilled = now;
        }
        let has_some = budget.left > 0;
        budget.left = budget.left.saturating_sub(1);
        has_some
    }

    /// Whether there are so many messages beside this one that they are combined.
    fn is_combined(&mut self, similar: &Similar, message: &str, now: Timestamp) -> bool {
        if self.similar.is_idle(similar, now) {
            self.similar.remove(similar);
        }
        let messages = self.similar.get_or_insert(similar, HashSet::new(), now);
        if messages.len() < SIMILAR_MAX {
            messages.insert(message.to_owned());
        }
        // With the tenth message the table is full: from then on none is told apart.
        messages.len() >= SIMILAR_MAX
    }
}

/// A name that no other event has: of the object, and of the moment.
fn event_name(object: &str, now: Timestamp) -> String {
    let object = object.get(..NAME_MAX).unwrap_or(object);
    format!("{object}.{:x}", now.as_nanosecond())
}

/// A table that forgets the entry that was not used for the longest time when it is full.
#[derive(Debug)]
struct Table<K, V>(HashMap<K, (V, Timestamp)>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Clone + Eq + Hash, V> Table<K, V> {
    fn get(&mut self, key: &K, now: Timestamp) -> Option<&mut V> {
        let (value, used) = self.0.get_mut(key)?;
        *used = now;
        Some(value)
    }

    fn get_or_insert(&mut self, key: &K, value: V, now: Timestamp) -> &mut V {
        if !self.0.contains_key(key) {
            self.make_room();
        }
        let (value, used) = self.0.entry(key.clone()).or_insert((value, now));
        *used = now;
        value
    }

    fn insert(&mut self, key: K, value: V, now: Timestamp) {
        self.make_room();
        self.0.insert(key, (value, now));
    }

    fn remove(&mut self, key: &K) {
        self.0.remove(key);
    }

    /// Whether an entry was not used for an interval.
    fn is_idle(&self, key: &K, now: Timestamp) -> bool {
        self.0.get(key).is_some_and(|(_, used)| now.duration_since(*used) > INTERVAL)
    }

    fn make_room(&mut self) {
        while self.0.len() >= REMEMBERED {
            let oldest = self.0.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.0.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: Reference<'_> =
        Reference { api_version: "v1", kind: "Pod", namespace: "n", name: "p", uid: "u" };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn sight(correlator: &mut Correlator, message: &str, second: i64) -> Action {
        let sighting = Sighting { about: &POD, event_type: EventType::Warning, reason: "Failed", message };
        correlator.correlate(&sighting, at(second))
    }

    #[test]
    fn an_event_that_repeats_is_counted() {
        let mut correlator = Correlator::default();
        let Action::Create(first) = sight(&mut correlator, "no", 5) else { panic!("the first is new") };
        assert_eq!((first.count, first.first, &*first.message), (1, at(5), "no"));
        let Action::Update(second) = sight(&mut correlator, "no", 9) else { panic!("the second is counted") };
        assert_eq!(second, Series { count: 2, ..first.clone() });
        let Action::Create(other) = sight(&mut correlator, "other", 9) else {
            panic!("another message is new")
        };
        assert_ne!(other.name, first.name);
        let normal = Sighting { about: &POD, event_type: EventType::Normal, reason: "Failed", message: "no" };
        assert!(matches!(correlator.correlate(&normal, at(9)), Action::Create(_)), "another type is new");
    }

    #[test]
    fn many_similar_events_are_combined_until_they_pause() {
        let mut correlator = Correlator::default();
        for number in 1..10 {
            assert!(matches!(sight(&mut correlator, &format!("{number}"), number), Action::Create(_)));
        }
        let Action::Create(combined) = sight(&mut correlator, "10", 10) else {
            panic!("the tenth is combined")
        };
        assert_eq!(combined.message, "(combined from similar events): 10");
        let Action::Update(more) = sight(&mut correlator, "11", 11) else { panic!("and so is the next") };
        assert_eq!((more.name, more.count), (combined.name, 2));
        assert_eq!(more.message, "(combined from similar events): 11");
        let Action::Create(later) = sight(&mut correlator, "12", 11 + 601) else { panic!("after a pause") };
        assert_eq!(later.message, "12");
    }

    #[test]
    fn an_object_with_very_many_events_gets_one_in_five_minutes() {
        let mut correlator = Correlator::default();
        let written = |correlator: &mut Correlator, second| sight(correlator, "no", second) != Action::Drop;
        let first: usize = (0..30).filter(|second| written(&mut correlator, *second)).count();
        assert_eq!(first, 25);
        assert!(!written(&mut correlator, 200));
        assert!(written(&mut correlator, 300));
        assert!(!written(&mut correlator, 301));
        assert!(written(&mut correlator, 900) && written(&mut correlator, 900), "two refills have gathered");
        let other = Reference { uid: "v", ..POD };
        let sighting =
            Sighting { about: &other, event_type: EventType::Warning, reason: "Failed", message: "no" };
        assert!(
            matches!(correlator.correlate(&sighting, at(301)), Action::Create(_)),
            "others have their own"
        );
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_is_forgotten() {
        let mut table = Table::default();
        for number in 0..2 * REMEMBERED {
            table.insert(number, (), at(number as i64));
            assert!(table.get(&0, at(number as i64)).is_some(), "what is used stays");
        }
        assert_eq!(table.0.len(), REMEMBERED);
    }

    #[test]
    fn a_long_name_leaves_room_for_the_time() {
        let name = event_name(&"a".repeat(253), Timestamp::now());
        assert!(name.len() <= 253, "{}", name.len());
        assert_eq!(event_name("p", Timestamp::UNIX_EPOCH), "p.0");
    }
}
