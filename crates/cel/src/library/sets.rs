//! The sets library: `sets.contains([1, 2], [2])`.

use crate::{
    Library, List, Overload, Result, Type, Value,
    cost::{CallEstimate, CostEstimate, EstimateCall, RuntimeCall},
};

/// The library.
pub fn library() -> Library {
    let lists = || [Type::list(Type::Param("T")), Type::list(Type::Param("T"))];
    Library::new()
        .function(
            "sets.contains",
            [Overload::global("list_sets_contains_list", lists(), Type::Bool, |_, args| {
                Ok(contains(args[0].as_list()?, args[1].as_list()?)?.into())
            })
            .estimate(|call| estimate(call, 1.0))
            .cost(|call| cost(call, 1))],
        )
        .function(
            "sets.intersects",
            [Overload::global("list_sets_intersects_list", lists(), Type::Bool, |_, args| {
                Ok(intersects(args[0].as_list()?, args[1].as_list()?)?.into())
            })
            .estimate(|call| estimate(call, 1.0))
            .cost(|call| cost(call, 1))],
        )
        .function(
            "sets.equivalent",
            [Overload::global("list_sets_equivalent_list", lists(), Type::Bool, |_, args| {
                let (one, two) = (args[0].as_list()?, args[1].as_list()?);
                Ok((contains(one, two)? && contains(two, one)?).into())
            })
            .estimate(|call| estimate(call, 2.0))
            .cost(|call| cost(call, 2))],
        )
}

fn has(items: &[Value<'_>], item: &Value<'_>) -> bool {
    items.iter().any(|known| known.equals(item))
}

fn contains<'a>(list: &List<'a>, part: &List<'a>) -> Result<bool> {
    let items = list.to_vec()?;
    part.iter().try_fold(true, |so_far, item| Ok(so_far && has(&items, &item?)))
}

fn intersects<'a>(one: &List<'a>, two: &List<'a>) -> Result<bool> {
    let items = two.to_vec()?;
    one.iter().try_fold(false, |so_far, item| Ok(so_far || has(&items, &item?)))
}

fn estimate(call: &EstimateCall<'_>, factor: f64) -> Option<CallEstimate> {
    let [one, two] = call.args else { return None };
    let compared = call.size(one).times(call.size(two)).cost(factor);
    Some(CallEstimate::of(compared.plus(CostEstimate::fixed(1))))
}

fn cost(call: &RuntimeCall<'_, '_>, factor: u64) -> Option<u64> {
    let [one, two] = call.args else { return None };
    Some(one.cost_size().saturating_mul(two.cost_size()).saturating_mul(factor).saturating_add(1))
}
