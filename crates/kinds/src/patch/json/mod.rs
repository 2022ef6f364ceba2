//! JSON patch (RFC 6902): a list of operations on paths.
//!
//! As in kube-apiserver, `replace` adds a missing value, an absent value is null, the text before the first slash of a
//! path is ignored, and negative indices count from the end of a list.

#[cfg(test)]
mod tests;

use std::io;

use model::error::Error;
use serde_json::{Map, Value};

use super::wrong_type;

/// The most operations of one patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// The most bytes of JSON that the `copy` operations of one patch may copy.
const MAX_COPIED_BYTES: usize = 3 << 20;

/// The message of a patch that exceeds the limits.
const TOO_MUCH: &str = "the patch makes the object too large";

/// The deepest nesting of a patched document, as of [`model::json::parse`].
const MAX_LEVELS: usize = 128;

/// Applies a JSON patch. After a failure the document is unusable.
///
/// A malformed list is a bad request. If an operation fails, or a `test`, the error does not name the operation or the
/// reason, as in kube-apiserver.
pub fn apply(document: &mut Value, patch: &Value) -> Result<(), Error> {
    let nothing = || Error::Invalid {
        group: String::new(),
        kind: String::new(),
        name: String::new(),
        errors: Vec::new(),
    };
    apply_with_reason(document, patch).map_err(|failure| match failure {
        Failure::Malformed(error) => error,
        Failure::Failed(_) => nothing(),
    })
}

/// The reason why a patch is not applied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The patch is malformed or exceeds the limits.
    #[error("{0}")]
    Malformed(Error),
    /// An operation failed; the message names it and the reason.
    #[error("{0}")]
    Failed(String),
}

/// Like [`apply`], but a failure names the operation and the reason.
pub fn apply_with_reason(document: &mut Value, patch: &Value) -> Result<(), Failure> {
    let operations = match patch {
        Value::Null => Vec::new(),
        Value::Array(items) => {
            items.iter().map(Operation::read).collect::<Result<Vec<_>, _>>().map_err(Failure::Malformed)?
        }
        other => return Err(Failure::Malformed(wrong_type(other, "value of type []handlers.jsonPatchOp"))),
    };
    if operations.len() > MAX_OPERATIONS {
        let given = operations.len();
        return Err(Failure::Malformed(Error::TooManyOperations { limit: MAX_OPERATIONS, given }));
    }
    let mut limits = Limits { copied: 0, levels: MAX_LEVELS };
    for operation in &operations {
        if operation.apply(document, &mut limits).is_none() {
            return Err(Failure::Failed(operation.failure_reason(document)));
        }
    }
    if nests_deeper(document, MAX_LEVELS) {
        return Err(Failure::Failed(TOO_MUCH.to_owned()));
    }
    Ok(())
}

/// Whether operations have unknown keys: strict field validation refuses them.
pub fn has_unknown_fields(patch: &Value) -> bool {
    let operations = patch.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut keys = operations.iter().filter_map(Value::as_object).flat_map(Map::keys);
    keys.any(|key| !["op", "path", "from", "value"].contains(&key.as_str()))
}

/// One operation with its raw fields: a missing field is an error only if the operation needs it.
struct Operation<'a> {
    op: Option<&'a str>,
    path: Option<&'a str>,
    from: Option<&'a str>,
    value: &'a Value,
}

/// The limits that a patch has used up.
struct Limits {
    copied: usize,
    /// An upper bound of the document's present nesting.
    levels: usize,
}

