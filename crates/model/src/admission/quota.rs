//! Quotas: what an object uses of what a namespace may use.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Object;
use super::amounts::{Amount, Amounts, amounts, charged};

const CLASS: &str = ".storageclass.storage.k8s.io/";

/// A quota as it is stored, as far as it counts.
pub struct Quota<'a> {
    /// The whole object.
    pub object: &'a Object,
    hard: Amounts,
    used: Amounts,
    scopes: Vec<Scope>,
}

struct Scope {
    name: String,
    operator: String,
    values: Vec<String>,
}

/// What is counted of an object.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    /// The group of its resource; empty for the core group.
    pub group: &'a str,
    /// The plural name of its resource.
    pub plural: &'a str,
    /// Seconds since the epoch, for pods that should be gone.
    pub now: i64,
}

/// The text at a path.
fn text<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or("")
}

fn at<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(*first)?, |value, key| value.get(key)).filter(|value| !value.is_null())
}

impl<'a> Quota<'a> {
    /// Reads a quota.
    pub fn read(object: &'a Object) -> Self {
        let scopes = at(object, &["spec", "scopes"]).and_then(Value::as_array).into_iter().flatten();
        let scope =
            |name: &str| Scope { name: name.to_owned(), operator: "Exists".to_owned(), values: Vec::new() };
        let plain = scopes.filter_map(Value::as_str).map(scope);
        let expressions =
            at(object, &["spec", "scopeSelector", "matchExpressions"]).and_then(Value::as_array);
        let selected = expressions.into_iter().flatten().map(|expression| {
            let text = |key: &str| expression.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
            Scope { name: text("scopeName"), operator: text("operator"), values }
        });
        let scopes = plain.chain(selected).collect();
        let (hard, used) =
            (amounts(at(object, &["status", "hard"])), amounts(at(object, &["status", "used"])));
        Self { object, hard, used, scopes }
    }

    fn name(&self) -> &str {
        text(self.object, &["metadata", "name"])
    }

    /// The resources of it that count an object of this kind, if its scopes are those of the object.
    fn restricts(&self, counted: Counted<'_>, object: &Object) -> Option<BTreeSet<String>> {
        let names: BTreeSet<String> =
            self.hard.keys().filter(|name| counted.matches(name)).cloned().collect();
        let is_in_scope = self.scopes.iter().all(|scope| scope.has(counted, object));
        (!names.is_empty() && is_in_scope).then_some(names)
    }

    /// The same object with more in use.
    fn using(&self, used: &Amounts) -> Object {
        let mut object = self.object.clone();
        let status = object.entry("status").or_insert_with(|| json!({}));
        let used: BTreeMap<&String, &String> =
            used.iter().map(|(name, amount)| (name, &amount.text)).collect();
        status["used"] = json!(used);
        object
    }
}

impl Scope {
    fn has(&self, counted: Counted<'_>, object: &Object) -> bool {
        match (counted.group, counted.plural) {
            ("", "pods") => self.has_pod(object),
            ("", "persistentvolumeclaims") if self.name == "VolumeAttributesClass" => {
                let names = [
                    &["spec", "volumeAttributesClassName"][..],
                    &["status", "currentVolumeAttributesClassName"],
                    &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
                ];
                let named: Vec<&str> =
                    names.iter().map(|path| text(object, path)).filter(|name| !name.is_empty()).collect();
                if named.is_empty() { self.selects("") } else { named.iter().any(|name| self.selects(name)) }
            }
            _ => false,
        }
    }

    fn has_pod(&self, pod: &Object) -> bool {
        let ends =
            at(pod, &["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64).is_some_and(|s| s >= 0);
        let is_best_effort = || text(pod, &["status", "qosClass"]) == "BestEffort";
        match self.name.as_str() {
            "Terminating" => ends,
            "NotTerminating" => !ends,
            "BestEffort" => is_best_effort(),
            "NotBestEffort" => !is_best_effort(),
            "PriorityClass" => self.selects(text(pod, &["spec", "priorityClassName"])),
            "CrossNamespacePodAffinity" => crosses_namespaces(pod),
            _ => false,
        }
    }

    fn selects(&self, name: &str) -> bool {
        let is_listed = self.values.iter().any(|value| value == name);
        match self.operator.as_str() {
            "In" => !name.is_empty() && is_listed,
            "NotIn" => !is_listed,
            "Exists" => !name.is_empty(),
            _ => name.is_empty(),
        }
    }
}

fn crosses_namespaces(pod: &Object) -> bool {
    let crosses = |term: &Value| {
        let namespaces =
            term.get("namespaces").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        namespaces || term.get("namespaceSelector").is_some_and(|selector| !selector.is_null())
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|key| {
        let list = |name: &str| {
            at(pod, &["spec", "affinity", key, name]).and_then(Value::as_array).into_iter().flatten()
        };
        let preferred = list("preferredDuringSchedulingIgnoredDuringExecution");
        list("requiredDuringSchedulingIgnoredDuringExecution").any(crosses)
            || preferred.filter_map(|term| term.get("podAffinityTerm")).any(crosses)
    })
}

impl Counted<'_> {
    /// How many of these objects there are.
    fn count_name(self) -> String {
        match self.group {
            "" => format!("count/{}", self.plural),
            group => format!("count/{}.{group}", self.plural),
        }
    }

    fn matches(self, name: &str) -> bool {
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
            ("", plural @ ("configmaps" | "resourcequotas" | "replicationcontrollers" | "secrets")) => {
                name == plural
            }
            _ => false,
        }
    }

