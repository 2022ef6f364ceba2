//! CEL's list extension: slice, flatten, sort and distinct.

use crate::{
    Error, Library, List, Overload, Result, Type, Value,
    cost::{
        CallEstimate, CostEstimate, CostNode, EstimateCall, LIST_CREATE, RuntimeCall,
        STRING_TRAVERSAL_FACTOR, SizeEstimate,
    },
    syntax::{Expander, Expr, ExprKind, Literal, Macro, MacroError, expand_map},
};

/// Ordered types, with the overload ids of the sort functions.
fn ordered() -> [(Type, [&'static str; 2]); 8] {
    [
        (Type::Int, ["list_int_sort", "list_int_sortByAssociatedKeys"]),
        (Type::Uint, ["list_uint_sort", "list_uint_sortByAssociatedKeys"]),
        (Type::Double, ["list_double_sort", "list_double_sortByAssociatedKeys"]),
        (Type::Bool, ["list_bool_sort", "list_bool_sortByAssociatedKeys"]),
        (
            Type::Duration,
            ["list_google.protobuf.Duration_sort", "list_google.protobuf.Duration_sortByAssociatedKeys"],
        ),
        (
            Type::Timestamp,
            ["list_google.protobuf.Timestamp_sort", "list_google.protobuf.Timestamp_sortByAssociatedKeys"],
        ),
        (Type::String, ["list_string_sort", "list_string_sortByAssociatedKeys"]),
        (Type::Bytes, ["list_bytes_sort", "list_bytes_sortByAssociatedKeys"]),
    ]
}

/// The maximum length of a list that a function creates.
const MAX_MADE_ITEMS: i64 = 1 << 20;

/// The library.
pub fn library() -> Library {
    let list = || Type::list(Type::Param("T"));
    let library = Library::new()
        .function(
            "slice",
            [Overload::member("list_slice", [list(), Type::Int, Type::Int], list(), |_, args| {
                slice(args[0].as_list()?, args[1].as_int()?, args[2].as_int()?)
            })
            .estimate(estimate_slice)
            .cost(result_run)],
        )
        .function(
            "flatten",
            [
                Overload::member("list_flatten", [Type::list(list())], list(), |_, args| {
                    flatten(args[0].as_list()?, 1)
                })
                .estimate(estimate_flatten)
                .cost(flatten_run),
                Overload::member(
                    "list_flatten_int",
                    [Type::list(Type::Dyn), Type::Int],
                    Type::list(Type::Dyn),
                    |_, args| flatten(args[0].as_list()?, args[1].as_int()?),
                )
                .estimate(estimate_flatten)
                .cost(flatten_run),
            ],
        )
        .function(
            "lists.range",
            [Overload::global("lists_range", [Type::Int], Type::list(Type::Int), |_, args| {
                match args[0].as_int()? {
                    count if count > MAX_MADE_ITEMS => Err(Error::new("list is too long")),
                    count => Ok(Value::list((0..count).map(Value::Int).collect())),
                }
            })
            .estimate(|call| {
                Some(allocating(1.0, SizeEstimate::fixed(literal(call.args.first()?, u64::MAX))))
            })
            .cost(result_run)],
        )
        .function(
            "reverse",
            [Overload::member("list_reverse", [list()], list(), |_, args| {
                let mut items = args[0].as_list()?.to_vec()?;
                items.reverse();
                Ok(Value::list(items))
            })
            .estimate(|call| Some(allocating(1.0, call.size(call.target?))))
            .cost(result_run)],
        );
    sorting(library)
}

fn sorting(library: Library) -> Library {
    let list = || Type::list(Type::Param("T"));
    library
        .function(
            "distinct",
            [Overload::member("list_distinct", [list()], list(), |_, args| distinct(args[0].as_list()?))
                .estimate(|call| {
                    let size = call.size(call.target?);
                    Some(allocating(2.0, size.times(size)))
                })
                .cost(|call| Some(self_compare_run(call.args.first()?)))],
        )
        .function(
            "sort",
            ordered().map(|(item, [id, _])| {
                Overload::member(id, [Type::list(item.clone())], Type::list(item), |_, args| {
                    sort(&args[0], &args[0])
                })
                .estimate(|call| Some(estimate_sort(call, call.target?)))
                .cost(|call| Some(self_compare_run(call.args.first()?)))
            }),
        )
        .function(
            "@sortByAssociatedKeys",
            ordered().map(|(key, [_, id])| {
                Overload::member(
                    id,
                    [Type::list(Type::Param("T")), Type::list(key)],
                    Type::list(Type::Param("T")),
                    |_, args| sort(&args[0], &args[1]),
                )
                .estimate(|call| Some(estimate_sort(call, call.args.first()?)))
                .cost(|call| Some(self_compare_run(call.args.get(1)?)))
            }),
        )
        .expands(Macro::member("sortBy", 2, sort_by))
}

fn slice<'a>(list: &List<'a>, start: i64, end: i64) -> Result<Value<'a>> {
    let refused = |problem: String| Err(Error::new(format!("cannot slice({start}, {end}), {problem}")));
    let (Ok(first), Ok(last)) = (usize::try_from(start), usize::try_from(end)) else {
        return refused("negative indexes not supported".to_owned());
    };
    if first > last {
        return refused("start index must be less than or equal to end index".to_owned());
    }
    if list.len() < last {
        return refused(format!("list is length {}", list.len()));
    }
    list.iter().skip(first).take(last - first).collect::<Result<_>>().map(Value::list)
}

