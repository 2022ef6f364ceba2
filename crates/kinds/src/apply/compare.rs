//! Compares two states of an object: the fields that were added, changed and removed.

use serde_json::{Map, Value};

use super::element::{Element, equal};
use super::set::{FieldSet, Subtree};
use super::types::{Form, List, Mapping, Node, Relation};

/// The difference between two states.
#[derive(Debug, Default)]
pub(super) struct Comparison<'a> {
    /// Fields of the old state that the new one does not have.
    pub removed: FieldSet<'a>,
    /// Fields that are new or have another value.
    pub changed: FieldSet<'a>,
}

/// Compares two objects of one type.
///
/// # Errors
/// An item of a list has no key.
pub(super) fn compare<'a>(
    node: Node<'a>,
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
) -> Result<Comparison<'a>, String> {
    let delta = match node.resolve().map {
        Some(map) => of_fields(map, Some(old), Some(new))?,
        None => Delta::default(),
    };
    Ok(Comparison { removed: delta.removed.children, changed: delta.changed.children })
}

#[derive(Debug, Default)]
struct Delta<'a> {
    removed: Subtree<'a>,
    changed: Subtree<'a>,
}

impl<'a> Delta<'a> {
    fn put(&mut self, element: Element<'a>, inner: Self) {
        if !inner.removed.is_nothing() {
            self.removed.children.put(element.clone(), inner.removed);
        }
        self.changed.children.put(element, inner.changed);
    }

    fn join(self, other: Self) -> Self {
        let join = |a: Subtree<'a>, b: Subtree<'a>| Subtree {
            member: a.member || b.member,
            children: a.children.union(b.children),
        };
        Self { removed: join(self.removed, other.removed), changed: join(self.changed, other.changed) }
    }
}

fn walk<'a>(node: Node<'a>, old: Option<&'a Value>, new: Option<&'a Value>) -> Result<Delta<'a>, String> {
    match (old, new) {
        (None, None) => Ok(Delta::default()),
        (Some(old), None) => Ok(Delta { removed: whole(node, old)?, ..Delta::default() }),
        (None, Some(new)) => Ok(Delta { changed: whole(node, new)?, ..Delta::default() }),
        (Some(old), Some(new)) => {
            let (was, is) = (node.form(old), node.form(new));
            let delta = handle(is, old, new)?;
            Ok(if same_form(was, is) { delta } else { handle(was, old, new)?.join(delta) })
        }
    }
}

/// All fields of a value that was added or removed: the value itself, and the fields that are owned separately.
fn whole<'a>(node: Node<'a>, value: &'a Value) -> Result<Subtree<'a>, String> {
    let children = match (node.form(value), value) {
        (Form::List(list), Value::Array(items)) if !matches!(list.relation, Relation::Atomic) => {
            whole_items(list, items)?
        }
        (Form::Map(map), Value::Object(fields)) if !map.atomic => whole_fields(map, fields)?,
        _ => FieldSet::new(),
    };
    Ok(Subtree { member: true, children })
}

fn whole_fields<'a>(map: Mapping<'a>, fields: &'a Map<String, Value>) -> Result<FieldSet<'a>, String> {
    let mut set = FieldSet::with_room(fields.len());
    for (name, value) in fields {
        let Some(node) = map.child(name) else { continue };
        set.put(Element::field(name), whole(node, value)?);
    }
    Ok(set)
}

/// Items with a duplicate key are owned as a whole.
fn whole_items<'a>(list: List<'a>, items: &'a [Value]) -> Result<FieldSet<'a>, String> {
    let mut all: Vec<Item<'a>> = Vec::with_capacity(items.len());
    identify(list, items, false, &mut all)?;
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let mut set = FieldSet::with_room(all.len());
    for same in all.chunk_by_mut(|a, b| a.0 == b.0) {
        let subtree = match same {
            [(_, _, item)] => whole(list.item, item)?,
            _ => Subtree::MEMBER,
        };
        set.put(taken(same), subtree);
    }
    Ok(set)
}

fn same_form(a: Form<'_>, b: Form<'_>) -> bool {
    matches!(
        (a, b),
        (Form::Scalar(_), Form::Scalar(_)) | (Form::List(_), Form::List(_)) | (Form::Map(_), Form::Map(_))
    )
}

