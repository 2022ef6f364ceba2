//! All that expressions of Kubernetes know beyond the language itself.

use super::{
    authorizer, bindings, cidr, format, ip, json_patch, lists, lists_extension, quantity, regex, semver,
    sets, strings, url,
};
use crate::{
    Library, Type, Value,
    cost::{CallEstimate, CostEstimate, EstimateCall, RuntimeCall},
    syntax::operators,
};

/// The libraries that every expression of Kubernetes 1.35 has.
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

/// What expressions about devices have beside that.
pub fn bindings_library() -> Library {
    bindings::library()
}

/// What expressions that make JSON patches have beside that.
pub fn patch_library() -> Library {
    json_patch::library()
}

/// What comparing two values of these libraries costs.
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
