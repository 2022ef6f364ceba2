//! Joins the OpenAPI types, the protobuf messages and the facts into one table.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use crate::facts::{Facts, FieldFacts, TypeFacts};
use crate::openapi::{self, Definition, Shape};
use crate::protobuf::{self, Message, Messages, fold};

/// The text of the table without its header.
pub fn table(
    definitions: &BTreeMap<String, Definition>,
    messages: &Messages,
    facts: &Facts,
) -> Result<String, String> {
    let mut packages: BTreeMap<String, (String, BTreeMap<String, String>)> = BTreeMap::new();
    let mut unused: BTreeSet<_> = facts.types.keys().cloned().collect();
    for (full_name, definition) in definitions {
        let (prefix, name) = full_name.rsplit_once('.').ok_or("a type without a package")?;
        let alias = alias(prefix);
        let key = (alias.clone(), name.to_owned());
        unused.remove(&key);
        let empty = TypeFacts::default();
        let of = facts.types.get(&key).unwrap_or(&empty);
        let join = Join { alias: &alias, definition, messages, facts, of };
        let text = join.text(full_name, name).map_err(|problem| format!("{full_name}: {problem}"))?;
        packages
            .entry(alias)
            .or_insert_with(|| (prefix.to_owned(), BTreeMap::new()))
            .1
            .insert(name.to_owned(), text);
    }
    for (alias, name) in unused {
        let of = &facts.types[&(alias.clone(), name.clone())];
        let prefix = facts.packages.get(&alias).cloned();
        let package = packages.entry(alias.clone());
        let package = package.or_insert_with(|| (prefix.unwrap_or_default(), BTreeMap::new()));
        package.1.insert(name.clone(), only_facts(&alias, &name, of, facts));
    }
    let mut text = String::new();
    for (alias, (prefix, types)) in packages {
        if prefix.is_empty() {
            return Err(format!("no source has the OpenAPI name prefix of package {alias}"));
        }
        let _ = write!(text, "\npackage {alias} {prefix}\n");
        text.extend(types.into_values());
    }
    Ok(text)
}

/// The package alias of an OpenAPI prefix: `core/v1` for `io.k8s.api.core.v1`.
fn alias(prefix: &str) -> String {
    let mut parts = prefix.rsplit('.');
    let (last, before) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!("{before}/{last}")
}

/// The lines of a type that only the facts describe.
fn only_facts(alias: &str, name: &str, of: &TypeFacts, facts: &Facts) -> String {
    let mut text = format!("{}\n", [&[name.to_owned()], &of.words[..]].concat().join(" "));
    for (field, FieldFacts { marks, words }) in &of.fields {
        let _ = write!(text, " {field}{marks}");
        for word in words {
            let _ = match word.strip_prefix("string:") {
                Some(string) => write!(text, " {}", facts.string(alias, string)),
                None => write!(text, " {word}"),
            };
        }
        text.push('\n');
    }
    text
}

struct Join<'a> {
    alias: &'a str,
    definition: &'a Definition,
    messages: &'a Messages,
    facts: &'a Facts,
    of: &'a TypeFacts,
}

/// A field of a message, with the tags from the outside in.
struct Place<'a> {
    tags: Vec<u32>,
    field: &'a protobuf::Field,
}

