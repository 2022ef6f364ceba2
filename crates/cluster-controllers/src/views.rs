//! Views of objects that several controllers share.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{DeleteParams, Preconditions};
use serde::{Deserialize, Deserializer};

/// The metadata fields that the controllers read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub creation_timestamp: Option<Timestamp>,
    pub deletion_timestamp: Option<Timestamp>,
    pub deletion_grace_period_seconds: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub finalizers: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub owner_references: Vec<Owner>,
}

impl Metadata {
    /// Delete options with the uid and resource version that were read as preconditions.
    pub fn deletion(&self) -> DeleteParams {
        let preconditions = Preconditions {
            uid: Some(self.uid.clone()),
            resource_version: Some(self.resource_version.clone()),
        };
        DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
    }
}

/// An owner of an object.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Owner {
    pub uid: String,
    #[serde(default)]
    pub controller: bool,
}

/// An object with its metadata only.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct MetadataOnly {
    pub metadata: Metadata,
}

/// An object without any fields: only its existence matters.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Existence {}

/// Deserializes `null` as the default.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// The decision about an object that expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpiryStep {
    /// It does not expire.
    Keep,
    /// It expires after this time.
    Wait(Duration),
    /// It has expired.
    Delete,
}

impl ExpiryStep {
    /// The decision about an object that expires at `end`.
    pub fn at(end: Option<Timestamp>, now: Timestamp) -> Self {
        match end {
            None => Self::Keep,
            Some(end) => wait_until(end, now).map_or(Self::Delete, Self::Wait),
        }
    }
}

/// The time until `end`; `None` if it is over.
pub(super) fn wait_until(end: Timestamp, now: Timestamp) -> Option<Duration> {
    Duration::try_from(end.duration_since(now)).ok().filter(|wait| !wait.is_zero())
}
