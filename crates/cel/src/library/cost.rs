//! What many functions cost in the same way. Names with `_run` are about calls that have run.

use crate::{
    Value,
    cost::{
        CallEstimate, CostEstimate, EstimateCall, REGEX_LENGTH_FACTOR, RuntimeCall, STRING_TRAVERSAL_FACTOR,
        SizeEstimate,
    },
};

/// One, as for a look at a field.
pub(super) fn one(_: &EstimateCall<'_>) -> Option<CallEstimate> {
    Some(CallEstimate::of(CostEstimate::fixed(1)))
}

/// One, as for a look at a field.
pub(super) fn one_run(_: &RuntimeCall<'_, '_>) -> Option<u64> {
    Some(1)
}

/// Going through the first argument.
pub(super) fn argument(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let size = call.size(call.args.first()?);
    Some(CallEstimate::of(size.cost(STRING_TRAVERSAL_FACTOR)))
}

/// Going through the first argument.
pub(super) fn argument_run(call: &RuntimeCall<'_, '_>) -> Option<u64> {
    Some(traversal(call.args.first()?.cost_size(), 1.0))
}

/// Going through the first argument, which becomes a result of its size.
pub(super) fn argument_kept(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let size = call.size(call.args.first()?);
    Some(CallEstimate::sized(size.cost(STRING_TRAVERSAL_FACTOR), size))
}

/// Going through the first argument twice.
pub(super) fn argument_twice(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let size = call.size(call.args.first()?);
    Some(CallEstimate::of(size.cost(2.0 * STRING_TRAVERSAL_FACTOR)))
}

/// Going through the first argument twice.
pub(super) fn argument_twice_run(call: &RuntimeCall<'_, '_>) -> Option<u64> {
    Some(traversal(call.args.first()?.cost_size(), 2.0))
}

/// Going through the receiver, which becomes a result of its size.
pub(super) fn receiver_kept(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let size = call.size(call.target?);
    Some(CallEstimate::sized(size.cost(STRING_TRAVERSAL_FACTOR), size))
}

/// Looking for something in the receiver, a list or a text.
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

/// Going through all that the receiver holds.
pub(super) fn search_run(call: &RuntimeCall<'_, '_>) -> Option<u64> {
    Some(call.args.first().map_or(0, |value| whole(value, 0)))
}

/// Values nested deeper than this cost no more.
const MAX_DEPTH: usize = 300;

/// Going through a value and all that is in it.
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

/// What going through so many characters costs, so many times, rounded up.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "costs saturate"
)]
pub(super) fn traversal(size: u64, times: f64) -> u64 {
    (size as f64 * times * STRING_TRAVERSAL_FACTOR).ceil() as u64
}

/// Matching a text with a regular expression, both of known lengths.
pub(super) fn matching(text: SizeEstimate, pattern: SizeEstimate) -> CostEstimate {
    let text = text.plus(SizeEstimate::fixed(1)).cost(STRING_TRAVERSAL_FACTOR);
    text.times(pattern.cost(REGEX_LENGTH_FACTOR))
}

/// Matching a text with a regular expression, both of known lengths.
pub(super) fn matching_run(text: u64, pattern: u64) -> u64 {
    let range = matching(SizeEstimate::fixed(text), SizeEstimate::fixed(pattern));
    range.max
}
