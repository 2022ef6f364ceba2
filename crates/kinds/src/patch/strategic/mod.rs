//! Strategic merge patch: a merge patch that takes the merge keys of lists from the schema, and that has directives
//! (`$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`).
//!
//! kube-apiserver reports an invalid directive as an internal error; here it is a bad request.

mod lists;
mod restore;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use model::Object;
use model::error::{Error, quote};
use serde_json::Value;

use super::{cannot_unmarshal, go_text};
use crate::schema::{Patch, Schema, Shape, TypeId};
pub use restore::unfit;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

/// Applies a strategic merge patch to an object of a type.
pub fn apply(schema: &Schema, of: TypeId, document: &mut Value, patch: &Value) -> Result<(), Error> {
    let patch = match patch {
        Value::Object(patch) => patch.clone(),
        Value::Null => Object::new(),
        other => {
            let message = cannot_unmarshal(other, "value of type map[string]interface {}");
            return Err(Error::bad_request(message));
        }
    };
    let Value::Object(document) = document else {
        return Err(Error::bad_request("invalid JSON document"));
    };
    Merger { schema }.object(&Shape::Object(of), document, patch)
}

struct Merger<'a> {
    schema: &'a Schema,
}

impl<'a> Merger<'a> {
    fn object(&self, shape: &Shape, target: &mut Object, mut patch: Object) -> Result<(), Error> {
        if let Some(directive) = patch.get(DIRECTIVE) {
            *target = match directive.as_str() {
                Some("replace") => {
                    patch.remove(DIRECTIVE);
                    patch
                }
                Some("delete") => Object::new(),
                _ => return Err(unknown_directive(directive, patch.clone())),
            };
            return Ok(());
        }
        retain_keys(target, &mut patch)?;
        self.ordered_lists(shape, target, &mut patch)?;
        for (key, change) in patch {
            self.member(shape, target, key, change)?;
        }
        Ok(())
    }

    fn member(&self, shape: &Shape, target: &mut Object, key: String, change: Value) -> Result<(), Error> {
        let deleted_from =
            list_of_directive(&key, DELETE_FROM_LIST, "invalid patch format of primitive list")?;
        let deletes = deleted_from.is_some();
        let key = deleted_from.map_or(key.clone(), str::to_owned);
        if change.is_null() {
            target.remove(&key);
            return Ok(());
        }
        match (target.get_mut(&key), change) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let (shape, patch) = self.field(shape, &key)?;
                if has_strategy(patch, "replace") {
                    *old = new;
                    return Ok(());
                }
                self.object(shape, old, new)
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                let (shape, patch) = self.list_field(shape, &key)?;
                *old = self.list(shape, patch, std::mem::take(old), new, deletes)?;
                Ok(())
            }
            _ if deletes => Ok(()),
            (_, change) => {
                match without_directives(without_nulls(change)) {
                    Some(value) => target.insert(key, value),
                    None => target.remove(&key),
                };
                Ok(())
            }
        }
    }

    /// The shape and patch strategy of a member of an object.
    fn field<'s>(&'s self, shape: &Shape, key: &str) -> Result<(&'a Shape, Option<&'a Patch>), Error> {
        let Shape::Object(of) = shape else {
            let message = "merging an object in json but data type is not struct, instead is: map";
            return Err(Error::bad_request(message));
        };
        let of = self.schema.get(*of);
        let Some(field) = of.field(key) else {
            return Err(Error::bad_request(format!(
                "unable to find api field in struct {} for the json field {}",
                of.name,
                quote(key)
            )));
        };
        Ok((&field.shape, field.patch.as_ref()))
    }

    /// The shape of a list's items.
    fn list_field(&self, shape: &Shape, key: &str) -> Result<(&'a Shape, Option<&'a Patch>), Error> {
        match self.field(shape, key)? {
            (Shape::List(item) | Shape::Wrapped(item), patch) => Ok((item, patch)),
            _ => Err(Error::bad_request("expected slice or array type, but got: struct")),
        }
    }
}

/// Removes the fields that `$retainKeys` does not list.
fn retain_keys(target: &mut Object, patch: &mut Object) -> Result<(), Error> {
    let Some(directive) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || Error::bad_request("invalid patch format of retainKeys");
    let Value::Array(keys) = directive else { return Err(malformed()) };
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let is_list_directive =
        |key: &str| key.starts_with(DELETE_FROM_LIST) || key.starts_with(SET_ELEMENT_ORDER);
    let mut sets = patch.iter().filter(|(key, change)| !change.is_null() && !is_list_directive(key));
    if sets.any(|(key, _)| !keys.contains(key.as_str())) {
        return Err(malformed());
    }
    target.retain(|key, _| keys.contains(key.as_str()));
    Ok(())
}

/// The list that the key of a directive names; `None` if the key is not a directive.
fn list_of_directive<'k>(key: &'k str, prefix: &str, malformed: &str) -> Result<Option<&'k str>, Error> {
    let Some(rest) = key.strip_prefix(prefix) else { return Ok(None) };
    let list = rest.strip_prefix('/').filter(|list| !list.is_empty());
    list.map(Some).ok_or_else(|| Error::bad_request(malformed))
}

fn has_strategy(patch: Option<&Patch>, strategy: &str) -> bool {
    patch.is_some_and(|patch| patch.strategy.split(',').any(|each| each == strategy))
}

fn unknown_directive(directive: &Value, patch: Object) -> Error {
    let patch = go_text(&Value::Object(patch));
    Error::bad_request(format!("unknown patch type: {} in map: {patch}", go_text(directive)))
}

fn no_merge_key(item: &Value, key: &str) -> Error {
    Error::bad_request(format!("map: {} does not contain declared merge key: {key}", go_text(item)))
}

/// A new value without the keys that are null.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, field)| !field.is_null());
            kept.map(|(key, field)| (key, without_nulls(field))).collect()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// A new value without the objects that are directives; `None` if the value itself is one.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let kept = fields.into_iter().filter_map(|(key, field)| Some((key, without_directives(field)?)));
            Some(kept.collect())
        }
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        other => Some(other),
    }
}
