//! Duplicate keys in a YAML document, in the words of the parser that Kubernetes uses.
//!
//! That parser (yaml.v2 of Go) reads keys as values: `yes` and `on` are the same key, `1` and `"1"` are not.
//! A merge key sets keys like any other, and an alias is read again at each use.

use std::collections::{HashMap, HashSet};

use serde_saphyr::granit_parser::{Event, Options, Parser, ScalarStyle};

use crate::error::quote;

/// Most nodes that are visited: aliases repeat their anchors.
const MAX_VISITS: usize = 200_000;

/// Most keys that are reported.
const MAX_REPORTED: usize = 1000;

/// A sentence for each key that is set again, such as `line 4: key "a" already set in map`. Empty if the
/// events cannot be read.
pub(super) fn repeated_keys(text: &str) -> Vec<String> {
    let Some(document) = Document::read(text) else { return Vec::new() };
    let mut walk = Walk { document: &document, visits: MAX_VISITS, found: Vec::new() };
    if let Some(root) = document.root {
        walk.value(root);
    }
    walk.found
}

/// The nodes of a document, by index.
struct Document<'a> {
    nodes: Vec<(Node<'a>, usize)>,
    root: Option<usize>,
}

enum Node<'a> {
    Text(Scalar<'a>),
    List(Vec<usize>),
    /// Keys and values in turn.
    Map(Vec<usize>),
    Alias(Option<usize>),
}

struct Scalar<'a> {
    text: std::borrow::Cow<'a, str>,
    /// Whether it may be something else than a text.
    is_plain: bool,
}

impl<'a> Document<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut document = Document { nodes: Vec::new(), root: None };
        let mut anchors = HashMap::new();
        let mut open: Vec<usize> = Vec::new();
        let mut options = Options::default();
        options.emit_anchor_events = true;
        for event in Parser::new_from_str_with_options(text, options) {
            let (event, span) = event.ok()?;
            let mut line = span.tag_start().unwrap_or(span.start).line();
            let (node, anchor, opens) = match event {
                Event::Scalar(text, style, anchor, tag) => {
                    if let (ScalarStyle::Literal | ScalarStyle::Folded, Some((_, key))) =
                        (style, document.nodes.last())
                    {
                        // It begins with its `|`, behind the key.
                        line = *key;
                    }
                    let is_plain = style == ScalarStyle::Plain && tag.is_none();
                    (Node::Text(Scalar { text, is_plain }), anchor, false)
                }
                Event::SequenceStart(_, anchor, _) => (Node::List(Vec::new()), anchor, true),
                Event::MappingStart(_, anchor, _) => (Node::Map(Vec::new()), anchor, true),
                Event::Alias(anchor) => (Node::Alias(anchors.get(&anchor).copied()), 0, false),
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                    continue;
                }
                Event::Anchor(..) => {
                    // The node begins with its anchor.
                    if let Some((_, line)) = document.nodes.last_mut() {
                        *line = span.start.line();
                    }
                    continue;
                }
                Event::DocumentEnd => break,
                _ => continue,
            };
            let place = document.nodes.len();
            document.nodes.push((node, line));
            match open.last().map(|&parent| &mut document.nodes[parent].0) {
                Some(Node::List(children) | Node::Map(children)) => children.push(place),
                _ => document.root = Some(place),
            }
            if anchor != 0 {
                anchors.insert(anchor, place);
            }
            if opens {
                open.push(place);
            }
        }
        Some(document)
    }

    /// The anchor of an alias, or the node itself.
    fn resolved(&self, place: usize) -> Option<usize> {
        match self.nodes[place].0 {
            Node::Alias(target) => target,
            _ => Some(place),
        }
    }
}

struct Walk<'a> {
    document: &'a Document<'a>,
    visits: usize,
    found: Vec<String>,
}

impl Walk<'_> {
    fn value(&mut self, place: usize) {
        let Some(place) = self.document.resolved(place) else { return };
        if self.visits == 0 {
            return;
        }
        self.visits -= 1;
        match &self.document.nodes[place].0 {
            Node::List(items) => items.iter().for_each(|&item| self.value(item)),
            Node::Map(_) => self.map(place, &mut HashSet::new()),
            Node::Text(_) | Node::Alias(_) => {}
        }
    }

    /// Reads a mapping into the keys that are set already.
    fn map(&mut self, place: usize, set: &mut HashSet<Key>) {
        let Node::Map(children) = &self.document.nodes[place].0 else { return };
        for pair in children.chunks_exact(2) {
            let &[key, value] = pair else { continue };
            let Some(key) = self.document.resolved(key) else { continue };
            let Node::Text(key) = &self.document.nodes[key].0 else { continue };
            if key.is_plain && key.text == "<<" {
                self.merge(value, set);
                continue;
            }
            self.value(value);
            let key = Key::read(key);
            if set.contains(&key) && self.found.len() < MAX_REPORTED {
                let (line, shown) = (self.document.nodes[value].1, &key.shown);
                self.found.push(format!("line {line}: key {shown} already set in map"));
            }
            set.insert(key);
        }
    }

    fn merge(&mut self, place: usize, set: &mut HashSet<Key>) {
        let Some(place) = self.document.resolved(place) else { return };
        if self.visits == 0 {
            return;
        }
        self.visits -= 1;
        match &self.document.nodes[place].0 {
            Node::Map(_) => self.map(place, set),
            Node::List(items) => items.iter().rev().for_each(|&item| self.merge(item, set)),
            Node::Text(_) | Node::Alias(_) => {}
        }
    }
}

/// The value of a key.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    /// In Go's syntax.
    shown: String,
    /// Whether it is a floating point number: `1e3` and `1000` are shown alike, and are not the same key.
    is_real: bool,
}

impl Key {
    fn read(key: &Scalar<'_>) -> Self {
        let text = &*key.text;
        let plain = text.replace('_', "");
        let is_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
        let real = || plain.parse::<f64>().ok().filter(|_| is_number);
        let (shown, is_real) = match text {
            _ if !key.is_plain => (quote(text), false),
            "" | "~" | "null" | "Null" | "NULL" => ("<nil>".to_owned(), false),
            "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
                ("true".to_owned(), false)
            }
            "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
                ("false".to_owned(), false)
            }
            _ => match (integer(&plain), real()) {
                (Some(number), _) => (number.to_string(), false),
                (None, Some(number)) => (number.to_string(), true),
                (None, None) => (quote(text), false),
            },
        };
        Self { shown, is_real }
    }
}

/// An integer as Go's `strconv.ParseInt` reads it without a base.
fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let radix = |prefix: &str, radix| digits.strip_prefix(prefix).map(|digits| (digits, radix));
    let (digits, radix) = radix("0x", 16)
        .or_else(|| radix("0o", 8))
        .or_else(|| radix("0b", 2))
        .or_else(|| (digits.len() > 1).then(|| radix("0", 8)).flatten())
        .unwrap_or((digits, 10));
    i64::from_str_radix(&format!("{sign}{digits}"), radix).ok().filter(|_| !digits.starts_with(['+', '-']))
}