impl Join<'_> {
    fn text(&self, full_name: &str, name: &str) -> Result<String, String> {
        let message = self.messages.of(full_name);
        let mut text = self.header(name, message);
        let mut places = BTreeMap::new();
        let mut embedded = Vec::new();
        if let Some(message) = message {
            self.locate(message, &[], &mut places, &mut embedded);
        }
        for (go_name, tags) in embedded {
            let _ = writeln!(text, " +{go_name} #{}", dotted(&tags));
        }
        let missing = self.of.fields.keys().find(|name| !self.definition.fields.contains_key(*name));
        if let Some(name) = missing {
            return Err(format!("facts.txt describes the unknown field {name}"));
        }
        let is_kind = self.is_kind();
        for (name, field) in &self.definition.fields {
            if !(is_kind && (name == "apiVersion" || name == "kind")) {
                text += &self.field(name, field, places.get(&fold(name)))?;
            }
        }
        Ok(text)
    }

    fn is_kind(&self) -> bool {
        self.definition.group_version.is_some() || self.of.words.iter().any(|word| word != "atomic")
    }

    fn header(&self, name: &str, message: Option<&Message>) -> String {
        let mut text = name.to_owned();
        if !self.of.words.is_empty() {
            let _ = write!(text, " {}", self.of.words.join(" "));
        } else if let Some((group, version)) = &self.definition.group_version {
            let slash = if group.is_empty() { "" } else { "/" };
            let _ = write!(text, " {group}{slash}{version}");
        }
        if self.is_kind() && !self.definition.has_list && !text.ends_with(" *") {
            text += " single";
        }
        if message.is_some_and(|message| message.markers.get("structType") == Some("atomic")) {
            text += " atomic";
        }
        text.push('\n');
        text
    }

    /// Finds the message fields of the type's JSON fields. JSON has the fields of embedded Go structs beside
    /// the others; protobuf has them one level deeper, in a field that JSON does not have.
    fn locate<'m>(
        &'m self,
        message: &'m Message,
        outer: &[u32],
        places: &mut BTreeMap<String, Place<'m>>,
        embedded: &mut Vec<(String, Vec<u32>)>,
    ) {
        let names: BTreeSet<String> = self.definition.fields.keys().map(|name| fold(name)).collect();
        for field in &message.fields {
            let tags = [outer, &[field.tag]].concat();
            if names.contains(&field.folded) {
                places.entry(field.folded.clone()).or_insert(Place { tags, field });
            } else if let Some(inner) = self.messages.referred(field)
                && inner.fields.iter().any(|field| names.contains(&field.folded))
            {
                embedded.push((inner.name.clone(), tags.clone()));
                self.locate(inner, &tags, places, embedded);
            }
        }
    }

    fn field(&self, name: &str, field: &openapi::Field, place: Option<&Place>) -> Result<String, String> {
        let fact = self.of.fields.get(name);
        let mut shape = self.shape(&field.shape, place);
        let mut words: [Option<String>; 5] = Default::default();
        if let Some(Place { tags, field: source }) = place {
            words =
                [None, Some(format!("#{}", dotted(tags))), list_kind(source), patch(source), default(source)];
        }
        for word in fact.into_iter().flat_map(|fact| &fact.words) {
            match word.split_at(1) {
                (":", _) => words[0] = Some(word.clone()),
                ("#", _) => words[1] = Some(word.clone()),
                ("~", _) => words[3] = Some(word.clone()),
                ("=", _) => words[4] = Some(word.clone()),
                _ if ["atomic", "granular", "set"].contains(&&**word) || word.starts_with("map(") => {
                    words[2] = Some(word.clone());
                }
                _ => shape = self.stated(&shape, word),
            }
        }
        let marks = fact.map_or_else(|| marks(name, field, place), |fact| fact.marks.clone());
        let rest: String = words.into_iter().flatten().map(|word| format!(" {word}")).collect();
        Ok(format!(" {name}{marks} {shape}{rest}\n"))
    }

    /// Applies the shape of a fact. A `string:` fact only replaces the string in a list or map of strings.
    fn stated(&self, shape: &str, word: &str) -> String {
        match word.strip_prefix("string:") {
            Some(text) => shape.replacen("string", &self.facts.string(self.alias, text), 1),
            None => word.to_owned(),
        }
    }

    fn shape(&self, shape: &Shape, place: Option<&Place>) -> String {
        match shape {
            Shape::Word(word) => (*word).to_owned(),
            Shape::Object(name) => {
                let (prefix, name) = name.rsplit_once('.').unwrap_or_default();
                let alias = alias(prefix);
                if alias == self.alias { name.to_owned() } else { format!("{alias}.{name}") }
            }
            Shape::Map(inner) => format!("{{{}}}", self.shape(inner, place)),
            Shape::List(inner) => {
                let item = self.shape(inner, None);
                let message = place.and_then(|place| self.messages.referred(place.field));
                let is_wrapped = **inner == Shape::Word("string") && message.is_some();
                if is_wrapped { format!("<{item}>") } else { format!("[{item}]") }
            }
        }
    }
}

/// The marks by Go's usual conventions; facts override them.
fn marks(name: &str, field: &openapi::Field, place: Option<&Place>) -> String {
    let markers = place.map(|place| &place.field.markers);
    let is_optional = markers.is_some_and(|markers| markers.has("optional") || markers.has("k8s:optional"));
    if field.required && !is_optional {
        return "!".to_owned();
    }
    let is_pointer = match &field.shape {
        Shape::Object(_) => !["metadata", "spec", "status"].contains(&name),
        Shape::Word("string" | "bytes") | Shape::List(_) | Shape::Map(_) => false,
        Shape::Word("time") => name != "lastTransitionTime",
        Shape::Word(_) => true,
    };
    if is_pointer { "?".to_owned() } else { String::new() }
}

fn list_kind(field: &protobuf::Field) -> Option<String> {
    let markers = &field.markers;
    match markers.get("listType") {
        Some("map") => Some(format!("map({})", markers.all("listMapKey").collect::<Vec<_>>().join(","))),
        Some(kind) => Some(kind.to_owned()),
        None => markers.get("mapType").or_else(|| markers.get("structType")).map(str::to_owned),
    }
}

fn patch(field: &protobuf::Field) -> Option<String> {
    let strategy = field.markers.get("patchStrategy")?;
    let key = field.markers.get("patchMergeKey").map(|key| format!("({key})"));
    Some(format!("~{strategy}{}", key.unwrap_or_default()))
}

fn default(field: &protobuf::Field) -> Option<String> {
    field.markers.get("default").map(|value| format!("={value}"))
}

fn dotted(tags: &[u32]) -> String {
    tags.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}