    /// What an object uses.
    fn usage(self, object: &Object) -> Amounts {
        let mut usage = Amounts::from_iter([(self.count_name(), Amount::count(1))]);
        match (self.group, self.plural) {
            ("", "pods") => self.use_of_pod(object, &mut usage),
            ("", "services") => use_of_service(object, &mut usage),
            ("", "persistentvolumeclaims") => use_of_claim(object, &mut usage),
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
        let grace = at(pod, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
        let is_overdue = seconds.zip(grace).is_some_and(|(end, grace)| self.now > end.saturating_add(grace));
        if is_overdue || ["Failed", "Succeeded"].contains(&text(pod, &["status", "phase"])) {
            return;
        }
        usage.extend(use_of_compute(&charged(pod, "requests"), &charged(pod, "limits")));
    }
}

fn use_of_compute(requests: &Amounts, limits: &Amounts) -> Amounts {
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
    let ports = at(service, &["spec", "ports"]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let named =
        ports.iter().filter(|port| port.get("nodePort").and_then(Value::as_i64).unwrap_or(0) != 0).count();
    let allocates =
        at(service, &["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool) != Some(false);
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
    let size = |path: &[&str]| at(claim, path).and_then(Value::as_str).map(Amount::read);
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

/// Containers say what they need where that is counted.
fn missing_requests(pod: &Object, required: &BTreeSet<String>) -> Option<String> {
    const NEEDED: [&str; 6] =
        ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
    if at(pod, &["spec", "resources"])
        .and_then(Value::as_object)
        .is_some_and(|resources| !resources.is_empty())
    {
        return None;
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for key in ["containers", "initContainers"] {
        for container in at(pod, &["spec", key]).and_then(Value::as_array).into_iter().flatten() {
            let part = |part: &str| amounts(container.get("resources").and_then(|all| all.get(part)));
            let usage = use_of_compute(&part("requests"), &part("limits"));
            let name = container.get("name").and_then(Value::as_str).unwrap_or("");
            for needed in
                NEEDED.iter().filter(|needed| required.contains(**needed) && !usage.contains_key(**needed))
            {
                missing.entry(needed).or_default().insert(name);
            }
        }
    }
    let one = |(resource, names): (&&str, &BTreeSet<&str>)| {
        format!("{resource} for: {}", names.iter().copied().collect::<Vec<_>>().join(","))
    };
    (!missing.is_empty())
        .then(|| format!("must specify {}", missing.iter().map(one).collect::<Vec<_>>().join("; ")))
}

/// What the quotas of a namespace become when an object is written; only those that change, by their place.
///
/// # Errors
/// Why the object may not be written.
pub fn charge(
    quotas: &[Quota<'_>],
    counted: Counted<'_>,
    new: &Object,
    old: Option<&Object>,
    is_status: bool,
) -> Result<Vec<(usize, Object)>, String> {
    let mut concerned = Vec::new();
    for (at, quota) in quotas.iter().enumerate() {
        let Some(restricted) = quota.restricts(counted, new) else { continue };
        if (counted.group, counted.plural) == ("", "pods")
            && let Some(missing) = missing_requests(new, &restricted)
        {
            return Err(format!("failed quota: {}: {missing}", quota.name()));
        }
        if restricted.iter().any(|name| !quota.used.contains_key(name)) {
            let names: Vec<&str> = restricted.iter().map(String::as_str).collect();
            return Err(format!(
                "status unknown for quota: {}, resources: {}",
                quota.name(),
                names.join(",")
            ));
        }
        concerned.push((at, quota));
    }
    if concerned.is_empty() {
        return Ok(Vec::new());
    }
    let usage = counted.usage(new);
    let negative: Vec<&str> = usage
        .iter()
        .filter(|(_, amount)| amount.value.is_negative())
        .map(|(name, _)| name.as_str())
        .collect();
    if !negative.is_empty() {
        return Err(format!("quota usage is negative for resource(s): {}", negative.join(",")));
    }
    let before = old.map(|old| counted.usage(old)).unwrap_or_default();
    let mut changed = Vec::new();
    for (at, quota) in concerned {
        let was_counted = old.is_some_and(|old| quota.restricts(counted, old).is_some());
        let more = |(name, amount): (&String, &Amount)| {
            let known = before.get(name).filter(|_| was_counted);
            (name.clone(), known.map_or_else(|| amount.clone(), |known| amount.minus(known)))
        };
        let mut asked: Amounts = usage.iter().map(more).collect();
        asked.retain(|name, amount| !amount.value.is_zero() && quota.hard.contains_key(name));
        if asked.is_empty() {
            continue;
        }
        let used = quota.with(&asked, is_status)?;
        changed.push((at, quota.using(&used)));
    }
    Ok(changed)
}

impl Quota<'_> {
    fn with(&self, asked: &Amounts, is_status: bool) -> Result<Amounts, String> {
        let mut used = self.used.clone();
        for (name, amount) in asked {
            let sum = used.get(name).map_or_else(|| amount.clone(), |known| known.plus(amount));
            used.insert(name.clone(), sum);
        }
        let is_exceeded = |name: &&String| {
            let (sum, hard) = (&used[*name], self.hard.get(*name));
            hard.is_some_and(|hard| sum.value > hard.value)
        };
        let exceeded: Vec<&String> = asked.keys().filter(is_exceeded).collect();
        if exceeded.is_empty() || is_status {
            return Ok(used);
        }
        let show = |amounts: &Amounts| {
            let shown =
                exceeded.iter().filter_map(|name| Some(format!("{name}={}", amounts.get(*name)?.text)));
            shown.collect::<Vec<_>>().join(",")
        };
        Err(format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            self.name(),
            show(asked),
            show(&self.used),
            show(&self.hard)
        ))
    }
}

#[cfg(test)]
mod tests;
