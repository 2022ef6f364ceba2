//! MutatingAdmissionPolicy, which flags switch on.

use server::GroupVersion;

use crate::go_flags::Given;

/// The API of MutatingAdmissionPolicy.
pub(super) const MUTATING_POLICIES: GroupVersion =
    GroupVersion { group: "admissionregistration.k8s.io", version: "v1beta1" };
const GATE: &str = "MutatingAdmissionPolicy";
const APIS: [&str; 3] = ["admissionregistration.k8s.io/v1beta1", "api/all", "api/beta"];

/// Whether MutatingAdmissionPolicy is switched on, which takes both the feature gate and the API.
pub(super) fn has_mutating_policies(given: &Given) -> bool {
    let is_true = |value: &str| matches!(value.to_ascii_lowercase().as_str(), "" | "true" | "t" | "1");
    let is_set = |flag: &str, is_key: &dyn Fn(&str) -> bool| {
        given.pairs(flag).iter().any(|(key, value)| is_key(key) && is_true(value))
    };
    is_set("feature-gates", &is_gate) && is_set("runtime-config", &|key| APIS.contains(&key))
}

/// Whether a feature gate is that of MutatingAdmissionPolicy.
pub(super) fn is_gate(key: &str) -> bool {
    key.strip_prefix("kube:").unwrap_or(key) == GATE
}

/// Whether a key of `--runtime-config` is its API.
pub(super) fn is_api(key: &str) -> bool {
    key == APIS[0]
}
