//! Arithmetic on resource amounts, and the resource requests and limits of Pods.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use model::Object;
use quantity::Quantity;
use serde_json::Value;

/// Compares two quantities. Text that is no quantity counts as zero.
pub fn compare(a: &str, b: &str) -> Ordering {
    amount(a).cmp(&amount(b))
}

fn amount(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|_| Quantity::from(0))
}

/// A quantity together with its text form.
#[derive(Clone, Debug)]
pub struct Amount {
    /// The numeric value.
    pub value: Quantity,
    /// The canonical text form.
    pub text: String,
}

impl Amount {
    /// Parses a quantity. Text that is no quantity counts as zero.
    pub fn read(text: &str) -> Self {
        let text = Quantity::respell(text).map_or_else(|_| "0".to_owned(), std::borrow::Cow::into_owned);
        Self { value: amount(&text), text }
    }

    /// A number of objects.
    pub fn count(number: usize) -> Self {
        Self::read(&number.to_string())
    }

    /// Adds another amount.
    pub fn plus(&self, other: &Self) -> Self {
        if other.value.is_zero() {
            return self.clone();
        }
        let value = self.value.plus(&other.value);
        Self { text: value.to_string(), value }
    }

    /// Subtracts another amount; the result is never below zero.
    pub fn minus(&self, other: &Self) -> Self {
        let value = self.value.plus(&other.value.negated());
        if value.is_negative() { Self::count(0) } else { Self { text: value.to_string(), value } }
    }
}

/// Amounts by resource name: a Kubernetes `ResourceList`.
pub type Amounts = BTreeMap<String, Amount>;

/// Parses a `ResourceList` field.
pub fn amounts(value: Option<&Value>) -> Amounts {
    let entries = value.and_then(Value::as_object).into_iter().flatten();
    entries.map(|(name, value)| (name.clone(), Amount::read(&text(value)))).collect()
}

/// The text of a quantity field, which may also be a JSON number.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Adds `more` to `to`, resource by resource.
pub(crate) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = to.get(name).map_or_else(|| amount.clone(), |known| known.plus(amount));
        to.insert(name.clone(), sum);
    }
}

fn raise(to: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        if to.get(name).is_none_or(|known| known.value < amount.value) {
            to.insert(name.clone(), amount.clone());
        }
    }
}

/// The requests or limits (`part`) of a Pod without its overhead: the sum of its containers and sidecars, at
/// least what any init container needs.
pub fn of_pod(pod: &Object, part: &str) -> Amounts {
    let spec = pod.get("spec");
    let list =
        |key: &str| spec.and_then(|spec| spec.get(key)).and_then(Value::as_array).into_iter().flatten();
    let own = |container: &Value| amounts(container.get("resources").and_then(|all| all.get(part)));
    let mut sum = Amounts::new();
    list("containers").for_each(|container| add(&mut sum, &own(container)));
    let (mut running, mut greatest) = (Amounts::new(), Amounts::new());
    for container in list("initContainers") {
        let mut asked = own(container);
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            add(&mut sum, &asked);
            add(&mut running, &asked);
            asked = running.clone();
        } else {
            add(&mut asked, &running);
        }
        raise(&mut greatest, &asked);
    }
    raise(&mut sum, &greatest);
    let of_pod = spec.and_then(|spec| spec.get("resources")).and_then(|all| all.get(part));
    let is_for_pods = |name: &String| name == "cpu" || name == "memory" || name.starts_with("hugepages-");
    sum.extend(amounts(of_pod).into_iter().filter(|(name, _)| is_for_pods(name)));
    sum
}

/// The requests or limits (`part`) that a Pod is charged for: [`of_pod`] plus the overhead of its runtime
/// class.
pub fn charged(pod: &Object, part: &str) -> Amounts {
    let mut sum = of_pod(pod, part);
    let overhead = amounts(pod.get("spec").and_then(|spec| spec.get("overhead")));
    if part == "requests" {
        add(&mut sum, &overhead);
    } else {
        let limited: Amounts = overhead.into_iter().filter(|(name, _)| sum.contains_key(name)).collect();
        add(&mut sum, &limited);
    }
    sum
}