impl<'a> Operation<'a> {
    fn read(step: &'a Value) -> Result<Self, Error> {
        let part = |name: &str| match step.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(other) => Err(wrong_type(other, &format!("struct field jsonPatchOp.{name} of type string"))),
        };
        if !step.is_object() && !step.is_null() {
            return Err(wrong_type(step, "value of type handlers.jsonPatchOp"));
        }
        let value = step.get("value").unwrap_or(&Value::Null);
        Ok(Self { op: part("op")?, path: part("path")?, from: part("from")?, value })
    }

    /// Applies the operation; `None` if it fails.
    fn apply(&self, document: &mut Value, limits: &mut Limits) -> Option<()> {
        let path = self.path?;
        match self.op? {
            "add" => add(document, path, self.value.clone(), limits),
            "remove" => remove(document, path).map(drop),
            "replace" => self.replace(document, path, limits),
            "test" => self.test(document, path),
            "move" => {
                let value = remove(document, self.from?)?;
                add(document, path, value, limits)
            }
            "copy" => {
                let (container, key) = locate(document, self.from?)?;
                let value = get(container, &key)?.cloned().unwrap_or(Value::Null);
                limits.copied = limits.copied.saturating_add(size(&value));
                if limits.copied > MAX_COPIED_BYTES {
                    return None;
                }
                add(document, path, value, limits)
            }
            _ => None,
        }
    }

    /// The reason why the operation failed on the present document.
    fn failure_reason(&self, document: &mut Value) -> String {
        let op = self.op.unwrap_or("unknown");
        let mut has_place = |path: &str| locate(document, path).is_some();
        let (path, from) = (self.path.unwrap_or_default(), self.from.unwrap_or_default());
        let missing = |what: &str| format!("{op} operation does not apply: {what}: missing value");
        let is_taken = matches!(op, "move" | "copy");
        match op {
            "move" | "copy" if self.from.is_none() => {
                format!("{op} operation failed to decode from: operation, missing from field: missing value")
            }
            "add" | "remove" | "replace" | "test" | "move" | "copy" if self.path.is_none() => {
                format!("{op} operation failed to decode path: missing value")
            }
            _ if is_taken && !has_place(from) => missing(&format!("doc is missing from path: {from}")),
            _ if is_taken && !has_place(path) => missing(&format!("doc is missing destination path: {path}")),
            "add" | "remove" if !has_place(path) => missing(&format!("doc is missing path: \"{path}\"")),
            "replace" if !has_place(path) => missing(&format!("doc is missing path: {path}")),
            "test" if !has_place(path) => missing(&format!("is missing path: {path}")),
            "replace" => missing(&format!("doc is missing key: {path}")),
            "test" => format!("testing value {path} failed: test failed"),
            "add" | "remove" => format!("error in {op} for path: '{path}': {}", absent(document, path)),
            "move" => {
                let (_, key) = from.rsplit_once('/').unwrap_or_default();
                format!("error in move for path: '{key}': {}", absent(document, from))
            }
            "copy" => TOO_MUCH.to_owned(),
            other => format!("Unexpected kind: {other}"),
        }
    }

    fn replace(&self, document: &mut Value, path: &str, limits: &mut Limits) -> Option<()> {
        if path.is_empty() {
            *document = self.value.clone();
            return (document.is_object() || document.is_array()).then_some(());
        }
        match locate(document, path)? {
            (Value::Array(items), key) => {
                let at = index(&key, items.len())?;
                *items.get_mut(at)? = self.value.clone();
                limits.grown(document, path)
            }
            _ => add(document, path, self.value.clone(), limits),
        }
    }

    fn test(&self, document: &mut Value, path: &str) -> Option<()> {
        let found = if path.is_empty() {
            Some(&*document)
        } else {
            let (container, key) = locate(document, path)?;
            get(container, &key)?
        };
        (found.unwrap_or(&Value::Null) == self.value).then_some(())
    }
}

impl Limits {
    /// Counts the nesting of a value put at `path`. Without this a patch that moves values back and forth could nest
    /// them so deep that dropping the document overflows the stack.
    fn grown(&mut self, document: &Value, path: &str) -> Option<()> {
        self.levels += path.matches('/').count();
        if self.levels > 4 * MAX_LEVELS {
            if nests_deeper(document, MAX_LEVELS) {
                return None;
            }
            self.levels = MAX_LEVELS;
        }
        Some(())
    }
}

/// The object or list that contains the last segment of a path, and that segment.
fn locate<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (_, path) = path.split_once('/')?;
    let (parents, key) = path.rsplit_once('/').map_or((None, path), |(parents, key)| (Some(parents), key));
    let mut container = document;
    for part in parents.into_iter().flat_map(|parents| parents.split('/')) {
        container = match container {
            Value::Object(fields) => fields.get_mut(&unescape(part))?,
            Value::Array(items) => {
                let at = index(part, items.len())?;
                items.get_mut(at)?
            }
            _ => return None,
        };
    }
    (container.is_object() || container.is_array()).then(|| (container, unescape(key)))
}

/// The message for a missing path.
fn absent(document: &mut Value, path: &str) -> String {
    match locate(document, path) {
        Some((Value::Object(fields), key)) if !fields.contains_key(&key) => {
            format!("Unable to remove nonexistent key: {key}: missing value")
        }
        Some((Value::Array(_), key)) => {
            format!("Unable to access invalid index: {key}: invalid index referenced")
        }
        _ => TOO_MUCH.to_owned(),
    }
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// The index of a key in a list of `places` items; a negative one counts from the end.
fn index(key: &str, places: usize) -> Option<usize> {
    let number: i64 = key.parse().ok()?;
    let places = i64::try_from(places).ok()?;
    let number = if number < 0 { number + places } else { number };
    usize::try_from(number).ok().filter(|_| number < places)
}

/// The value of a key: it may be missing in an object, but not in a list.
#[allow(clippy::option_option, reason = "the outer one is a failure, the inner one is an absent key")]
fn get<'a>(container: &'a Value, key: &str) -> Option<Option<&'a Value>> {
    match container {
        Value::Object(fields) => Some(fields.get(key)),
        Value::Array(items) => items.get(index(key, items.len())?).map(Some),
        _ => None,
    }
}

fn add(document: &mut Value, path: &str, value: Value, limits: &mut Limits) -> Option<()> {
    match locate(document, path)? {
        (Value::Object(fields), key) => {
            fields.insert(key, value);
        }
        (Value::Array(items), key) if key == "-" => items.push(value),
        (Value::Array(items), key) => items.insert(index(&key, items.len() + 1)?, value),
        _ => return None,
    }
    limits.grown(document, path)
}

fn remove(document: &mut Value, path: &str) -> Option<Value> {
    match locate(document, path)? {
        (Value::Object(fields), key) => fields.remove(&key),
        (Value::Array(items), key) => Some(items.remove(index(&key, items.len())?)),
        _ => None,
    }
}

fn nests_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| nests_deeper(item, levels - 1)),
        Value::Object(fields) => levels == 0 || fields.values().any(|field| nests_deeper(field, levels - 1)),
        _ => false,
    }
}

/// The length of a value as JSON.
fn size(value: &Value) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).expect("a value is JSON, and counting cannot fail");
    counter.0
}
