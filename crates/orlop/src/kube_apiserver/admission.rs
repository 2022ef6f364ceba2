//! Policies that change objects, as flags switch them on.

use crate::go_flags::Given;

/// The API of policies that change objects.
pub(super) const MUTATING_POLICIES: (&str, &str) = ("admissionregistration.k8s.io", "v1beta1");
const GATE: &str = "MutatingAdmissionPolicy";
const APIS: [&str; 3] = ["admissionregistration.k8s.io/v1beta1", "api/all", "api/beta"];

/// Whether policies that change objects are asked for: by their gate and by their API, for neither does anything alone.
pub(super) fn has_mutating_policies(given: &Given) -> bool {
    let is_true = |value: &str| matches!(value.to_ascii_lowercase().as_str(), "" | "true" | "t" | "1");
    let is_set = |flag: &str, is_key: &dyn Fn(&str) -> bool| {
        given.pairs(flag).iter().any(|(key, value)| is_key(key) && is_true(value))
    };
    is_set("feature-gates", &is_gate) && is_set("runtime-config", &|key| APIS.contains(&key))
}

/// Whether a gate is that of policies that change objects.
pub(super) fn is_gate(key: &str) -> bool {
    key.strip_prefix("kube:").unwrap_or(key) == GATE
}

/// Whether a key of `--runtime-config` is their API.
pub(super) fn is_api(key: &str) -> bool {
    key == APIS[0]
}
