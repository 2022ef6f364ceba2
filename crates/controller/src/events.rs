//! Events: what a controller tells people about an object.

use jiff::Timestamp;
use kube::Client;
use serde::de::IgnoredAny;
use serde_json::json;

use crate::{Kind, Objects, Result};

const EVENTS: Kind = Kind { group: "", version: "v1", kind: "Event", plural: "events" };
/// Where events about objects of the cluster are.
const DEFAULT_NAMESPACE: &str = "default";

/// The object that an event is about.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'a> {
    /// Its version, with the group.
    pub api_version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its namespace; empty if it has none.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
}

/// Warns people. `reporter` is the name of the controller.
///
/// # Errors
/// When the server refuses.
pub async fn warn(
    client: &Client,
    reporter: &str,
    about: &Reference<'_>,
    reason: &str,
    message: &str,
) -> Result<()> {
    let now = Timestamp::now();
    let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let namespace = if about.namespace.is_empty() { DEFAULT_NAMESPACE } else { about.namespace };
    let event = json!({
        "metadata": {"name": format!("{}.{:x}", about.name, now.as_nanosecond()), "namespace": namespace},
        "involvedObject": {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        },
        "type": "Warning",
        "reason": reason,
        "message": message,
        "source": {"component": reporter},
        "reportingComponent": reporter,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    });
    Objects::new(client, &EVENTS.resource(), Some(namespace)).create::<IgnoredAny>(&event).await?;
    Ok(())
}
