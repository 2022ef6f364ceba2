//! LimitRange: default requests and limits of containers, and the bounds of Pods, containers and
//! PersistentVolumeClaims.

use model::Object;
use serde_json::{Map, Value, json};

use quota::amounts::{Amount, Amounts, amounts, of_pod};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// A parsed LimitRange.
#[derive(Clone, Debug)]
pub struct LimitRange {
    limits: Vec<Limit>,
    default_requests: Object,
    default_limits: Object,
}

#[derive(Clone, Debug)]
struct Limit {
    /// `Container`, `Pod` or `PersistentVolumeClaim`.
    of: String,
    min: Amounts,
    max: Amounts,
    ratio: Amounts,
}

impl LimitRange {
    /// Parses a stored LimitRange.
    pub fn read(object: &Object) -> Self {
        let items = object.get("spec").and_then(|spec| spec.get("limits")).and_then(Value::as_array);
        let (mut default_requests, mut default_limits) = (Map::new(), Map::new());
        let mut limits = Vec::new();
        for item in items.into_iter().flatten() {
            let of = item.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
            let object = |key: &str| item.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
            if of == "Container" {
                default_requests.extend(object("defaultRequest"));
                default_limits.extend(object("default"));
            }
            let (min, max) = (amounts(item.get("min")), amounts(item.get("max")));
            limits.push(Limit { of, min, max, ratio: amounts(item.get("maxLimitRequestRatio")) });
        }
        Self { limits, default_requests, default_limits }
    }

    /// Sets the missing requests and limits of the containers of a Pod, and annotates the Pod with them.
    pub fn complete(&self, pod: &mut Object) {
        let mut notes = Vec::new();
        for (key, word) in [("containers", "container"), ("initContainers", "init container")] {
            let list = pod.get_mut("spec").and_then(|spec| spec.get_mut(key)).and_then(Value::as_array_mut);
            for container in list.into_iter().flatten().filter_map(Value::as_object_mut) {
                let name = container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
                for (part, word_of_part, defaults) in [
                    ("requests", "request", &self.default_requests),
                    ("limits", "limit", &self.default_limits),
                ] {
                    let set = complete(container, part, defaults);
                    if !set.is_empty() {
                        notes.push(format!("{} {word_of_part} for {word} {name}", set.join(", ")));
                    }
                }
            }
        }
        if !notes.is_empty() {
            let note = format!("LimitRanger plugin set: {}", notes.join("; "));
            object(object(pod, "metadata"), "annotations").insert(ANNOTATION.to_owned(), note.into());
        }
    }

    /// Validates a Pod against the limits.
    pub fn check_pod(&self, pod: &Object) -> Vec<String> {
        let mut errors = Vec::new();
        for limit in &self.limits {
            match limit.of.as_str() {
                "Container" => {
                    for key in ["containers", "initContainers"] {
                        let list = pod.get("spec").and_then(|spec| spec.get(key)).and_then(Value::as_array);
                        for container in list.into_iter().flatten() {
                            let resources = container.get("resources");
                            let of = |part: &str| amounts(resources.and_then(|all| all.get(part)));
                            limit.check(&of("requests"), &of("limits"), &mut errors);
                        }
                    }
                }
                "Pod" => limit.check(&of_pod(pod, "requests"), &of_pod(pod, "limits"), &mut errors),
                _ => {}
            }
        }
        errors
    }

    /// Validates a PersistentVolumeClaim against the limits.
    pub fn check_claim(&self, claim: &Object) -> Vec<String> {
        let requests = claim.get("spec").and_then(|spec| spec.get("resources"));
        let requests = amounts(requests.and_then(|resources| resources.get("requests")));
        let mut errors = Vec::new();
        for limit in self.limits.iter().filter(|limit| limit.of == "PersistentVolumeClaim") {
            limit.check_min(&requests, &Amounts::new(), &mut errors);
            for (name, most) in &limit.max {
                let most_text = &most.text;
                let begin = format!("maximum {name} usage per {} is {most_text}", limit.of);
                match requests.get(name) {
                    None => errors.push(format!("{begin}.  No request is specified")),
                    Some(asked) if asked.value > most.value => {
                        errors.push(format!("{begin}, but request is {}", asked.text));
                    }
                    Some(_) => {}
                }
            }
        }
        errors
    }
}

impl Limit {
    fn check(&self, requests: &Amounts, limits: &Amounts, errors: &mut Vec<String>) {
        self.check_min(requests, limits, errors);
        for (name, most) in &self.max {
            let begin = format!("maximum {name} usage per {} is {}", self.of, most.text);
            let above = |amount: Option<&Amount>| amount.filter(|amount| amount.value > most.value).cloned();
            if !limits.contains_key(name) {
                errors.push(format!("{begin}.  No limit is specified"));
            } else if let Some(limit) = above(limits.get(name)) {
                errors.push(format!("{begin}, but limit is {}", limit.text));
            } else if let Some(request) = above(requests.get(name)) {
                errors.push(format!("{begin}, but request is {}", request.text));
            }
        }
        for (name, most) in &self.ratio {
            errors.extend(self.check_ratio(name, most, requests.get(name), limits.get(name)));
        }
    }

