//! Cost estimates of the language's own functions, where they are not one.

use super::{
    CallEstimate, CostEstimate, CostNode, EstimateCall, REGEX_LENGTH_FACTOR, STRING_TRAVERSAL_FACTOR,
    SizeEstimate, compares,
};

fn size(node: &CostNode<'_>) -> SizeEstimate {
    node.computed_size.unwrap_or(SizeEstimate::UNKNOWN)
}

fn walked(size: SizeEstimate) -> CostEstimate {
    size.cost(STRING_TRAVERSAL_FACTOR)
}

/// Estimates a call without its arguments, if its cost depends on sizes.
pub(super) fn estimate(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    match (call.overload, call.target, call.args) {
        ("string_format", Some(target), _) => Some(CallEstimate::of(walked(size(target)))),
        ("string_to_bytes", _, [arg]) => {
            let text = size(arg);
            let result = SizeEstimate { min: text.min, max: text.max.wrapping_mul(4) };
            Some(CallEstimate::sized(walked(text), result))
        }
        ("bytes_to_string", _, [arg]) => {
            let bytes = size(arg);
            Some(CallEstimate::sized(walked(bytes), SizeEstimate { min: bytes.min / 4, max: bytes.max }))
        }
        ("strings_quote", _, [arg]) => {
            let text = size(arg);
            let max = text.max.wrapping_mul(2).wrapping_add(2);
            Some(CallEstimate::sized(walked(text), SizeEstimate { min: text.min.wrapping_add(2), max }))
        }
        ("starts_with_string" | "ends_with_string", _, [arg]) => Some(CallEstimate::of(walked(size(arg)))),
        ("in_list", _, [_, list]) => Some(CallEstimate::of(size(list).cost(1.0))),
        ("matches_string", Some(target), [pattern]) => {
            let text = walked(size(target).plus(SizeEstimate::fixed(1)));
            Some(CallEstimate::of(text.times(size(pattern).cost(REGEX_LENGTH_FACTOR))))
        }
        ("contains_string", Some(target), [part]) => {
            Some(CallEstimate::of(walked(size(target)).times(walked(size(part)))))
        }
        ("add_list", _, [one, two]) => {
            Some(CallEstimate::sized(CostEstimate::fixed(1), size(one).plus(size(two))))
        }
        ("add_string" | "add_bytes", _, [one, two]) => {
            let result = size(one).plus(size(two));
            Some(CallEstimate::sized(walked(result), result))
        }
        (overload, _, [one, two]) if compares(overload) => {
            let max = size(one).max.min(size(two).max);
            let compared = SizeEstimate { min: u64::from(max > 0), max };
            Some(CallEstimate::of(walked(compared)))
        }
        _ => None,
    }
}
