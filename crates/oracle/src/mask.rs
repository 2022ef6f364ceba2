//! Masks for values that differ between two runs of a script: uids, revisions, times, ages, certificates,
//! generated names.
//!
//! Values with an identity are numbered in order of appearance, so that a comparison shows whether two places
//! have the same one: `$uid1`, `$rv2`, `web-$made1`. The rest becomes `$time`, `$age`, `$rv`. Lists of
//! objects with generated names are sorted by their other content.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use regex::{Captures, Regex};
use serde_json::Value;

/// A time this close to the run is taken as set by the server.
const RECENT: SignedDuration = SignedDuration::from_hours(24);

static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static TIME: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"));
static CERTIFICATES: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?s)-----BEGIN CERTIFICATE-----.*-----END CERTIFICATE-----\n?"));
static AGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d+[smhdy]){1,2}$"));
/// Resource versions in messages.
static REVISION: LazyLock<Regex> = LazyLock::new(|| {
    let before = [
        r"ResourceVersion in record \(",
        r"Too large resource version: \d+, current: ",
        r"too old resource version: \d+ \(",
        r#"\\"resourceVersion\\":\\""#,
    ];
    pattern(&format!(r"({})\d+", before.join("|")))
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("every run tests the constant patterns")
}

/// Whether a text contains a UID.
pub(crate) fn is_uid(text: &str) -> bool {
    UID.is_match(text)
}

/// The values seen in a run.
pub struct Masks {
    source: String,
    now: Timestamp,
    kept: Vec<(String, Value)>,
    uids: BTreeMap<String, usize>,
    revisions: BTreeMap<String, usize>,
    /// Generated names and their masks.
    names: BTreeMap<String, String>,
}

impl Masks {
    /// Starts a run. Text that is in the script itself is never masked.
    pub fn new(source: &str, now: Timestamp) -> Self {
        let (kept, uids, revisions, names) = (Vec::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { source: source.to_owned(), now, kept, uids, revisions, names }
    }

    /// Masks a value by this variable from now on.
    pub fn keep(&mut self, name: &str, value: &Value) {
        // Revisions and uids have their own, more precise masks.
        let is_masked = value.as_str().is_none_or(|text| !UID.is_match(text) && text.parse::<u64>().is_err());
        if is_masked {
            self.kept.push((format!("${name}"), value.clone()));
        }
    }

    /// Masks an answer.
    pub fn apply(&mut self, answer: &mut Value) {
        if answer["body"]["openapi"].is_string() {
            self.document(&mut answer["body"]);
        }
        if let Some(Value::Array(items)) = answer.pointer_mut("/body/items") {
            sort_made_up(items);
        }
        self.value(answer, Context::default());
    }

    /// Reduces an OpenAPI document to the script's own types and descriptions: other tests cover the types of
    /// Kubernetes, and its prose is not copied.
    fn document(&self, document: &mut Value) {
        if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
            schemas.retain(|name, _| !name.starts_with("io.k8s."));
        }
        self.drop_prose(document);
    }

    fn drop_prose(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                let is_own = |text: &Value| text.as_str().is_none_or(|text| self.source.contains(text));
                fields.retain(|key, field| key != "description" || is_own(field));
                fields.values_mut().for_each(|field| self.drop_prose(field));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.drop_prose(item)),
            _ => {}
        }
    }

    fn value(&mut self, value: &mut Value, context: Context) {
        if let Some((name, _)) = self.kept.iter().find(|(_, kept)| kept == value) {
            *value = name.as_str().into();
            return;
        }
        match value {
            Value::String(text) => {
                let masked = self.text(text, context);
                *text = masked;
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, context)),
            Value::Object(fields) => self.object(fields, context),
            _ => {}
        }
    }

    fn object(&mut self, fields: &mut serde_json::Map<String, Value>, context: Context) {
        let kind = fields.get("kind").and_then(Value::as_str).unwrap_or_default();
        let is_bookmark = fields.get("type").and_then(Value::as_str) == Some("BOOKMARK");
        let of_list = kind.ends_with("List") || kind == "Table" || context.of_list && context.in_event;
        if context.in_metadata {
            self.note_made_up(fields);
            if let Some(Value::String(version)) = fields.get_mut("resourceVersion")
                && !version.is_empty()
            {
                *version = self.revision(version, context.of_list);
            }
            if let Some(Value::Array(managers)) = fields.get_mut("managedFields") {
                // They are ordered by time, which differs between runs.
                managers.sort_by_key(|manager| {
                    let text = |key: &str| manager[key].as_str().unwrap_or_default().to_owned();
                    (
                        ["operation", "manager", "apiVersion", "subresource"].map(text),
                        manager["fieldsV1"].to_string(),
                    )
                });
            }
            if let Some(token) = fields.get_mut("continue") {
                *token = "$continue".into();
            }
        }
        if let Some(Value::Array(causes)) = fields.get_mut("causes") {
            // Kubernetes validates metadata more than once, and then repeats the causes.
            causes.dedup();
            // Kubernetes lists conflicting managers in random order.
            if causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict") {
                causes.sort_by_key(Value::to_string);
            }
        }
        sort_unordered_lists(fields);
        for column in fields.get_mut("columnDefinitions").and_then(Value::as_array_mut).into_iter().flatten()
        {
            // Kubernetes' prose is neither compared nor copied.
            column.as_object_mut().and_then(|column| column.remove("description"));
        }
        // In managedFields, list entries are keyed by their content, and owner references by their uid.
        let with_uids: Vec<String> = fields.keys().filter(|key| UID.is_match(key)).cloned().collect();
        for key in with_uids {
            let (masked, field) = (self.text(&key, context), fields.remove(&key).unwrap_or_default());
            fields.insert(masked, field);
        }
        for (key, field) in fields.iter_mut() {
            let inner = Context {
                in_metadata: key == "metadata",
                in_event: is_bookmark && key == "object",
                of_list: of_list && key == "metadata" || is_bookmark && key == "object",
                in_cells: key == "cells" || context.in_cells,
            };
            self.value(field, inner);
        }
    }

    /// Masks the random suffix of a generated name, here and wherever the name appears later.
    fn note_made_up(&mut self, metadata: &serde_json::Map<String, Value>) {
        let text = |key: &str| metadata.get(key).and_then(Value::as_str).unwrap_or_default();
        let (name, prefix) = (text("name"), text("generateName"));
        let is_new = !prefix.is_empty() && name.starts_with(prefix) && !self.names.contains_key(name);
        if is_new && !self.source.contains(name) {
            let shown = format!("{prefix}$made{}", self.names.len() + 1);
            self.names.insert(name.to_owned(), shown);
        }
    }

    /// Masks a resource version. Lists and bookmarks have the server's revision, which other writers advance
    /// too.
    fn revision(&mut self, version: &str, of_list: bool) -> String {
        if version.starts_with('$') {
            return version.to_owned();
        }
        if of_list {
            return "$rv".to_owned();
        }
        format!("$rv{}", number(&mut self.revisions, version))
    }

    fn text(&mut self, text: &str, context: Context) -> String {
        if context.in_cells && AGE.is_match(text) {
            return "$age".to_owned();
        }
        let mut masked = text.to_owned();
        for (name, kept) in &self.kept {
            if let Value::String(kept) = kept
                && kept.len() > 3
            {
                masked = masked.replace(kept.as_str(), name);
            }
        }
        for (name, shown) in &self.names {
            masked = masked.replace(name.as_str(), shown);
        }
        masked = CERTIFICATES.replace_all(&masked, "$$certificates").into_owned();
        let (source, uids, now) = (&self.source, &mut self.uids, self.now);
        masked = replace(&UID, &masked, |found| {
            (!source.contains(found)).then(|| format!("$uid{}", number(uids, found)))
        });
        masked = replace(&TIME, &masked, |found| {
            let time: Timestamp = found.parse().ok()?;
            let mask = if found.contains('.') { "$microtime" } else { "$time" };
            (now.duration_since(time).abs() < RECENT).then(|| mask.to_owned())
        });
        REVISION.replace_all(&masked, |found: &Captures<'_>| format!("{}$rv", &found[1])).into_owned()
    }
}

