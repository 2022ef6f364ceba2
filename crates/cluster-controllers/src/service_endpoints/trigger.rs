//! The time of the change that triggered an update of endpoints, to measure latency.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::view::{Pod, Service};

/// The times of a Service and its Pods at the last decision.
#[derive(Default)]
pub struct TriggerTimes {
    service: Option<Timestamp>,
    pods: BTreeMap<String, Timestamp>,
}

impl TriggerTimes {
    /// The earliest change since the last decision, or the creation of the Service if there was none; stores the
    /// present times.
    pub fn trigger(&mut self, service: &Service, pods: &[Arc<Pod>]) -> Option<Timestamp> {
        let made = service.metadata.creation_timestamp;
        let ready =
            |pod: &Arc<Pod>| Some((pod.metadata.name.clone(), pod.readiness()?.last_transition_time?));
        let now = Self { service: made, pods: pods.iter().filter_map(ready).collect() };
        let before = std::mem::replace(self, now);
        if before.service.is_none() {
            return made;
        }
        let is_new =
            |(name, time): &(&String, &Timestamp)| before.pods.get(*name).is_none_or(|old| old < time);
        let of_pods = self.pods.iter().filter(is_new).map(|(_, time)| *time);
        of_pods.chain(made.filter(|made| before.service < Some(*made))).min()
    }
}
