//! The managers of an object's fields, as `metadata.managedFields` lists them.

use std::borrow::Cow;
use std::cmp::Ordering;

use model::error::{is_printable, quote};
use serde_json::Value;

use super::encoding::push_text;
use super::set::FieldSet;
use crate::validation::MAX_FIELD_MANAGER_BYTES;

/// The most Update entries that are kept; older ones are merged.
const UPDATES_MAX: usize = 10;
/// The manager of merged old updates.
const ANCIENT: &str = "ancient-changes";

/// The operation by which a manager got its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

/// A field manager with its fields.
#[derive(Clone, Debug)]
pub struct Manager<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// The operation by which it got them.
    pub operation: Operation,
    /// The version in which the fields are named.
    pub api_version: Cow<'a, str>,
    /// The subresource that it wrote; empty for the object itself.
    pub subresource: Cow<'a, str>,
    /// The time of its last change.
    pub time: Option<Cow<'a, str>>,
    /// The fields.
    pub fields: FieldSet<'a>,
}

/// All field managers of an object.
#[derive(Clone, Debug, Default)]
pub struct Managers<'a> {
    /// Unique by [`Manager::is_same`].
    pub entries: Vec<Manager<'a>>,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl Manager<'_> {
    /// Whether both are the same manager. An applier is the same in every version.
    pub fn is_same(&self, other: &Manager<'_>) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// The sort order of the list.
    fn order(&self, other: &Self) -> Ordering {
        let key = |manager: &Self| (manager.operation, manager.time.as_deref().unwrap_or("").to_owned());
        key(self)
            .cmp(&key(other))
            .then_with(|| self.name.cmp(&other.name))
            .then_with(|| self.api_version.cmp(&other.api_version))
            .then_with(|| self.subresource.cmp(&other.subresource))
    }

    fn is_ancient(&self) -> bool {
        self.name == ANCIENT && self.operation == Operation::Update && self.subresource.is_empty()
    }

    /// Whether both own the same fields, regardless of their times.
    pub(super) fn owns_the_same(&self, other: &Manager<'_>) -> bool {
        self.is_same(other) && self.api_version == other.api_version && self.fields == other.fields
    }
}

impl<'a> Managers<'a> {
    /// Parses `metadata.managedFields`.
    ///
    /// # Errors
    /// The first invalid entry.
    pub fn decode(list: Option<&'a Value>) -> Result<Self, String> {
        let mut managers = Self::default();
        let entries = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (at, entry) in entries.iter().enumerate() {
            managers.set(decode_entry(entry, at)?);
        }
        Ok(managers)
    }

    /// Adds a manager, or replaces the same one.
    pub fn set(&mut self, manager: Manager<'a>) {
        match self.entries.iter_mut().find(|known| known.is_same(&manager)) {
            Some(known) => *known = manager,
            None => self.entries.push(manager),
        }
    }

    /// Whether there are no managers.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sorts them as the list is sorted.
    pub fn sort(&mut self) {
        self.entries.sort_by(Manager::order);
    }

    /// As JSON, in the present order; `None` if empty.
    pub fn encode(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let mut out = String::with_capacity(2048);
        for manager in &self.entries {
            out.push(if out.is_empty() { '[' } else { ',' });
            write(manager, &mut out);
        }
        out.push(']');
        Some(out)
    }

    /// Merges the oldest updates of a version until the limit is met.
    pub(super) fn cap(&mut self) {
        let is_update = |manager: &Manager<'_>| manager.operation == Operation::Update;
        let mut count = self.entries.iter().filter(|manager| is_update(manager)).count();
        if count <= UPDATES_MAX {
            return;
        }
        self.sort();
        let mut firsts: Vec<usize> = Vec::new();
        for at in 0..self.entries.len() {
            if count <= UPDATES_MAX || !is_update(&self.entries[at]) {
                continue;
            }
            let version = &self.entries[at].api_version;
            let Some(first) =
                firsts.iter().copied().find(|first| self.entries[*first].api_version == *version)
            else {
                firsts.push(at);
                continue;
            };
            let bucket = self.entries.iter().position(|manager| {
                manager.is_ancient() && !manager.fields.is_empty() && manager.api_version == *version
            });
            let bucket = bucket.filter(|bucket| *bucket != at).unwrap_or(first);
            let (fields, time) =
                (std::mem::take(&mut self.entries[at].fields), self.entries[at].time.clone());
            let bucket = &mut self.entries[bucket];
            (bucket.name, bucket.subresource) = (Cow::Borrowed(ANCIENT), Cow::Borrowed(""));
            bucket.time = time;
            bucket.fields = std::mem::take(&mut bucket.fields).union(fields);
            count -= 1;
        }
        self.entries.retain(|manager| !manager.fields.is_empty());
    }
}

/// Parses one entry of the list.
fn decode_entry(entry: &Value, at: usize) -> Result<Manager<'_>, String> {
    let text = |key: &str| Cow::Borrowed(entry.get(key).and_then(Value::as_str).unwrap_or(""));
    let operation = match &*text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    if text("apiVersion").is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match &*text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
        other => {
            return Err(format!("invalid fieldsType {} in managed fields entry {at}", quote(other)));
        }
    }
    let fields = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::new(),
        Some(fields) => FieldSet::decode(fields)
            .map_err(|_| format!("error decoding the fields of managed fields entry {at}"))?,
    };
    Ok(Manager {
        name: text("manager"),
        operation,
        api_version: text("apiVersion"),
        subresource: text("subresource"),
        time: entry.get("time").and_then(Value::as_str).map(Cow::Borrowed),
        fields,
    })
}

fn write(manager: &Manager<'_>, out: &mut String) {
    out.push_str("{\"apiVersion\":");
    push_text(out, &manager.api_version);
    out.push_str(",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
    manager.fields.encode(out);
    if !manager.name.is_empty() {
        out.push_str(",\"manager\":");
        push_text(out, &manager.name);
    }
    out.push_str(",\"operation\":\"");
    out.push_str(manager.operation.name());
    out.push('"');
    if !manager.subresource.is_empty() {
        out.push_str(",\"subresource\":");
        push_text(out, &manager.subresource);
    }
    if let Some(time) = &manager.time {
        out.push_str(",\"time\":");
        push_text(out, time);
    }
    out.push('}');
}

/// The manager of a write: the given name, or else the first word of the user agent.
pub fn manager_name(given: &str, user_agent: &str) -> String {
    if !given.is_empty() {
        return given.to_owned();
    }
    let mut name = String::new();
    let product = user_agent.split('/').next().unwrap_or_default();
    for character in product.chars().filter(|character| is_printable(*character)) {
        if name.len() + character.len_utf8() > MAX_FIELD_MANAGER_BYTES {
            break;
        }
        name.push(character);
    }
    if name.is_empty() { "unknown".to_owned() } else { name }
}