/// The place of a value.
#[derive(Clone, Copy, Default)]
struct Context {
    /// It is the field `metadata`.
    in_metadata: bool,
    /// It is the object of a bookmark.
    in_event: bool,
    /// It belongs to a list and not to an object.
    of_list: bool,
    /// It is in a row of a table.
    in_cells: bool,
}

/// Sorts lists whose order is random in Kubernetes: the rules of a SelfSubjectRulesReview, endpoints and their ports.
fn sort_unordered_lists(fields: &mut serde_json::Map<String, Value>) {
    let keys: &[&str] = if fields.contains_key("addressType") {
        &["endpoints", "ports"]
    } else if fields.contains_key("addresses") || fields.contains_key("notReadyAddresses") {
        &["ports"]
    } else {
        &["resourceRules", "nonResourceRules", "subsets"]
    };
    for key in keys {
        if let Some(Value::Array(items)) = fields.get_mut(*key) {
            items.sort_by_key(|item| {
                let mut item = item.clone();
                if let Some(fields) = item.as_object_mut() {
                    sort_unordered_lists(fields);
                }
                item.to_string()
            });
        }
    }
}

/// Sorts objects with generated names by everything but their metadata, then by labels.
fn sort_made_up(items: &mut [Value]) {
    if items.iter().any(|item| item.pointer("/metadata/generateName").is_some()) {
        items.sort_by_cached_key(|item| {
            let mut rest = item.clone();
            let metadata = rest["metadata"].take();
            let prefix = metadata["generateName"].as_str().unwrap_or_default();
            let name =
                metadata["name"].as_str().filter(|name| prefix.is_empty() || !name.starts_with(prefix));
            format!("{prefix}{} {rest} {}", name.unwrap_or_default(), metadata["labels"])
        });
    }
}

fn number(known: &mut BTreeMap<String, usize>, value: &str) -> usize {
    let next = known.len() + 1;
    *known.entry(value.to_owned()).or_insert(next)
}

fn replace(pattern: &Regex, text: &str, mut mask: impl FnMut(&str) -> Option<String>) -> String {
    let replaced =
        pattern.replace_all(text, |found: &Captures<'_>| mask(&found[0]).unwrap_or(found[0].to_owned()));
    replaced.into_owned()
}
