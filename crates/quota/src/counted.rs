//! The quota evaluators: which quota resources apply to an object, and its usage of each.

use std::collections::BTreeMap;

use model::Object;
use model::object::{items, items_in, present, text, text_in};
use serde_json::Value;

use crate::amounts::{Amount, Amounts, charged};

const CLASS: &str = ".storageclass.storage.k8s.io/";
const DEVICES: &str = ".deviceclass.resource.k8s.io/devices";
/// The number of devices that a ResourceClaim with allocation mode `All` is charged for.
const ALL_DEVICES: i64 = 32;

/// A resource whose objects quotas count.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural resource name.
    pub plural: &'a str,
    /// The current time in seconds since the epoch: Pods whose grace period has passed are not charged.
    pub now: i64,
}

impl Counted<'_> {
    /// The quota resource for the number of these objects, such as `count/deployments.apps`.
    fn count_name(self) -> String {
        match self.group {
            "" => format!("count/{}", self.plural),
            group => format!("count/{}.{group}", self.plural),
        }
    }

    /// Whether a quota resource applies to these objects.
    pub(crate) fn matches(self, name: &str) -> bool {
        if name == self.count_name() {
            return true;
        }
        match (self.group, self.plural) {
            ("", "pods") => {
                const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
                let plain =
                    name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
                let requested = name.strip_prefix("requests.").unwrap_or(name);
                let is_extended = name.starts_with("requests.")
                    && requested.contains('/')
                    && !requested.split('/').next().is_some_and(|domain| domain.ends_with("kubernetes.io"));
                name == "pods"
                    || COMPUTE.contains(&plain)
                    || requested.starts_with("hugepages-")
                    || is_extended
            }
            ("", "services") => ["services", "services.nodeports", "services.loadbalancers"].contains(&name),
            ("", "persistentvolumeclaims") => {
                let plain = name.split_once(CLASS).map_or(name, |(_, plain)| plain);
                ["persistentvolumeclaims", "requests.storage"].contains(&plain)
            }
            ("resource.k8s.io", "resourceclaims") => name.ends_with(DEVICES),
            ("", plural @ ("configmaps" | "resourcequotas" | "replicationcontrollers" | "secrets")) => {
                name == plural
            }
            _ => false,
        }
    }

    /// The usage of one object.
    pub(crate) fn usage(self, object: &Object) -> Amounts {
        let mut usage = Amounts::from_iter([(self.count_name(), Amount::count(1))]);
        match (self.group, self.plural) {
            ("", "pods") => self.use_of_pod(object, &mut usage),
            ("", "services") => use_of_service(object, &mut usage),
            ("", "persistentvolumeclaims") => use_of_claim(object, &mut usage),
            ("resource.k8s.io", "resourceclaims") => use_of_devices(object, &mut usage),
            ("", plural) => drop(usage.insert(plural.to_owned(), Amount::count(1))),
            _ => {}
        }
        usage
    }

    fn use_of_pod(self, pod: &Object, usage: &mut Amounts) {
        let seconds: Option<i64> = text(pod, &["metadata", "deletionTimestamp"])
            .parse::<jiff::Timestamp>()
            .ok()
            .map(jiff::Timestamp::as_second);
        let grace = present(pod, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
        let is_overdue = seconds.zip(grace).is_some_and(|(end, grace)| self.now > end.saturating_add(grace));
        if is_overdue || ["Failed", "Succeeded"].contains(&text(pod, &["status", "phase"])) {
            return;
        }
        usage.extend(use_of_compute(&charged(pod, "requests"), &charged(pod, "limits")));
    }
}

/// The usage that follows from the requests and limits of a Pod or container.
pub(crate) fn use_of_compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from_iter([("pods".to_owned(), Amount::count(1))]);
    for (name, amount) in requests {
        let is_compute = ["cpu", "memory", "ephemeral-storage"].contains(&name.as_str());
        if is_compute || name.starts_with("hugepages-") {
            usage.insert(name.clone(), amount.clone());
        }
        if is_compute || name.starts_with("hugepages-") || name.contains('/') {
            usage.insert(format!("requests.{name}"), amount.clone());
        }
    }
    for name in ["cpu", "memory", "ephemeral-storage"] {
        usage.extend(limits.get(name).map(|amount| (format!("limits.{name}"), amount.clone())));
    }
    usage
}

fn use_of_service(service: &Object, usage: &mut Amounts) {
    let ports = items(service, &["spec", "ports"]);
    let named =
        ports.iter().filter(|port| port.get("nodePort").and_then(Value::as_i64).unwrap_or(0) != 0).count();
    let allocates =
        present(service, &["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool) != Some(false);
    let (on_nodes, balancers) = match text(service, &["spec", "type"]) {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" => (if allocates { ports.len() } else { named }, 1),
        _ => (0, 0),
    };
    for (name, number) in
        [("services", 1), ("services.nodeports", on_nodes), ("services.loadbalancers", balancers)]
    {
        usage.insert(name.to_owned(), Amount::count(number));
    }
}

fn use_of_claim(claim: &Object, usage: &mut Amounts) {
    let annotated = text(claim, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    let class = if annotated.is_empty() { text(claim, &["spec", "storageClassName"]) } else { annotated };
    let size = |path: &[&str]| present(claim, path).and_then(Value::as_str).map(Amount::read);
    let asked = size(&["spec", "resources", "requests", "storage"]);
    let given = size(&["status", "allocatedResources", "storage"]);
    let size = asked.map(|asked| match given {
        Some(given) if given.value > asked.value => given,
        _ => asked,
    });
    let uses =
        [Some(("persistentvolumeclaims", Amount::count(1))), size.map(|size| ("requests.storage", size))];
    for (name, amount) in uses.into_iter().flatten() {
        if !class.is_empty() {
            usage.insert(format!("{class}{CLASS}{name}"), amount.clone());
        }
        usage.insert(name.to_owned(), amount);
    }
}

/// Adds the devices of a ResourceClaim by device class. A request with alternatives (`firstAvailable`) is
/// charged for the largest number of each class.
fn use_of_devices(claim: &Object, usage: &mut Amounts) {
    let number = |request: &Value| match request.get("allocationMode").and_then(Value::as_str) {
        Some("ExactCount") => request.get("count").and_then(Value::as_i64).unwrap_or(0),
        Some("All") => ALL_DEVICES,
        _ => 0,
    };
    let class = |request: &Value| text_in(request, "deviceClassName").to_owned();
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for request in items(claim, &["spec", "devices", "requests"]) {
        let choices = items_in(request, "firstAvailable");
        let asked = if choices.is_empty() {
            request.get("exactly").into_iter().collect()
        } else {
            Vec::from_iter(choices)
        };
        let mut most: BTreeMap<String, i64> = BTreeMap::new();
        for one in asked {
            let known = most.entry(class(one)).or_default();
            *known = number(one).max(*known);
        }
        for (class, number) in most {
            let sum = sums.entry(class).or_default();
            *sum = sum.saturating_add(number);
        }
    }
    usage.extend(
        sums.into_iter()
            .map(|(class, number)| (format!("{class}{DEVICES}"), Amount::read(&number.to_string()))),
    );
}
