//! Lists in a strategic merge patch: merged by key or by value, then sorted.

use std::collections::{HashMap, HashSet};
use std::mem::discriminant;

use model::error::Error;
use serde_json::Value;

use super::{
    DIRECTIVE, Merger, Object, SET_ELEMENT_ORDER, has_strategy, list_of_directive, no_merge_key,
    unknown_directive, without_directives,
};
use crate::patch::go_text;
use crate::schema::{Patch, Shape};

const BAD_ORDER: &str = "invalid patch format of setElementOrder list";

impl Merger<'_> {
    /// Patches one list.
    pub(super) fn list(
        &self,
        item: &Shape,
        patch: Option<&Patch>,
        old: Vec<Value>,
        new: Vec<Value>,
        deletes: bool,
    ) -> Result<Vec<Value>, Error> {
        if !deletes && !has_strategy(patch, "merge") {
            return Ok(new);
        }
        if old.is_empty() && new.is_empty() {
            return Ok(old);
        }
        check_alike(&old, &new)?;
        let is_of_objects = old.iter().chain(&new).any(Value::is_object);
        if !is_of_objects {
            return if deletes { Ok(difference(old, &new)) } else { union(old, new) };
        }
        let Some(key) = patch.and_then(|patch| patch.key.as_deref()) else {
            return Err(Error::bad_request("cannot merge lists without merge key for struct"));
        };
        self.merge_by_key(item, key, old, new)
    }

    fn merge_by_key(
        &self,
        shape: &Shape,
        key: &str,
        old: Vec<Value>,
        new: Vec<Value>,
    ) -> Result<Vec<Value>, Error> {
        let (mut merged, new) = obey_directives(key, old, new)?;
        let server_order = identities(&merged, Some(key))?;
        let patch_order = identities(&new, Some(key))?;
        let mut places = first_places(&server_order);
        for (change, id) in new.into_iter().zip(&patch_order) {
            match (places.get(id).copied(), change) {
                (Some(at), Value::Object(change)) => {
                    if let Value::Object(item) = &mut merged[at] {
                        self.object(shape, item, change)?;
                    }
                }
                (_, change) => {
                    places.insert(id.clone(), merged.len());
                    merged.push(change);
                }
            }
        }
        in_order(merged, Some(key), &patch_order, &server_order)
    }

    /// Merges the lists with a `$setElementOrder` directive, and removes them from the patch.
    pub(super) fn ordered_lists(
        &self,
        shape: &Shape,
        target: &mut Object,
        patch: &mut Object,
    ) -> Result<(), Error> {
        let directives: Vec<String> =
            patch.keys().filter(|key| key.starts_with(SET_ELEMENT_ORDER)).cloned().collect();
        for directive in directives {
            let Some(list) = list_of_directive(&directive, SET_ELEMENT_ORDER, BAD_ORDER)? else { continue };
            let order = as_list(patch.remove(&directive))?.unwrap_or_default();
            let change = as_list(patch.remove(list))?;
            let Some(merged) = self.ordered_list(shape, list, target.get(list), change, &order)? else {
                continue;
            };
            target.insert(list.to_owned(), Value::Array(merged));
        }
        Ok(())
    }

    fn ordered_list(
        &self,
        shape: &Shape,
        list: &str,
        old: Option<&Value>,
        new: Option<Vec<Value>>,
        order: &[Value],
    ) -> Result<Option<Vec<Value>>, Error> {
        let old = as_list(old.cloned())?;
        let (item, patch) = self.list_field(shape, list)?;
        let key = patch.and_then(|patch| patch.key.as_deref());
        check_order(new.as_deref().unwrap_or_default(), order, key)?;
        let server_order = identities(old.as_deref().unwrap_or_default(), key)?;
        let merged = match (old, new) {
            (None, None) => return Ok(None),
            (Some(old), None) => old,
            (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
            (Some(old), Some(new)) => self.list(item, patch, old, new, false)?,
        };
        in_order(merged, key, &identities(order, key)?, &server_order).map(Some)
    }
}

fn as_list(value: Option<Value>) -> Result<Option<Vec<Value>>, Error> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(_) => Err(Error::bad_request(BAD_ORDER)),
    }
}