fn flatten<'a>(list: &List<'a>, depth: i64) -> Result<Value<'a>> {
    if depth < 0 {
        return Err(Error::new("level must be non-negative"));
    }
    let mut flat = list.to_vec()?;
    for _ in 0..depth {
        if !flat.iter().any(|item| matches!(item, Value::List(_))) {
            break;
        }
        let mut flatter = Vec::with_capacity(flat.len());
        for item in flat {
            match item {
                Value::List(inner) => flatter.extend(inner.to_vec()?),
                item => flatter.push(item),
            }
        }
        flat = flatter;
    }
    Ok(Value::list(flat))
}

fn distinct<'a>(list: &List<'a>) -> Result<Value<'a>> {
    let mut kept = Vec::<Value<'a>>::new();
    for item in list.iter() {
        let item = item?;
        if !kept.iter().any(|known| known.equals(&item)) {
            kept.push(item);
        }
    }
    Ok(Value::list(kept))
}

/// Sorts a list by its keys.
fn sort<'a>(list: &Value<'a>, keys: &Value<'a>) -> Result<Value<'a>> {
    let (items, keys) = (list.as_list()?.to_vec()?, keys.as_list()?.to_vec()?);
    if items.len() != keys.len() {
        return Err(Error::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            items.len(),
            keys.len()
        )));
    }
    let Some(first) = keys.first() else { return Ok(list.clone()) };
    if first.compare(first).is_none() && !matches!(first, Value::Double(_)) {
        return Err(Error::new("list elements must be comparable"));
    }
    if keys.iter().any(|key| key.ty().name() != first.ty().name()) {
        return Err(Error::new("list elements must have the same type"));
    }
    let mut pairs: Vec<_> = keys.into_iter().zip(items).collect();
    pairs.sort_by(|(one, _), (two, _)| one.compare(two).unwrap_or(std::cmp::Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, item)| item).collect()))
}

/// Expands `list.sortBy(item, key)`: the list is evaluated twice, so it is bound to a name first.
fn sort_by(
    expander: &mut Expander<'_>,
    list: Option<Expr>,
    args: Vec<Expr>,
) -> std::result::Result<Expr, MacroError> {
    const NAME: &str = "@__sortBy_input__";
    const PROBLEM: &str =
        "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
    let refused = |id| MacroError { id, message: PROBLEM.to_owned() };
    let list = list.ok_or_else(|| refused(None))?;
    if matches!(list.kind, ExprKind::Literal(_) | ExprKind::Map(_) | ExprKind::Struct { .. }) {
        return Err(refused(Some(list.id)));
    }
    let range = expander.ident(NAME);
    let keys = expand_map(expander, Some(range), args)?;
    let named = expander.ident(NAME);
    let sorted = expander.member_call("@sortByAssociatedKeys", named, vec![keys]);
    Ok(expander.bind(NAME, list, sorted))
}

fn allocating(factor: f64, size: SizeEstimate) -> CallEstimate {
    CallEstimate::sized(size.cost(factor).plus(CostEstimate::fixed(1 + LIST_CREATE)), size)
}

/// The value of an integer literal, which is never negative here.
fn literal(node: &CostNode<'_>, otherwise: u64) -> u64 {
    match node.expr.map(|expr| &expr.kind) {
        Some(ExprKind::Literal(Literal::Int(number))) => u64::try_from(*number).unwrap_or(0),
        _ => otherwise,
    }
}

fn estimate_slice(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let size = call.size(call.target?);
    let [start, end] = call.args else { return None };
    // A slice that ends before it starts is estimated as unbounded, as in Kubernetes.
    let len = literal(end, size.max).wrapping_sub(literal(start, 0));
    Some(allocating(1.0, SizeEstimate::fixed(len)))
}

#[expect(clippy::cast_precision_loss, reason = "a cost is no more exact")]
fn estimate_flatten(call: &EstimateCall<'_>) -> Option<CallEstimate> {
    let depth = call.args.first().map_or(1, |depth| literal(depth, u64::MAX));
    Some(allocating(depth as f64, call.size(call.target?)))
}

fn estimate_sort(call: &EstimateCall<'_>, keys: &CostNode<'_>) -> CallEstimate {
    let size = call.size(keys);
    let is_text = call.overload.starts_with("list_string") || call.overload.starts_with("list_bytes");
    let factor = if is_text { 2.0 + STRING_TRAVERSAL_FACTOR } else { 2.0 };
    allocating(factor, size.times(size))
}

/// The actual cost of creating the result.
fn result_run(call: &RuntimeCall<'_, '_>) -> Option<u64> {
    Some(call.result.cost_size().saturating_add(1 + LIST_CREATE))
}

fn flatten_run(call: &RuntimeCall<'_, '_>) -> Option<u64> {
    let depth = call.args.get(1).map_or(Ok(1), Value::as_int).ok()?;
    let size = call.args.first()?.cost_size();
    Some(size.saturating_mul(u64::try_from(depth).unwrap_or(0)).saturating_add(1 + LIST_CREATE))
}

/// Compares every item of a list with every other.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "costs saturate"
)]
fn self_compare_run(list: &Value<'_>) -> u64 {
    let first = list.as_list().ok().and_then(|list| list.get(0));
    let is_text = matches!(first, Some(Ok(Value::String(_) | Value::Bytes(_))));
    let factor = if is_text { 2.0 + STRING_TRAVERSAL_FACTOR } else { 2.0 };
    let size = list.cost_size();
    ((size.saturating_mul(size) as f64 * factor) as u64).saturating_add(1 + LIST_CREATE)
}
