//! Printer columns of Pod, with the summary of its status.

use model::Object;
use model::object::{is_true, items, number, text};
use serde_json::Value;

use super::fields::{object, objects};
use crate::rules::age::since;
use crate::rules::columns::{AGE, Column, NAME, age, name};

/// The columns.
pub const COLUMNS: &[Column] = &[
    NAME,
    Column::new("Ready", "string", "Ready containers and all containers."),
    Column::new("Status", "string", "The summary of the status of its containers."),
    Column::new("Restarts", "string", "Restarts of its containers, and the time since the last one."),
    AGE,
    Column::new("IP", "string", "The IP address of the pod.").wide(),
    Column::new("Node", "string", "The node that runs it.").wide(),
    Column::new("Nominated Node", "string", "The node on which preemption makes room for it.").wide(),
    Column::new("Readiness Gates", "string", "Passed readiness gates and all readiness gates.").wide(),
];

/// The cells of a pod.
pub fn cells(pod: &Object, now: jiff::Timestamp) -> Vec<Value> {
    let summary = Summary::of(pod);
    let or_none = |text: &str| if text.is_empty() { "<none>".to_owned() } else { text.to_owned() };
    let restarts = match since(summary.last_restart, now) {
        Some(time) if summary.restarts != 0 => format!("{} ({time} ago)", summary.restarts),
        _ => summary.restarts.to_string(),
    };
    let ip = items(pod, &["status", "podIPs"]).first().and_then(|ip| ip.get("ip")).and_then(Value::as_str);
    vec![
        name(pod),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        age(pod, now),
        or_none(ip.unwrap_or_default()).into(),
        or_none(text(pod, &["spec", "nodeName"])).into(),
        or_none(text(pod, &["status", "nominatedNodeName"])).into(),
        gates(pod).into(),
    ]
}

fn gates(pod: &Object) -> String {
    let gates = items(pod, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let kind =
        |gate: &Value| gate.get("conditionType").and_then(Value::as_str).unwrap_or_default().to_owned();
    let open = gates.iter().filter(|gate| condition(pod, &kind(gate)) == Some("True")).count();
    format!("{open}/{}", gates.len())
}

/// The status of the first condition of a type.
fn condition<'a>(pod: &'a Object, kind: &str) -> Option<&'a str> {
    let conditions = object(pod, "status").into_iter().flat_map(|status| objects(status, "conditions"));
    conditions
        .map(|(_, condition)| condition)
        .find(|condition| text(condition, &["type"]) == kind)
        .map(|condition| text(condition, &["status"]))
}

#[derive(Default)]
struct Summary<'a> {
    ready: usize,
    total: usize,
    reason: String,
    restarts: i64,
    last_restart: &'a str,
}

impl<'a> Summary<'a> {
    fn of(pod: &'a Object) -> Self {
        let empty: &'static [Value] = &[];
        let spec_list = |field| object(pod, "spec").map_or(empty, |spec| items(spec, &[field]));
        let mut summary = Self { total: spec_list("containers").len(), ..Self::default() };
        let stays = |name: &str| {
            spec_list("initContainers").iter().filter_map(Value::as_object).any(|container| {
                text(container, &["name"]) == name && text(container, &["restartPolicy"]) == "Always"
            })
        };
        let sidecars = spec_list("initContainers").iter().filter_map(Value::as_object);
        summary.total += sidecars.filter(|container| text(container, &["restartPolicy"]) == "Always").count();
        let phase = text(pod, &["status", "phase"]);
        summary.reason = match text(pod, &["status", "reason"]) {
            "" => phase,
            reason => reason,
        }
        .to_owned();
        if let Some(status) = object(pod, "status") {
            let mut conditions = objects(status, "conditions").map(|(_, condition)| condition);
            if conditions.any(|condition| {
                text(condition, &["type"]) == "PodScheduled"
                    && text(condition, &["reason"]) == "SchedulingGated"
            }) {
                "SchedulingGated".clone_into(&mut summary.reason);
            }
            let (initializing, kept) = summary.add_first(status, spec_list("initContainers").len(), stays);
            if !initializing || condition_is_true(pod, "Initialized") {
                (summary.restarts, summary.last_restart) = kept;
                summary.add_regular(pod, status);
            }
        }
        if pod.get("metadata").and_then(|metadata| metadata.get("deletionTimestamp")).is_some() {
            if text(pod, &["status", "reason"]) == "NodeLost" {
                "Unknown".clone_into(&mut summary.reason);
            } else if !["Succeeded", "Failed"].contains(&phase) {
                "Terminating".clone_into(&mut summary.reason);
            }
        }
        summary
    }

    /// Adds the init containers. Returns whether they are still running, and the restarts of sidecars.
    fn add_first(
        &mut self,
        status: &'a Object,
        count: usize,
        stays: impl Fn(&str) -> bool,
    ) -> (bool, (i64, &'a str)) {
        let mut kept = Self::default();
        for (index, container) in objects(status, "initContainerStatuses") {
            self.add_restarts(container);
            let stays = stays(text(container, &["name"]));
            if stays {
                kept.add_restarts(container);
            }
            let state = object(container, "state");
            let terminated = state.and_then(|state| object(state, "terminated"));
            let waiting =
                state.and_then(|state| object(state, "waiting")).map_or("", |w| text(w, &["reason"]));
            match terminated {
                Some(terminated) if number(terminated, &["exitCode"]) == 0 => continue,
                _ if stays && is_true(container, &["started"]) => {
                    self.ready += usize::from(is_true(container, &["ready"]));
                    continue;
                }
                Some(terminated) => self.reason = format!("Init:{}", end_reason(terminated)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => {
                    self.reason = format!("Init:{waiting}");
                }
                None => self.reason = format!("Init:{index}/{count}"),
            }
            return (true, (kept.restarts, kept.last_restart));
        }
        (false, (kept.restarts, kept.last_restart))
    }

    fn add_regular(&mut self, pod: &Object, status: &'a Object) {
        let (mut has_running, mut failure) = (false, String::new());
        let statuses: Vec<&Object> =
            objects(status, "containerStatuses").map(|(_, container)| container).collect();
        for container in statuses.into_iter().rev() {
            self.add_restarts(container);
            let Some(state) = object(container, "state") else { continue };
            let waiting = object(state, "waiting").map_or("", |waiting| text(waiting, &["reason"]));
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) = object(state, "terminated") {
                self.reason = end_reason(terminated);
                if number(terminated, &["exitCode"]) != 0 {
                    failure.clone_from(&self.reason);
                }
            } else if is_true(container, &["ready"]) && state.contains_key("running") {
                has_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if has_running && condition_is_true(pod, "Ready") {
                "Running".clone_into(&mut self.reason);
            } else if !failure.is_empty() {
                self.reason = failure;
            } else if has_running {
                "NotReady".clone_into(&mut self.reason);
            }
        }
    }

    fn add_restarts(&mut self, container: &'a Object) {
        self.restarts += number(container, &["restartCount"]);
        // Times have one format, so that their text order is their time order.
        self.last_restart =
            self.last_restart.max(text(container, &["lastState", "terminated", "finishedAt"]));
    }
}

fn condition_is_true(pod: &Object, kind: &str) -> bool {
    condition(pod, kind) == Some("True")
}

/// The reason of a terminated container.
fn end_reason(terminated: &Object) -> String {
    match (text(terminated, &["reason"]), number(terminated, &["signal"])) {
        ("", 0) => format!("ExitCode:{}", number(terminated, &["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
