//! The decision about the root CA ConfigMap of a namespace.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::views::or_default;

/// The name of the ConfigMap.
pub(super) const NAME: &str = "kube-root-ca.crt";
const KEY: &str = "ca.crt";
const DESCRIBED: &str = "kubernetes.io/description";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// The cached fields of a ConfigMap: there is one per namespace, and all should be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "ConfigMap")]
pub(super) struct Published {
    fingerprint: u64,
    is_described: bool,
}

#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default, deserialize_with = "or_default")]
    data: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default, deserialize_with = "or_default")]
    annotations: BTreeMap<String, String>,
}

impl From<ConfigMap> for Published {
    fn from(map: ConfigMap) -> Self {
        let is_described = map.metadata.annotations.get(DESCRIBED).is_some_and(|text| !text.is_empty());
        Self { fingerprint: fingerprint(&map.data), is_described }
    }
}

fn fingerprint(data: &BTreeMap<String, String>) -> u64 {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    hasher.finish()
}

/// The decision about a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RootCaStep {
    Nothing,
    Create,
    Repair,
}

/// Decides about the ConfigMap of a namespace, which should have this CA.
pub(super) fn decide(published: Option<Published>, ca: &str) -> RootCaStep {
    let wanted = fingerprint(&BTreeMap::from([(KEY.to_owned(), ca.to_owned())]));
    match published {
        None => RootCaStep::Create,
        Some(Published { fingerprint, is_described: true }) if fingerprint == wanted => RootCaStep::Nothing,
        Some(_) => RootCaStep::Repair,
    }
}

/// A new ConfigMap, or the present one with the correct content.
pub(super) fn correct_config_map(map: Option<Value>, ca: &str) -> Value {
    let mut map = map.unwrap_or_else(|| json!({"metadata": {"name": NAME}}));
    map["data"] = json!({KEY: ca});
    map["metadata"]["annotations"][DESCRIBED] = DESCRIPTION.into();
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_map_is_correct_with_the_ca_and_a_description_only() {
        let decided = |map: &Value| {
            let published = serde_json::from_value(map.clone()).unwrap();
            decide(Some(published), "CA")
        };
        assert_eq!(decide(None, "CA"), RootCaStep::Create);
        let made = correct_config_map(None, "CA");
        assert_eq!(decided(&made), RootCaStep::Nothing);
        let described = json!({"annotations": {DESCRIBED: "mine"}});
        for (map, expected) in [
            (json!({"metadata": described, "data": {"ca.crt": "CA"}}), RootCaStep::Nothing),
            (json!({"metadata": described, "data": {"ca.crt": "old"}}), RootCaStep::Repair),
            (json!({"metadata": described, "data": {"ca.crt": "CA", "more": "x"}}), RootCaStep::Repair),
            (json!({"metadata": described, "data": null}), RootCaStep::Repair),
            (
                json!({"metadata": {"annotations": {DESCRIBED: ""}}, "data": {"ca.crt": "CA"}}),
                RootCaStep::Repair,
            ),
            (json!({"metadata": {}, "data": {"ca.crt": "CA"}}), RootCaStep::Repair),
        ] {
            assert_eq!(decided(&map), expected, "{map}");
            assert_eq!(decided(&correct_config_map(Some(map.clone()), "CA")), RootCaStep::Nothing, "{map}");
        }
    }
}