/// Compares two states of a value of one form.
fn handle<'a>(form: Form<'a>, old: &'a Value, new: &'a Value) -> Result<Delta<'a>, String> {
    match form {
        Form::Scalar(_) => Ok(leaf(old, new)),
        Form::List(list) => {
            let (was, is) = (items(old), items(new));
            if matches!(list.relation, Relation::Atomic) || was.is_empty() && is.is_empty() {
                return Ok(leaf(old, new));
            }
            of_items(list, was, is)
        }
        Form::Map(map) => {
            let (was, is) = (old.as_object(), new.as_object());
            let is_empty = |map: Option<&Map<String, Value>>| map.is_none_or(Map::is_empty);
            if map.atomic || is_empty(was) && is_empty(is) {
                return Ok(leaf(old, new));
            }
            of_fields(map, was, is)
        }
    }
}

fn leaf<'a>(old: &Value, new: &Value) -> Delta<'a> {
    Delta { changed: Subtree { member: !equal(old, new), ..Subtree::default() }, ..Delta::default() }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn of_fields<'a>(
    map: Mapping<'a>,
    old: Option<&'a Map<String, Value>>,
    new: Option<&'a Map<String, Value>>,
) -> Result<Delta<'a>, String> {
    let mut delta = Delta::default();
    let mut was = old.into_iter().flatten().peekable();
    let mut is = new.into_iter().flatten().peekable();
    loop {
        let (name, before, after) = match (was.peek(), is.peek()) {
            (None, None) => break,
            (Some((a, _)), Some((b, _))) if a == b => {
                let after = is.next().map(|(_, value)| value);
                let Some((name, value)) = was.next() else { break };
                (name, Some(value), after)
            }
            (Some((a, _)), Some((b, _))) if a > b => {
                let Some((name, value)) = is.next() else { break };
                (name, None, Some(value))
            }
            (None, Some(_)) => {
                let Some((name, value)) = is.next() else { break };
                (name, None, Some(value))
            }
            (Some(_), _) => {
                let Some((name, value)) = was.next() else { break };
                (name, Some(value), None)
            }
        };
        let Some(node) = map.child(name) else { continue };
        delta.put(Element::field(name), walk(node, before, after)?);
    }
    Ok(delta)
}

/// An item of a list: its path element, whether it is from the new state, its value.
type Item<'a> = (Element<'a>, bool, &'a Value);

/// Compares items by key. Items with a duplicate key are compared as a whole.
fn of_items<'a>(list: List<'a>, old: &'a [Value], new: &'a [Value]) -> Result<Delta<'a>, String> {
    let mut all: Vec<Item<'a>> = Vec::with_capacity(old.len() + new.len());
    identify(list, old, false, &mut all)?;
    identify(list, new, true, &mut all)?;
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let mut delta = Delta::default();
    for same in all.chunk_by_mut(|a, b| a.0 == b.0) {
        // The sort is stable: items of the old state come before those of the new one.
        let (was, is) = same.split_at(same.partition_point(|(_, is_new, _)| !is_new));
        let first = |side: &[Item<'a>]| side.first().map(|(_, _, item)| *item);
        let inner = match (was, is) {
            ([] | [_], [] | [_]) => walk(list.item, first(was), first(is))?,
            ([_, _, ..], [_, _, ..]) => {
                let is_same = was.len() == is.len() && was.iter().zip(is).all(|(a, b)| equal(a.2, b.2));
                Delta { changed: Subtree { member: !is_same, ..Subtree::default() }, ..Delta::default() }
            }
            ([_, _, ..], _) => {
                let mut inner = walk(list.item, None, first(is))?;
                inner.removed.member = true;
                inner
            }
            (_, _) => {
                let mut inner = walk(list.item, first(was), None)?;
                inner.changed.member = true;
                inner
            }
        };
        delta.put(taken(same), inner);
    }
    Ok(delta)
}

fn identify<'a>(
    list: List<'a>,
    items: &'a [Value],
    is_new: bool,
    all: &mut Vec<Item<'a>>,
) -> Result<(), String> {
    for (at, item) in items.iter().enumerate() {
        let element = list.element(item).map_err(|problem| format!("element {at}: {problem}"))?;
        all.push((element, is_new, item));
    }
    Ok(())
}

/// The path element of items with the same key.
fn taken<'a>(same: &mut [Item<'a>]) -> Element<'a> {
    std::mem::replace(&mut same[0].0, Element::Index(0))
}
