//! The fields of an object as a set, and the reconciliation of sets with a changed type.

use serde_json::{Map, Value};

use super::element::Element;
use super::set::{FieldSet, Subtree};
use super::types::{Form, List, Mapping, Node, Relation};

/// Every field of an object, as the manager that applies it would own it.
pub(super) fn fields_of<'a>(node: Node<'a>, object: &'a Map<String, Value>) -> FieldSet<'a> {
    node.resolve().map.map_or_else(FieldSet::new, |map| of_entries(map, object).children)
}

fn of_value<'a>(node: Node<'a>, value: &'a Value) -> Subtree<'a> {
    match (node.form(value), value) {
        (Form::Scalar(_), _) => Subtree::MEMBER,
        (Form::List(List { relation: Relation::Atomic, .. }), _) => Subtree::MEMBER,
        (Form::List(list), Value::Array(items)) => of_items(list, items),
        (Form::Map(Mapping { atomic: true, .. }), _) => Subtree::MEMBER,
        (Form::Map(map), Value::Object(entries)) => of_entries(map, entries),
        (Form::List(_) | Form::Map(_), _) => Subtree::default(),
    }
}

fn of_entries<'a>(map: Mapping<'a>, entries: &'a Map<String, Value>) -> Subtree<'a> {
    let mut subtree = Subtree::default();
    for (name, value) in entries {
        let mut inner = map.child(name).map(|node| of_value(node, value)).unwrap_or_default();
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        inner.member |= is_empty || map.field(name).is_none();
        subtree.children.put(Element::field(name), inner);
    }
    subtree
}

/// Items with a duplicate key are owned as a whole.
fn of_items<'a>(list: List<'a>, items: &'a [Value]) -> Subtree<'a> {
    let mut all: Vec<(Element<'a>, &'a Value)> =
        items.iter().filter_map(|item| Some((list.element(item).ok()?, item))).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let mut subtree = Subtree::default();
    for same in all.chunk_by(|a, b| a.0 == b.0) {
        let children = match same {
            [(_, item)] => of_value(list.item, item).children,
            _ => FieldSet::new(),
        };
        subtree.children.put(same[0].0.clone(), Subtree { member: true, children });
    }
    subtree
}

/// Adds the named fields of the type below which the set has members.
pub(super) fn with_named_fields<'a>(mut set: FieldSet<'a>, node: Option<Node<'_>>) -> FieldSet<'a> {
    let atom = node.map(Node::resolve).unwrap_or_default();
    set.retain(|entry| {
        let inner = match (&entry.element, atom.map, atom.list) {
            (Element::Field(name), Some(map), _) => {
                entry.member |= !entry.children.is_empty() && map.field(name).is_some();
                map.child(name)
            }
            (Element::Key(_), _, Some(list)) => Some(list.item),
            _ => None,
        };
        entry.children = with_named_fields(std::mem::take(&mut entry.children), inner);
        true
    });
    set
}

/// Reconciles a set with a type that changed: a manager of fields in a struct or list that became atomic now owns all
/// of it.
pub(super) fn reconciled<'a>(mut set: FieldSet<'a>, node: Node<'_>) -> FieldSet<'a> {
    let atom = node.resolve();
    let is_deduced = atom.map.is_some_and(|map| map.is_deduced());
    set.retain(|entry| {
        let inner = match (&entry.element, atom.map, atom.list) {
            (Element::Field(name), Some(map), _) if !is_deduced => map.child(name),
            (_, None, Some(list)) => Some(list.item),
            _ => None,
        };
        if let Some(inner) = inner
            && !entry.children.is_empty()
        {
            let now = inner.resolve();
            let is_whole = match (now.map, now.list) {
                (Some(map), _) => map.atomic && !map.is_deduced(),
                (None, Some(list)) => now.scalar.is_none() && matches!(list.relation, Relation::Atomic),
                (None, None) => false,
            };
            let children = std::mem::take(&mut entry.children);
            if is_whole {
                entry.member = true;
            } else {
                entry.children = reconciled(children, inner);
            }
        }
        true
    });
    set
}