/// Applies the items that are directives: deletes items or replaces the list, and removes the directives from the
/// patch.
fn obey_directives(key: &str, old: Vec<Value>, new: Vec<Value>) -> Result<(Vec<Value>, Vec<Value>), Error> {
    let mut deleted = HashSet::new();
    let mut replaces = false;
    let mut plain = Vec::with_capacity(new.len());
    for item in new {
        let Some(directive) = item.get(DIRECTIVE) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let id = item.get(key).ok_or_else(|| no_merge_key(&item, key))?;
                deleted.insert(id.clone());
            }
            Some("replace") => replaces = true,
            Some("merge") => {
                return Err(Error::bad_request("merging lists cannot yet be specified in the patch"));
            }
            _ => return Err(unknown_directive(directive, item.as_object().cloned().unwrap_or_default())),
        }
    }
    if replaces {
        return Ok((plain, Vec::new()));
    }
    let is_kept = |item: &Value| item.get(key).is_none_or(|id| !deleted.contains(id));
    Ok((old.into_iter().filter(is_kept).collect(), plain))
}

/// Checks that all items have one type and are not lists: only such lists are merged.
fn check_alike(old: &[Value], new: &[Value]) -> Result<(), Error> {
    let mut items = old.iter().chain(new);
    let Some(first) = items.next() else { return Ok(()) };
    if first.is_array() {
        return Err(Error::bad_request("lists of lists are not supported"));
    }
    if items.any(|item| discriminant(item) != discriminant(first)) {
        let both = go_text(&Value::Array(vec![old.into(), new.into()]));
        return Err(Error::bad_request(format!("list element types are not identical: {both}")));
    }
    Ok(())
}

fn difference(old: Vec<Value>, deleted: &[Value]) -> Vec<Value> {
    let deleted: HashSet<&Value> = deleted.iter().collect();
    old.into_iter().filter(|item| !deleted.contains(item)).collect()
}

fn union(old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>, Error> {
    let mut seen = HashSet::new();
    let merged = old.iter().chain(&new).filter(|item| seen.insert(*item)).cloned().collect();
    in_order(merged, None, &new, &old)
}

/// Checks that the items of a patch are in the order of its directive.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), Error> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut places = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let id = identity(item, key)?;
        let mut is_there = false;
        for place in places.by_ref() {
            if identity(place, key)? == id {
                is_there = true;
                break;
            }
        }
        if !is_there {
            let texts = [patch, order].map(|list| go_text(&list.into()));
            return Err(Error::bad_request(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ELEMENT_ORDER} list:\n{}\n",
                texts[0], texts[1]
            )));
        }
    }
    Ok(())
}

fn identity<'v>(item: &'v Value, key: Option<&str>) -> Result<&'v Value, Error> {
    let Some(key) = key else { return Ok(item) };
    item.get(key).ok_or_else(|| no_merge_key(item, key))
}

fn identities(items: &[Value], key: Option<&str>) -> Result<Vec<Value>, Error> {
    items.iter().map(|item| identity(item, key).cloned()).collect()
}

fn first_places(ids: &[Value]) -> HashMap<Value, usize> {
    let mut places = HashMap::with_capacity(ids.len());
    for (place, id) in ids.iter().enumerate() {
        places.entry(id.clone()).or_insert(place);
    }
    places
}

/// Items of the patch in the order of the directive, and between them the items that only the server has, as far as
/// their order allows.
fn in_order(
    items: Vec<Value>,
    key: Option<&str>,
    patch_order: &[Value],
    server_order: &[Value],
) -> Result<Vec<Value>, Error> {
    let (in_patch, on_server) = (first_places(patch_order), first_places(server_order));
    let mut patched = Vec::new();
    let mut others = Vec::new();
    for item in items {
        let id = identity(&item, key)?;
        let server = on_server.get(id).copied();
        match in_patch.get(id).copied() {
            Some(place) => patched.push((place, server, item)),
            None => others.push((server, item)),
        }
    }
    patched.sort_by_key(|(place, ..)| *place);
    others.sort_by_key(|(server, _)| *server);
    let mut others = others.into_iter().peekable();
    let mut all = Vec::with_capacity(patched.len() + others.len());
    for (_, server, item) in patched {
        while let Some((_, other)) =
            others.next_if(|(place, _)| matches!((place, &server), (Some(l), Some(r)) if l < r))
        {
            all.push(other);
        }
        all.push(item);
    }
    all.extend(others.map(|(_, other)| other));
    Ok(all)
}
