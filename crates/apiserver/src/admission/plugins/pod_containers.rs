//! Iteration over the containers of Pods.

use model::Object;
use model::object::items;
use serde_json::Value;

/// The container lists of a Pod, in Kubernetes' order.
pub const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The containers of a Pod.
pub fn containers(pod: &Object) -> impl Iterator<Item = &Value> {
    CONTAINERS.iter().flat_map(|key| items(pod, &["spec", key]))
}

/// The containers of a Pod, mutable.
pub fn containers_mut(pod: &mut Object) -> impl Iterator<Item = &mut Object> {
    let spec = pod.get_mut("spec").and_then(Value::as_object_mut).into_iter().flatten();
    let lists = spec.filter(|(key, _)| CONTAINERS.contains(&key.as_str()));
    lists.filter_map(|(_, list)| list.as_array_mut()).flatten().filter_map(Value::as_object_mut)
}
