//! The decision about a Secret for the token of a service account.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::views::{Metadata, or_default};

/// The annotation with the name of the ServiceAccount.
pub(super) const NAME: &str = "kubernetes.io/service-account.name";
/// The annotation with the uid of the ServiceAccount, so that a later one of the same name does not get the token.
pub(super) const UID: &str = "kubernetes.io/service-account.uid";

/// The fields of a Secret that this controller reads. Its data is base64.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Secret {
    pub metadata: Metadata,
    #[serde(default, deserialize_with = "or_default")]
    pub data: BTreeMap<String, String>,
}

/// The decision about a token Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenSecretStep {
    /// The Secret is complete.
    Nothing,
    /// Its ServiceAccount does not exist, or has another uid.
    Delete,
    /// Data is missing.
    Complete(Missing),
}

/// The missing data of a Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub ca: bool,
    pub namespace: bool,
    pub token: bool,
}

/// Name and uid of the ServiceAccount of a Secret; the uid may be empty.
pub(crate) fn account(secret: &Metadata) -> Option<(&str, &str)> {
    let annotation = |key: &str| secret.annotations.get(key).map(String::as_str);
    let name = annotation(NAME).filter(|name| !name.is_empty())?;
    Some((name, annotation(UID).unwrap_or_default()))
}

/// Decides about a Secret, given the uid of its ServiceAccount, and the CA in base64.
pub(super) fn decide(secret: &Secret, uid: Option<&str>, ca: &str) -> TokenSecretStep {
    let Some((_, wanted)) = account(&secret.metadata) else { return TokenSecretStep::Nothing };
    if !uid.is_some_and(|uid| wanted.is_empty() || wanted == uid) {
        return TokenSecretStep::Delete;
    }
    let is_empty = |key: &str| secret.data.get(key).is_none_or(String::is_empty);
    let known = secret.data.get("ca.crt").map_or("", String::as_str);
    let missing = Missing { ca: known != ca, namespace: is_empty("namespace"), token: is_empty("token") };
    match missing {
        Missing { ca: false, namespace: false, token: false } => TokenSecretStep::Nothing,
        missing => TokenSecretStep::Complete(missing),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_token_secret_is_completed_and_deleted_with_its_account() {
        let whole = json!({"ca.crt": "Q0E=", "namespace": "bg==", "token": "dA=="});
        let missing = |ca, namespace, token| TokenSecretStep::Complete(Missing { ca, namespace, token });
        for (wanted, data, uid, expected) in [
            ("", json!({}), Some("1"), missing(true, true, true)),
            ("", whole.clone(), Some("1"), TokenSecretStep::Nothing),
            ("1", whole.clone(), Some("1"), TokenSecretStep::Nothing),
            (
                "1",
                json!({"ca.crt": "b2xk", "namespace": "bg==", "token": "dA=="}),
                Some("1"),
                missing(true, false, false),
            ),
            (
                "1",
                json!({"ca.crt": "Q0E=", "namespace": "bg==", "token": ""}),
                Some("1"),
                missing(false, false, true),
            ),
            ("1", Value::Null, Some("1"), missing(true, true, true)),
            ("2", whole.clone(), Some("1"), TokenSecretStep::Delete),
            ("", whole, None, TokenSecretStep::Delete),
        ] {
            let annotations = json!({NAME: "default", UID: wanted});
            let secret: Secret =
                serde_json::from_value(json!({"metadata": {"annotations": annotations}, "data": data}))
                    .unwrap();
            assert_eq!(decide(&secret, uid, "Q0E="), expected, "{secret:?} {uid:?}");
        }
        let unnamed: Secret = serde_json::from_value(json!({"metadata": {}})).unwrap();
        assert_eq!(decide(&unnamed, None, ""), TokenSecretStep::Nothing);
    }
}
