//! Events: the recorder of what a controller has to tell people about an object.

mod correlator;

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use kube::Client;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use self::correlator::{Action, Correlator, Sighting};
use crate::{Objects, ResourceKind, Result};

const EVENTS: ResourceKind = ResourceKind { group: "", version: "v1", kind: "Event", plural: "events" };
/// The namespace of events about cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";

/// The object that an event is about.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'a> {
    /// Its group and version.
    pub api_version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its namespace; empty for a cluster-scoped object.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
}

impl Reference<'_> {
    fn namespace(&self) -> &str {
        if self.namespace.is_empty() { DEFAULT_NAMESPACE } else { self.namespace }
    }
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Something happened as it should.
    Normal,
    /// Something needs attention.
    Warning,
}

impl EventType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Writes the events of one controller. An event that repeats is counted in the one that exists; of many similar ones the later are combined;
/// an object that has very many gets one in five minutes.
pub struct Recorder {
    client: Client,
    component: String,
    correlator: Mutex<Correlator>,
}

impl Recorder {
    /// A recorder whose events name a component, such as `endpoint-slice-controller`, as their source.
    pub fn new(client: Client, component: impl Into<String>) -> Self {
        Self { client, component: component.into(), correlator: Mutex::default() }
    }

    /// Records that something happened as it should. See [`Recorder::warning`].
    pub async fn normal(&self, about: &Reference<'_>, reason: &str, message: &str) {
        self.record(about, EventType::Normal, reason, message).await;
    }

    /// Records a warning. An event that cannot be written is logged: events are for people, and no controller fails for want of one.
    pub async fn warning(&self, about: &Reference<'_>, reason: &str, message: &str) {
        self.record(about, EventType::Warning, reason, message).await;
    }

    async fn record(&self, about: &Reference<'_>, event_type: EventType, reason: &str, message: &str) {
        let now = Timestamp::now();
        let sighting = Sighting { about, event_type, reason, message };
        let action = {
            let mut correlator = self.correlator.lock().unwrap_or_else(PoisonError::into_inner);
            correlator.correlate(&sighting, now)
        };
        if let Err(error) = self.write(&sighting, action, now).await {
            let component = &self.component;
            tracing::debug!(component, ?about, %error, "cannot write an event: {reason}: {message}");
        }
    }

    async fn write(&self, sighting: &Sighting<'_>, action: Action, now: Timestamp) -> Result<()> {
        let events = Objects::new(&self.client, &EVENTS.resource(), Some(sighting.about.namespace()));
        let action = match action {
            Action::Drop => return Ok(()),
            Action::Update(series) => {
                let patch = json!({
                    "count": series.count, "message": series.message, "lastTimestamp": seconds(now),
                });
                match events.merge_patch::<IgnoredAny>(&series.name, &patch).await {
                    // The event has expired meanwhile.
                    Err(error) if error.is_not_found() => series,
                    written => return written.map(drop),
                }
            }
            Action::Create(series) => series,
        };
        events.create::<IgnoredAny>(&self.event(sighting, &action, now)).await?;
        Ok(())
    }

    fn event(&self, sighting: &Sighting<'_>, series: &correlator::Series, now: Timestamp) -> Value {
        let Sighting { about, event_type, reason, .. } = sighting;
        json!({
            "metadata": {"name": series.name, "namespace": about.namespace()},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
            "type": event_type.as_str(),
            "reason": reason,
            "message": series.message,
            "source": {"component": self.component},
            "reportingComponent": self.component,
            "firstTimestamp": seconds(series.first),
            "lastTimestamp": seconds(now),
            "count": series.count,
        })
    }
}

fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
