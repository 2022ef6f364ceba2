//! An applied configuration merged into the live object.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::element::Element;
use super::types::{Form, List, Mapping, Node, Relation};

/// The live object with the configuration merged in.
///
/// # Errors
/// An item of a list has no key.
pub(super) fn merge(
    node: Node<'_>,
    live: &Map<String, Value>,
    config: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    match node.resolve().map {
        Some(map) => of_entries(map, Some(live), Some(config)),
        None => Ok(config.clone()),
    }
}

fn of_value(node: Node<'_>, live: Option<&Value>, config: Option<&Value>) -> Result<Option<Value>, String> {
    let Some(leading) = config.or(live) else { return Ok(None) };
    match node.form(leading) {
        Form::Scalar(_) => Ok(Some(leading.clone())),
        Form::List(list) => {
            let (ours, theirs) = (items(live), items(config));
            if matches!(list.relation, Relation::Atomic) || ours.is_empty() && theirs.is_empty() {
                return Ok(Some(leading.clone()));
            }
            let merged = of_items(list, ours, theirs)?;
            Ok((!merged.is_empty()).then_some(Value::Array(merged)))
        }
        Form::Map(map) => {
            let (ours, theirs) = (live.and_then(Value::as_object), config.and_then(Value::as_object));
            let is_empty = |map: Option<&Map<String, Value>>| map.is_none_or(Map::is_empty);
            if map.atomic || is_empty(ours) && is_empty(theirs) {
                return Ok(Some(leading.clone()));
            }
            let merged = of_entries(map, ours, theirs)?;
            Ok((!merged.is_empty()).then_some(Value::Object(merged)))
        }
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn of_entries(
    map: Mapping<'_>,
    live: Option<&Map<String, Value>>,
    config: Option<&Map<String, Value>>,
) -> Result<Map<String, Value>, String> {
    let mut merged = Map::new();
    let empty = Map::new();
    let (live, config) = (live.unwrap_or(&empty), config.unwrap_or(&empty));
    let only_config = config.keys().filter(|key| !live.contains_key(*key));
    for name in live.keys().chain(only_config) {
        let (ours, theirs) = (live.get(name), config.get(name));
        let value = match map.child(name) {
            Some(node) => of_value(node, ours, theirs)?,
            None => theirs.or(ours).cloned(),
        };
        merged.extend(value.map(|value| (name.clone(), value)));
    }
    Ok(merged)
}

/// Items of both lists: those of the configuration in its order, the others at their old positions.
fn of_items(list: List<'_>, live: &[Value], config: &[Value]) -> Result<Vec<Value>, String> {
    let ours = elements(list, live)?;
    let theirs = elements(list, config)?;
    let mut live_by_key: BTreeMap<&Element<'_>, Option<&Value>> = BTreeMap::new();
    for (element, item) in ours.iter().zip(live) {
        // Duplicates are not merged.
        live_by_key.entry(element).and_modify(|known| *known = None).or_insert(Some(item));
    }
    let config_by_key: BTreeMap<&Element<'_>, &Value> = theirs.iter().zip(config).collect();
    if config_by_key.len() < theirs.len() {
        return Err("duplicate entries in the applied configuration".to_owned());
    }
    let mut shared: VecDeque<&Element<'_>> =
        theirs.iter().filter(|element| live_by_key.contains_key(element)).collect();
    let mut next_shared = shared.pop_front();
    let mut done: BTreeSet<&Element<'_>> = BTreeSet::new();
    let mut merged = Vec::with_capacity(live.len().max(config.len()));
    let (mut l, mut r) = (0, 0);
    while l < ours.len() || r < theirs.len() {
        if let Some(element) = ours.get(l) {
            let is_applied = config_by_key.contains_key(element);
            let is_same = theirs.get(r).is_some_and(|their| their == element);
            if is_applied && !is_same && r < theirs.len() && next_shared.is_some_and(|next| next != element) {
                l += 1;
                continue;
            }
            if !is_applied {
                merged.extend(of_value(list.item, Some(&live[l]), None)?);
                l += 1;
                continue;
            }
            if is_same || done.contains(element) {
                l += 1;
            }
            if !is_same && r >= theirs.len() {
                continue;
            }
        }
        let Some(element) = theirs.get(r) else { continue };
        done.insert(element);
        let ours_too = live_by_key.get(element).copied().flatten();
        merged.extend(of_value(list.item, ours_too, config_by_key.get(element).copied())?);
        r += 1;
        if next_shared == Some(element) {
            next_shared = shared.pop_front();
        }
    }
    Ok(merged)
}

fn elements<'v>(list: List<'v>, items: &'v [Value]) -> Result<Vec<Element<'v>>, String> {
    let element = |(at, item)| list.element(item).map_err(|problem| format!("element {at}: {problem}"));
    items.iter().enumerate().map(element).collect()
}
