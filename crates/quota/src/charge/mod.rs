//! Charges quotas for a written object.

use std::collections::{BTreeMap, BTreeSet};

use model::Object;
use model::object::{items, present, text, text_in};
use serde_json::{Value, json};

use crate::Counted;
use crate::amounts::{Amount, Amounts, amounts};
use crate::counted::use_of_compute;
use crate::scope::{Scope, scopes};

/// A stored ResourceQuota.
pub struct Quota<'a> {
    /// The ResourceQuota object.
    pub object: &'a Object,
    hard: Amounts,
    used: Amounts,
    scopes: Vec<Scope>,
}

impl<'a> Quota<'a> {
    /// Reads `status.hard`, `status.used` and the scopes of a ResourceQuota.
    pub fn read(object: &'a Object) -> Self {
        let part = |name: &str| amounts(present(object, &["status", name]));
        Self { object, hard: part("hard"), used: part("used"), scopes: scopes(object) }
    }

    fn name(&self) -> &str {
        text(self.object, &["metadata", "name"])
    }

    /// The constrained resource names that apply to the object, or `None` if there are none or the object is
    /// out of scope.
    fn restricts(&self, counted: Counted<'_>, object: &Object) -> Option<BTreeSet<String>> {
        let names: BTreeSet<String> =
            self.hard.keys().filter(|name| counted.matches(name)).cloned().collect();
        let is_in_scope = self.scopes.iter().all(|scope| scope.has(counted, object));
        (!names.is_empty() && is_in_scope).then_some(names)
    }

    /// A copy of the ResourceQuota with this `status.used`.
    fn using(&self, used: &Amounts) -> Object {
        let mut object = self.object.clone();
        let status = object.entry("status").or_insert_with(|| json!({}));
        let used: BTreeMap<&String, &String> =
            used.iter().map(|(name, amount)| (name, &amount.text)).collect();
        status["used"] = json!(used);
        object
    }
}

/// The error for containers that do not set a request or limit that the quota constrains.
fn missing_requests(pod: &Object, required: &BTreeSet<String>) -> Option<String> {
    const NEEDED: [&str; 6] =
        ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
    if present(pod, &["spec", "resources"])
        .and_then(Value::as_object)
        .is_some_and(|resources| !resources.is_empty())
    {
        return None;
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for key in ["containers", "initContainers"] {
        for container in items(pod, &["spec", key]) {
            let part = |part: &str| amounts(container.get("resources").and_then(|all| all.get(part)));
            let usage = use_of_compute(&part("requests"), &part("limits"));
            let name = text_in(container, "name");
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

/// Returns the updated ResourceQuotas of a namespace, each with its index in `quotas`, after a write of an
/// object. A quota that does not change is left out.
///
/// # Errors
/// The reason why quota denies the write, in Kubernetes' words.
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
