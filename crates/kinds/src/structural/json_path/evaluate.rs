//! Evaluates a JSONPath on an object.

use std::cmp::Ordering;

use model::error::display_number;
use serde_json::{Map, Value};

use super::{Filter, JsonPath, Segment, Slice};

/// The most values of one segment: a path of many `..` would find any number.
const FOUND_MAX: usize = 10_000;

/// A value that a path selects.
#[derive(Clone, Debug)]
pub enum Selected<'a> {
    /// The root object.
    Root(&'a Map<String, Value>),
    /// A value in it, or a literal of the path.
    Value(&'a Value),
}

impl<'a> Selected<'a> {
    fn object(&self) -> Option<&'a Map<String, Value>> {
        match self {
            Self::Root(object) => Some(object),
            Self::Value(value) => value.as_object(),
        }
    }

    fn children(&self) -> Vec<Selected<'a>> {
        match (self.object(), self) {
            (Some(object), _) => object.values().map(Selected::Value).collect(),
            (None, Self::Value(Value::Array(list))) => list.iter().map(Selected::Value).collect(),
            _ => Vec::new(),
        }
    }

    fn is_null(&self) -> bool {
        matches!(self, Self::Value(Value::Null))
    }
}

/// The path does not apply to a value, such as an index to a string.
struct Stuck;

impl JsonPath {
    /// The first value that the path selects.
    pub fn first<'a>(&'a self, object: &'a Map<String, Value>) -> Option<Selected<'a>> {
        self.follow(vec![Selected::Root(object)]).ok()?.into_iter().next()
    }

    fn follow<'a>(&'a self, from: Vec<Selected<'a>>) -> Result<Vec<Selected<'a>>, Stuck> {
        let step = |found: Vec<Selected<'a>>, step: &'a Segment| {
            let next = step.take(found)?;
            if next.len() > FOUND_MAX { Err(Stuck) } else { Ok(next) }
        };
        self.steps.iter().try_fold(from, step)
    }
}

impl Segment {
    fn take<'a>(&'a self, from: Vec<Selected<'a>>) -> Result<Vec<Selected<'a>>, Stuck> {
        match self {
            Self::Field(name) => {
                let fields = from.iter().filter_map(|value| value.object()?.get(&**name));
                Ok(fields.map(Selected::Value).collect())
            }
            Self::Wildcard => Ok(from.iter().flat_map(Selected::children).collect()),
            Self::Recursive => {
                let mut all = Vec::new();
                from.into_iter().try_for_each(|value| descend(value, &mut all))?;
                Ok(all)
            }
            Self::Slice(slice) => {
                let mut items = Vec::new();
                for value in from.iter().filter(|value| !value.is_null()) {
                    let Selected::Value(Value::Array(list)) = value else { return Err(Stuck) };
                    items.extend(slice.of(list)?.map(Selected::Value));
                }
                Ok(items)
            }
            Self::Union(paths) => {
                let mut all = Vec::new();
                for path in paths {
                    all.extend(path.follow(from.clone())?);
                }
                Ok(all)
            }
            Self::Filter(filter) => {
                let mut items = Vec::new();
                for value in &from {
                    let Selected::Value(Value::Array(list)) = value else { return Err(Stuck) };
                    for item in list {
                        if filter.holds(item)? {
                            items.push(Selected::Value(item));
                        }
                    }
                }
                Ok(items)
            }
            Self::Literal(value) => Ok(from.iter().map(|_| Selected::Value(value)).collect()),
            Self::Word => Err(Stuck),
        }
    }
}

/// Collects a value and all nested objects and lists.
fn descend<'a>(value: Selected<'a>, all: &mut Vec<Selected<'a>>) -> Result<(), Stuck> {
    let children = value.children();
    if children.is_empty() {
        return Ok(());
    }
    if all.len() > FOUND_MAX {
        return Err(Stuck);
    }
    all.push(value);
    children.into_iter().try_for_each(|child| descend(child, all))
}

impl Slice {
    fn of<'a>(&self, list: &'a [Value]) -> Result<impl Iterator<Item = &'a Value> + use<'a>, Stuck> {
        let length = i64::try_from(list.len()).map_err(|_| Stuck)?;
        let from_end = |position: i64| if position < 0 { position + length } else { position };
        let start = from_end(self.start.unwrap_or(0));
        let end = match self.end {
            None => length,
            Some(0) if self.single => length,
            Some(end) => from_end(end),
        };
        let step = match self.step {
            None => 1,
            Some(step) if step > 0 => usize::try_from(step).map_err(|_| Stuck)?,
            Some(_) => return Err(Stuck),
        };
        let range = usize::try_from(start).map_err(|_| Stuck)?..usize::try_from(end).map_err(|_| Stuck)?;
        let items = if start == end { &[] } else { list.get(range).ok_or(Stuck)? };
        Ok(items.iter().step_by(step))
    }
}

impl Filter {
    fn holds(&self, item: &Value) -> Result<bool, Stuck> {
        let left = self.left.follow(vec![Selected::Value(item)]);
        let Some((operator, right)) = &self.comparison else {
            return Ok(left.is_ok_and(|left| !left.is_empty()));
        };
        let (left, right) = (left?, right.follow(vec![Selected::Value(item)])?);
        match (left.as_slice(), right.as_slice()) {
            ([], _) | (_, []) => Ok(false),
            ([Selected::Value(left)], [Selected::Value(right)]) => compare(left, operator, right),
            _ => Err(Stuck),
        }
    }
}

/// Compares values of the same type; booleans only for equality.
fn compare(left: &Value, operator: &str, right: &Value) -> Result<bool, Stuck> {
    let ordering = match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) if matches!(operator, "==" | "!=") => left.cmp(right),
        (Value::Number(left), Value::Number(right)) if left.is_f64() == right.is_f64() => {
            match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => left.cmp(&right),
                _ => left.as_f64().partial_cmp(&right.as_f64()).ok_or(Stuck)?,
            }
        }
        _ => return Err(Stuck),
    };
    Ok(match operator {
        "==" => ordering == Ordering::Equal,
        "!=" => ordering != Ordering::Equal,
        "<" => ordering == Ordering::Less,
        "<=" => ordering != Ordering::Greater,
        ">" => ordering == Ordering::Greater,
        ">=" => ordering != Ordering::Less,
        _ => return Err(Stuck),
    })
}

/// A value as text: strings as they are, lists and objects as JSON, `<no value>` for `null`.
pub fn shown(found: &Selected<'_>) -> String {
    let json = match found {
        Selected::Root(object) => serde_json::to_string(object).unwrap_or_default(),
        Selected::Value(Value::Null) => return "<no value>".to_owned(),
        Selected::Value(Value::String(text)) => return text.clone(),
        Selected::Value(Value::Number(number)) => return display_number(number),
        Selected::Value(value) => value.to_string(),
    };
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
