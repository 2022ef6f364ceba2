//! Cost functions that several libraries share. Names with `_run` are actual costs.

use crate::{
    Value,
    cost::{
        CallEstimate, CostEstimate, EstimateCall, REGEX_LENGTH_FACTOR, RuntimeCall, STRING_TRAVERSAL_FACTOR,
        SizeEstimate,
    },
};

/// One, as for a field access.
pub(super) fn one(_: &EstimateCall<'_>) -> Option<CallEstimate> {
    Some(CallEstimate::of(CostEstimate::fixed(1)))
}

/// One, as for a field access.
pub(super) fn one_run(_: &RuntimeCall<'_, '_>) -> Option<u64> {
    Some(1)
}

/// Traverses the first argument.
pub(super) fn argument(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let size = call.size(call.args.first()?);
    Some(CallEstimate::of(size.cost(STRING_TRAVERSAL_FACTOR)))
}

/// Traverses the first argument.
pub(super) fn argument_run(call: &RuntimeCall<'_, '_>) -> Option<u64> {
    Some(traversal(call.args.first()?.cost_size(), 1.0))
}

/// Traverses the first argument; the result has its size.
pub(super) fn argument_kept(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let size = call.size(call.args.first()?);
    Some(CallEstimate::sized(size.cost(STRING_TRAVERSAL_FACTOR), size))
}

/// Traverses the first argument twice.
pub(super) fn argument_twice(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let size = call.size(call.args.first()?);
    Some(CallEstimate::of(size.cost(2.0 * STRING_TRAVERSAL_FACTOR)))
}

/// Traverses the first argument twice.
pub(super) fn argument_twice_run(call: &RuntimeCall<'_, '_>) -> Option<u64> {
    Some(traversal(call.args.first()?.cost_size(), 2.0))
}

/// Traverses the receiver; the result has its size.
pub(super) fn receiver_kept(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let size = call.size(call.target?);
    Some(CallEstimate::sized(size.cost(STRING_TRAVERSAL_FACTOR), size))
}

/// Searches the receiver, a list or a string.
pub(super) fn search(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let target = call.target?;
    let size = call.size(target);
    let Some(items) = call.items(target) else {
        return Some(CallEstimate::of(size.cost(STRING_TRAVERSAL_FACTOR)));
    };
    let mut each = CostEstimate::fixed(1);
    if matches!(items.ty, crate::Type::String | crate::Type::Bytes) {
        each = each.plus(call.size(&items).cost(STRING_TRAVERSAL_FACTOR));
    }
    Some(CallEstimate::of(size.each(each)))
}

/// Traverses everything in the receiver.
pub(super) fn search_run(call: &RuntimeCall<'_, '_>) -> Option<u64> {
    Some(call.args.first().map_or(0, |value| whole(value, 0)))
}

/// The nesting depth below which values cost nothing.
const MAX_DEPTH: usize = 300;

/// The cost of traversing a value with everything in it.
fn whole(value: &Value<'_>, depth: usize) -> u64 {
    if depth > MAX_DEPTH {
        return 1;
    }
    match value {
        Value::String(text) => part(text.len()),
        Value::Bytes(bytes) => part(bytes.len()),
        Value::List(list) => list.iter().map(|item| item.map_or(1, |item| whole(&item, depth + 1))).sum(),
        Value::Map(map) => map.entries().map_or(1, |entries| {
            entries.iter().map(|(key, value)| whole(key, depth + 1) + whole(value, depth + 1)).sum()
        }),
        _ => 1,
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes are small"
)]
fn part(size: usize) -> u64 {
    (size as f64 * STRING_TRAVERSAL_FACTOR) as u64
}

/// The cost of traversing this number of characters, `times` times, rounded up.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "costs saturate"
)]
pub(super) fn traversal(size: u64, times: f64) -> u64 {
    (size as f64 * times * STRING_TRAVERSAL_FACTOR).ceil() as u64
}

/// The cost of matching a string with a regular expression.
pub(super) fn matching(text: SizeEstimate, pattern: SizeEstimate) -> CostEstimate {
    let text = text.plus(SizeEstimate::fixed(1)).cost(STRING_TRAVERSAL_FACTOR);
    text.times(pattern.cost(REGEX_LENGTH_FACTOR))
}

/// The cost of matching a string with a regular expression.
pub(super) fn matching_run(text: u64, pattern: u64) -> u64 {
    let range = matching(SizeEstimate::fixed(text), SizeEstimate::fixed(pattern));
    range.max
}
