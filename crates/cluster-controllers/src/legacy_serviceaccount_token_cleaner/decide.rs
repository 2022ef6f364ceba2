//! The decision about an auto-generated service account token that is not used.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use serde::Deserialize;
use serde_json::Value;

use crate::views::{Metadata, or_default};

/// The label with the day of a token's last use.
pub(super) const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// The label with the day from which a token is invalid.
pub(super) const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// The fields of a ServiceAccount that this controller reads.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Account {
    pub metadata: Metadata,
    #[serde(default, deserialize_with = "or_default")]
    secrets: Vec<Named>,
}

#[derive(Clone, Debug, Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

/// The other objects that the decision depends on.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    /// The day since which the use of tokens is tracked, as stored.
    pub since: Option<String>,
    /// The ServiceAccount of the Secret.
    pub account: Option<Account>,
    /// Whether a Pod refers to the Secret.
    pub is_mounted: bool,
}

/// The decision about a Secret.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TokenCleanupStep {
    /// Nothing to do before this time.
    Wait(Timestamp),
    /// Nothing to do before the Secret changes.
    Keep,
    /// Nothing to do while other objects keep it; check again later.
    KeepForNow,
    /// Invalidate it from this day on.
    Refuse(String),
    /// Delete it.
    Delete,
}

/// The first time at which a token may have expired by its own labels. `None` if it is being deleted, or its labels are
/// malformed.
pub(super) fn due(secret: &Metadata, period: SignedDuration) -> Option<Timestamp> {
    let made = secret.creation_timestamp.filter(|_| secret.deletion_timestamp.is_none())?;
    let mut due = made.checked_add(period).and_then(|time| time.checked_add(1.second())).ok()?;
    if let Some(used) = secret.labels.get(LAST_USED) {
        due = due.max(end_of_period(day(used)?, period)?);
    }
    if let Some(refused) = secret.labels.get(INVALID_SINCE).and_then(|text| day(text)) {
        due = due.max(end_of_period(refused, period)?);
    }
    Some(due)
}

/// Decides about a token that is due.
pub(super) fn decide(
    secret: &Metadata,
    around: &Surroundings,
    now: Timestamp,
    period: SignedDuration,
) -> TokenCleanupStep {
    let Some(noted) = around.since.as_deref().and_then(day).and_then(|since| end_of_period(since, period))
    else {
        return TokenCleanupStep::KeepForNow;
    };
    if now < noted {
        return TokenCleanupStep::Wait(noted);
    }
    // A Secret that its ServiceAccount does not list was created manually, and is not cleaned up.
    let names_it = |account: &Account| account.secrets.iter().any(|named| named.name == secret.name);
    if around.is_mounted || !around.account.as_ref().is_some_and(names_it) {
        return TokenCleanupStep::KeepForNow;
    }
    match secret.labels.get(INVALID_SINCE).and_then(|text| day(text)) {
        Some(_) => TokenCleanupStep::Delete,
        None => TokenCleanupStep::Refuse(now.to_zoned(TimeZone::UTC).date().to_string()),
    }
}

/// A day such as `2026-01-31`, and nothing else.
fn day(text: &str) -> Option<Date> {
    Date::strptime("%Y-%m-%d", text).ok().filter(|date| date.to_string() == text)
}

/// The end of a period that begins with the end of a day.
fn end_of_period(day: Date, period: SignedDuration) -> Option<Timestamp> {
    let end = day.tomorrow().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
    end.checked_add(period).ok()
}

/// Whether a text occurs anywhere in a value.
pub(super) fn mentions(value: &Value, text: &str) -> bool {
    match value {
        Value::String(known) => known == text,
        Value::Array(items) => items.iter().any(|item| mentions(item, text)),
        Value::Object(fields) => fields.values().any(|field| mentions(field, text)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PERIOD: SignedDuration = SignedDuration::from_hours(24 * 365);

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn secret(labels: Value) -> Metadata {
        let value = json!({"name": "token", "creationTimestamp": "2024-01-01T00:00:00Z", "labels": labels});
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_token_is_due_a_period_after_creation_use_and_invalidation() {
        for (labels, expected) in [
            (json!(null), Some("2024-12-31T00:00:01Z")),
            (json!({LAST_USED: "2024-03-01"}), Some("2025-03-02T00:00:00Z")),
            (json!({LAST_USED: "2023-03-01"}), Some("2024-12-31T00:00:01Z")),
            (json!({LAST_USED: "2024-3-1"}), None),
            (json!({LAST_USED: "long ago"}), None),
            (json!({INVALID_SINCE: "2025-03-01"}), Some("2026-03-02T00:00:00Z")),
            (json!({INVALID_SINCE: "long ago"}), Some("2024-12-31T00:00:01Z")),
        ] {
            assert_eq!(due(&secret(labels.clone()), PERIOD), expected.map(time), "{labels}");
        }
        let mut going = secret(json!({}));
        going.deletion_timestamp = Some(Timestamp::UNIX_EPOCH);
        assert_eq!(due(&going, PERIOD), None);
    }

    #[test]
    fn a_due_token_is_invalidated_first_and_deleted_later() {
        let account = |name: &str| -> Account {
            serde_json::from_value(json!({"metadata": {}, "secrets": [{"name": name}]})).unwrap()
        };
        let (its, other) = (account("token"), account("other"));
        let around = |since: Option<&str>, account: Option<&Account>, is_mounted| Surroundings {
            since: since.map(str::to_owned),
            account: account.cloned(),
            is_mounted,
        };
        let long = Some("2020-01-01");
        let refused = json!({INVALID_SINCE: "2025-01-01"});
        for (labels, around, expected) in [
            (json!({}), around(None, Some(&its), false), TokenCleanupStep::KeepForNow),
            (json!({}), around(Some("now"), Some(&its), false), TokenCleanupStep::KeepForNow),
            (
                json!({}),
                around(Some("2026-01-01"), Some(&its), false),
                TokenCleanupStep::Wait(time("2027-01-02T00:00:00Z")),
            ),
            (json!({}), around(long, None, false), TokenCleanupStep::KeepForNow),
            (json!({}), around(long, Some(&other), false), TokenCleanupStep::KeepForNow),
            (json!({}), around(long, Some(&its), true), TokenCleanupStep::KeepForNow),
            (json!({}), around(long, Some(&its), false), TokenCleanupStep::Refuse("2026-05-06".to_owned())),
            (refused.clone(), around(long, Some(&its), false), TokenCleanupStep::Delete),
            (refused, around(long, Some(&its), true), TokenCleanupStep::KeepForNow),
        ] {
            let step = decide(&secret(labels.clone()), &around, time("2026-05-06T07:08:09Z"), PERIOD);
            assert_eq!(step, expected, "{labels}");
        }
    }

    #[test]
    fn a_pod_may_refer_to_a_secret_anywhere() {
        let spec =
            json!({"volumes": [{"projected": {"subscriptions": [{"secret": {"name": "token"}}]}}], "x": 1});
        assert!(mentions(&spec, "token"));
        assert!(!mentions(&spec, "tokens"));
    }
}
