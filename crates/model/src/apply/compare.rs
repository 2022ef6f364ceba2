//! Two states of an object: which fields the second has that the first has not, or has otherwise, and which it lost.

use serde_json::{Map, Value};

use super::element::{Element, equal};
use super::set::{FieldSet, Part};
use super::types::{Form, List, Mapping, Node, Relation};

/// What changed between two states.
#[derive(Debug, Default)]
pub(super) struct Comparison<'a> {
    /// What was there and is no more.
    pub removed: FieldSet<'a>,
    /// What is new or has another value.
    pub changed: FieldSet<'a>,
}

/// Compares two objects of one type.
///
/// # Errors
/// An item of a list has nothing that identifies it.
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
    removed: Part<'a>,
    changed: Part<'a>,
}

impl<'a> Delta<'a> {
    fn put(&mut self, element: Element<'a>, inner: Self) {
        if !inner.removed.is_nothing() {
            self.removed.children.put(element.clone(), inner.removed);
        }
        self.changed.children.put(element, inner.changed);
    }

    fn join(self, other: Self) -> Self {
        let join = |a: Part<'a>, b: Part<'a>| Part {
            member: a.member || b.member,
            children: a.children.union(b.children),
        };
        Self { removed: join(self.removed, other.removed), changed: join(self.changed, other.changed) }
    }
}

fn walk<'a>(node: Node<'a>, old: Option<&'a Value>, new: Option<&'a Value>) -> Result<Delta<'a>, String> {
    let (mut delta, is_leaf) = match (old, new) {
        (None, None) => return Ok(Delta::default()),
        (Some(value), None) | (None, Some(value)) => handle(node.form(value), old, new)?,
        (Some(a), Some(b)) => {
            let (was, is) = (node.form(a), node.form(b));
            let (delta, is_leaf) = handle(is, old, new)?;
            if same_form(was, is) {
                (delta, is_leaf)
            } else {
                (handle(was, old, new)?.0.join(delta), is_leaf)
            }
        }
    };
    if !is_leaf {
        delta.changed.member |= old.is_none();
        delta.removed.member |= new.is_none();
    }
    Ok(delta)
}

fn same_form(a: Form<'_>, b: Form<'_>) -> bool {
    matches!(
        (a, b),
        (Form::Scalar(_), Form::Scalar(_)) | (Form::List(_), Form::List(_)) | (Form::Map(_), Form::Map(_))
    )
}

/// What a form finds, and whether the value is one thing to it.
fn handle<'a>(
    form: Form<'a>,
    old: Option<&'a Value>,
    new: Option<&'a Value>,
) -> Result<(Delta<'a>, bool), String> {
    match form {
        Form::Scalar(_) => Ok((leaf(old, new), true)),
        Form::List(list) => {
            let (was, is) = (items(old), items(new));
            if matches!(list.relation, Relation::Atomic) || was.is_empty() && is.is_empty() {
                return Ok((leaf(old, new), true));
            }
            Ok((of_items(list, was, is)?, false))
        }
        Form::Map(map) => {
            let (was, is) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
            let is_empty = |map: Option<&Map<String, Value>>| map.is_none_or(Map::is_empty);
            if map.atomic || is_empty(was) && is_empty(is) {
                return Ok((leaf(old, new), true));
            }
            Ok((of_fields(map, was, is)?, false))
        }
    }
}

fn leaf<'a>(old: Option<&Value>, new: Option<&Value>) -> Delta<'a> {
    let mut delta = Delta::default();
    match (old, new) {
        (Some(_), None) => delta.removed.member = true,
        (Some(old), Some(new)) => delta.changed.member = !equal(old, new),
        (None, _) => delta.changed.member = true,
    }
    delta
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn of_fields<'a>(
    map: Mapping<'a>,
    old: Option<&'a Map<String, Value>>,
    new: Option<&'a Map<String, Value>>,
) -> Result<Delta<'a>, String> {
    let mut delta = Delta::default();
    if old.is_none() {
        // All of it is new.
        delta.changed.children = FieldSet::with_room(new.map_or(0, Map::len));
    }
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

/// An item of a list: what identifies it, and whether it is one of now.
type Item<'a> = (Element<'a>, bool, &'a Value);

/// Items are compared with those that have the same key. Of a key that comes more than once the items are compared as a whole.
fn of_items<'a>(list: List<'a>, old: &'a [Value], new: &'a [Value]) -> Result<Delta<'a>, String> {
    let mut all: Vec<Item<'a>> = Vec::with_capacity(old.len() + new.len());
    for (is_new, side) in [(false, old), (true, new)] {
        for (at, item) in side.iter().enumerate() {
            let element = list.element(item).map_err(|problem| format!("element {at}: {problem}"))?;
            all.push((element, is_new, item));
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let mut delta = Delta::default();
    for same in all.chunk_by_mut(|a, b| a.0 == b.0) {
        // The order is stable: what was comes before what is.
        let (was, is) = same.split_at(same.partition_point(|(_, is_new, _)| !is_new));
        let first = |side: &[Item<'a>]| side.first().map(|(_, _, item)| *item);
        let inner = match (was, is) {
            ([] | [_], [] | [_]) => walk(list.item, first(was), first(is))?,
            ([_, _, ..], [_, _, ..]) => {
                let is_same = was.len() == is.len() && was.iter().zip(is).all(|(a, b)| equal(a.2, b.2));
                Delta { changed: Part { member: !is_same, ..Part::default() }, ..Delta::default() }
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
        delta.put(std::mem::replace(&mut same[0].0, Element::Index(0)), inner);
    }
    Ok(delta)
}
