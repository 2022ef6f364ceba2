//! The libraries of Kubernetes' expressions.

use super::{
    authorizer, bindings, cidr, format, ip, json_patch, lists, lists_extension, quantity, regex, semver,
    sets, strings, url,
};
use crate::{
    Library, Type, Value,
    cost::{CallEstimate, CostEstimate, EstimateCall, RuntimeCall},
    syntax::operators,
};

/// The libraries of every expression in Kubernetes 1.35.
pub fn libraries() -> Vec<Library> {
    vec![
        url::library(),
        regex::library(),
        lists::library(),
        authorizer::library(),
        quantity::library(),
        strings::library(),
        sets::library(),
        ip::library(),
        cidr::library(),
        format::library(),
        semver::library(),
        lists_extension::library(),
        equality(),
    ]
}

/// The additional library of device selectors.
pub fn bindings_library() -> Library {
    bindings::library()
}

/// The additional library of mutating expressions.
pub fn patch_library() -> Library {
    json_patch::library()
}

/// The cost of comparing two values of these libraries.
fn equality() -> Library {
    Library::new().estimates(operators::EQUALS, estimate_equality).costs(operators::EQUALS, equality_run)
}

fn estimate_equality(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let [one, two] = call.args else { return None };
    if one.ty != two.ty {
        return None;
    }
    match (&one.ty, one.ty.name()) {
        (Type::Opaque(_), "net.IP" | "net.CIDR") => Some(CallEstimate::of(CostEstimate::fixed(1))),
        (Type::Object(_), "kubernetes.Quantity" | "kubernetes.Semver") => {
            Some(CallEstimate::of(CostEstimate::fixed(1)))
        }
        (Type::Object(_), name) if authorizer::TYPES.contains(&name) => {
            Some(CallEstimate::of(CostEstimate::fixed(1)))
        }
        (Type::Object(_), "kubernetes.NamedFormat") => Some(format::equality()),
        (Type::Object(_), "kubernetes.URL") => Some(url::equality(two.computed_size)),
        _ => None,
    }
}

fn equality_run(call: &RuntimeCall<'_, '_>) -> Option<u64> {
    matches!(call.args, [Value::Opaque(_), _]).then_some(1)
}