    fn check_min(&self, requests: &Amounts, limits: &Amounts, errors: &mut Vec<String>) {
        for (name, least) in &self.min {
            let begin = format!("minimum {name} usage per {} is {}", self.of, least.text);
            let below = |amount: Option<&Amount>| amount.filter(|amount| amount.value < least.value).cloned();
            if !requests.contains_key(name) {
                errors.push(format!("{begin}.  No request is specified"));
            } else if let Some(request) = below(requests.get(name)) {
                errors.push(format!("{begin}, but request is {}", request.text));
            } else if let Some(limit) = below(limits.get(name)) {
                errors.push(format!("{begin}, but limit is {}", limit.text));
            }
        }
    }

    fn check_ratio(
        &self,
        name: &str,
        most: &Amount,
        request: Option<&Amount>,
        limit: Option<&Amount>,
    ) -> Option<String> {
        let begin = format!("{name} max limit to request ratio per {} is {}", self.of, most.text);
        let is_some = |amount: &&Amount| !amount.value.is_zero();
        let Some(request) = request.filter(is_some) else {
            return Some(format!("{begin}, but no request is specified or request is 0"));
        };
        let Some(limit) = limit.filter(is_some) else {
            return Some(format!("{begin}, but no limit is specified or limit is 0"));
        };
        let ratio = limit.value.to_f64() / request.value.to_f64();
        (ratio > most.value.to_f64()).then(|| format!("{begin}, but provided ratio is {ratio:.6}"))
    }
}

/// Joins several errors into one message.
pub fn joined(errors: &[String]) -> String {
    let mut unique: Vec<&String> = Vec::new();
    errors.iter().for_each(|error| {
        if !unique.contains(&error) {
            unique.push(error);
        }
    });
    match unique.as_slice() {
        [one] => (*one).clone(),
        many => format!("[{}]", many.iter().map(|text| text.as_str()).collect::<Vec<_>>().join(", ")),
    }
}

fn object<'a>(of: &'a mut Object, key: &str) -> &'a mut Object {
    let value = of.entry(key).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it was made an object just now")
}

/// Sets the missing requests or limits of a container, and returns their names.
fn complete(container: &mut Object, part: &str, defaults: &Object) -> Vec<String> {
    let has = |name: &str| {
        let resources = container.get("resources").and_then(|all| all.get(part));
        resources.and_then(|part| part.get(name)).is_some()
    };
    let mut missing: Vec<String> = defaults.keys().filter(|name| !has(name)).cloned().collect();
    missing.sort();
    if missing.is_empty() {
        return missing;
    }
    let resources = object(object(container, "resources"), part);
    for name in &missing {
        resources.insert(name.clone(), defaults[name].clone());
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object_of(value: Value) -> Object {
        value.as_object().cloned().unwrap()
    }

    fn range(limits: Value) -> LimitRange {
        LimitRange::read(&object_of(json!({"spec": {"limits": limits}})))
    }

    #[test]
    fn missing_requests_and_limits_are_set_and_annotated() {
        let range = range(json!([{
            "type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"memory": "5Mi", "cpu": "1"},
        }]));
        let mut pod = object_of(json!({"spec": {"containers": [
            {"name": "a"}, {"name": "b", "resources": {"requests": {"cpu": "3", "memory": "1Mi"}, "limits": {"cpu": "4"}}},
        ]}}));
        range.complete(&mut pod);
        let set = json!({"requests": {"cpu": "1", "memory": "5Mi"}, "limits": {"cpu": "2"}});
        assert_eq!(pod["spec"]["containers"][0]["resources"], set);
        assert_eq!(
            pod["metadata"]["annotations"][ANNOTATION],
            "LimitRanger plugin set: cpu, memory request for container a; cpu limit for container a"
        );
    }

    #[test]
    fn values_outside_the_range_are_refused() {
        let range = range(json!([
            {"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "2"}},
            {"type": "Pod", "max": {"memory": "1Gi"}},
        ]));
        let pod = |resources: Value| {
            object_of(json!({"spec": {"containers": [{"name": "a", "resources": resources}]}}))
        };
        let fine = json!({"requests": {"cpu": "500m"}, "limits": {"cpu": "1", "memory": "1Gi"}});
        assert_eq!(range.check_pod(&pod(fine)), Vec::<String>::new());
        let bad = json!({"requests": {"cpu": "50m"}, "limits": {"cpu": "2"}});
        assert_eq!(
            range.check_pod(&pod(bad)),
            [
                "minimum cpu usage per Container is 100m, but request is 50m",
                "maximum cpu usage per Container is 1, but limit is 2",
                "cpu max limit to request ratio per Container is 2, but provided ratio is 40.000000",
                "maximum memory usage per Pod is 1Gi.  No limit is specified",
            ]
        );
    }
}
