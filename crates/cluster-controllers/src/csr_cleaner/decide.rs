//! The expiry of a CertificateSigningRequest.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::views::{Metadata, or_default};

/// The time for which an approved or denied request is kept.
const ANSWERED: SignedDuration = SignedDuration::from_hours(1);
/// The time for which a pending request is kept.
const WAITING: SignedDuration = SignedDuration::from_hours(24);

/// The fields of a CertificateSigningRequest that this controller reads.
#[derive(Debug, Deserialize)]
pub(super) struct SigningRequest {
    pub metadata: Metadata,
    #[serde(default)]
    pub status: Status,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Status {
    #[serde(default, deserialize_with = "or_default")]
    conditions: Vec<Condition>,
    /// PEM in base64; empty before it is issued.
    #[serde(default)]
    pub certificate: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    last_update_time: Option<Timestamp>,
}

/// The time at which a request expires. `expires` is the end of its certificate's validity.
pub(super) fn end(request: &SigningRequest, expires: Option<Timestamp>) -> Option<Timestamp> {
    let SigningRequest { metadata, status } = request;
    if status.conditions.is_empty() {
        return metadata.creation_timestamp?.checked_add(WAITING).ok();
    }
    let is_issued = !status.certificate.is_empty();
    let ends = status.conditions.iter().filter_map(|condition| {
        let kept = match condition.kind.as_str() {
            "Denied" | "Failed" => ANSWERED,
            "Approved" if is_issued => ANSWERED,
            "Approved" => WAITING,
            _ => return None,
        };
        condition.last_update_time?.checked_add(kept).ok()
    });
    let is_approved = status.conditions.iter().any(|condition| condition.kind == "Approved");
    ends.chain(expires.filter(|_| is_approved && is_issued)).min()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn hours(hours: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + hours * 3600).unwrap()
    }

    fn request(conditions: Value, certificate: &str) -> SigningRequest {
        serde_json::from_value(json!({
            "metadata": {"name": "r", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"request": "", "signerName": "example.com/x"},
            "status": {"conditions": conditions, "certificate": certificate},
        }))
        .unwrap()
    }

    #[test]
    fn answered_requests_expire_after_an_hour_and_pending_ones_after_a_day() {
        let one =
            |kind: &str| json!([{"type": kind, "status": "True", "lastUpdateTime": "2026-01-01T01:00:00Z"}]);
        let two = json!([{"type": "Approved", "lastUpdateTime": "2026-01-01T01:00:00Z"},
            {"type": "Failed", "lastUpdateTime": "2026-01-01T03:00:00Z"}]);
        for (conditions, certificate, expires, expected) in [
            (json!([]), "", None, Some(hours(24))),
            (one("Denied"), "", None, Some(hours(2))),
            (one("Failed"), "", None, Some(hours(2))),
            (one("Approved"), "", None, Some(hours(25))),
            (one("Approved"), "cert", None, Some(hours(2))),
            (one("Approved"), "cert", Some(hours(0)), Some(hours(0))),
            (one("Denied"), "", Some(hours(0)), Some(hours(2))),
            (one("Strange"), "", None, None),
            (json!([{"type": "Denied"}]), "", None, None),
            (two, "", None, Some(hours(4))),
        ] {
            let found = end(&request(conditions.clone(), certificate), expires);
            assert_eq!(found, expected, "{conditions} {certificate:?}");
        }
    }
}
