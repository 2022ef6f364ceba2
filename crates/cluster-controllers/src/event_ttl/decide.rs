//! The expiry of events.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use crate::views::or_default;

/// The fields of an Event that this controller reads.
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    pub metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub resource_version: String,
    creation_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "or_default")]
    managed_fields: Vec<Write>,
}

/// The time of a field manager's last write.
#[derive(Debug, Deserialize)]
struct Write {
    time: Option<Timestamp>,
}

/// The decision about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventStep {
    /// It has expired.
    Delete,
    /// It expires at this time.
    KeepUntil(Timestamp),
}

/// Decides about an event that expires `ttl` after its last write.
pub(super) fn decide(event: &Metadata, ttl: Duration, now: Timestamp) -> EventStep {
    let written = event.managed_fields.iter().filter_map(|write| write.time);
    // A server always sets a time; an event without any expires with the new ones.
    let last = written.chain(event.creation_timestamp).max().unwrap_or(now);
    match last.checked_add(ttl) {
        Ok(end) if end <= now => EventStep::Delete,
        Ok(end) => EventStep::KeepUntil(end),
        Err(_) => EventStep::KeepUntil(Timestamp::MAX),
    }
}

/// The time until the next pass. Events that expire within a sixtieth of the TTL are deleted together.
pub(super) fn next_pass(first_end: Timestamp, ttl: Duration, now: Timestamp) -> Duration {
    let wait = Duration::try_from(first_end.duration_since(now)).unwrap_or_default();
    wait.max(ttl / 60)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn an_event_expires_after_its_last_write() {
        let event = |made: i64, written: &[i64]| -> Metadata {
            let entries: Vec<_> = written.iter().map(|time| json!({"time": at(*time).to_string()})).collect();
            serde_json::from_value(
                json!({"creationTimestamp": at(made).to_string(), "managedFields": entries}),
            )
            .unwrap()
        };
        for (event, now, expected) in [
            (event(0, &[]), 3599, EventStep::KeepUntil(at(3600))),
            (event(0, &[]), 3600, EventStep::Delete),
            (event(0, &[0, 50, 20]), 3600, EventStep::KeepUntil(at(3650))),
            (Metadata::default(), 10, EventStep::KeepUntil(at(3610))),
        ] {
            assert_eq!(decide(&event, HOUR, at(now)), expected, "{event:?}");
        }
        assert_eq!(decide(&event(0, &[]), Duration::MAX, at(1)), EventStep::KeepUntil(Timestamp::MAX));
    }

    #[test]
    fn events_that_expire_close_together_are_deleted_together() {
        assert_eq!(next_pass(at(100), HOUR, at(0)), Duration::from_secs(100));
        assert_eq!(next_pass(at(1), HOUR, at(0)), Duration::from_secs(60));
        assert_eq!(next_pass(at(0), HOUR, at(5)), Duration::from_secs(60));
    }
}
