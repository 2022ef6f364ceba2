//! Positions of the values in a JSON text, found in one pass and without a tree: for JSON that the server
//! wrote itself.
//!
//! It accepts every JSON text, and some malformed ones: it locates values and does not validate.

use std::borrow::Cow;

/// Deepest nesting; no text that a client sent nests as deeply (see [`super::parse`]).
const DEPTH_MAX: usize = 256;

/// The text cannot be the JSON of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the text of an object")]
pub struct Unreadable;

/// The values of a text. The memory is reused from text to text.
#[derive(Debug, Default)]
pub struct Outline {
    nodes: Vec<Node>,
    open: Vec<u32>,
}

/// A value, or the key in front of it. The content of a value follows it.
#[derive(Clone, Copy, Debug)]
struct Node {
    start: u32,
    end: u32,
    /// Index of the node behind the content of this one.
    next: u32,
    kind: ValueKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    /// `null`, a boolean or a number.
    Word,
    /// A string whose bytes are those between the quotes.
    Plain,
    /// A string with escapes.
    Escaped,
    List,
    Object,
}

impl Outline {
    /// Finds the values of a text, and returns the outermost one.
    pub fn read<'a>(&'a mut self, text: &'a [u8]) -> Result<Json<'a>, Unreadable> {
        self.nodes.clear();
        self.open.clear();
        self.nodes.reserve(text.len() / 12);
        // No object has four gigabytes.
        u32::try_from(text.len()).map_err(|_| Unreadable)?;
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            at = match byte {
                b',' | b':' | b' ' | b'\n' | b'\t' | b'\r' => at + 1,
                b'"' => self.string(text, at)?,
                b'{' => self.begin(at, ValueKind::Object)?,
                b'[' => self.begin(at, ValueKind::List)?,
                b'}' => self.end(at, ValueKind::Object)?,
                b']' => self.end(at, ValueKind::List)?,
                _ => self.word(text, at)?,
            };
        }
        match self.nodes.first() {
            Some(first) if self.open.is_empty() && first.next as usize == self.nodes.len() => {
                Ok(Json { text, nodes: &self.nodes, at: 0 })
            }
            _ => Err(Unreadable),
        }
    }

    fn push(&mut self, start: usize, end: usize, kind: ValueKind) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { start: start as u32, end: end as u32, next, kind });
    }

    fn begin(&mut self, at: usize, kind: ValueKind) -> Result<usize, Unreadable> {
        if self.open.len() == DEPTH_MAX {
            return Err(Unreadable);
        }
        self.open.push(self.nodes.len() as u32);
        self.push(at, at, kind);
        Ok(at + 1)
    }

    fn end(&mut self, at: usize, kind: ValueKind) -> Result<usize, Unreadable> {
        let open = self.open.pop().ok_or(Unreadable)?;
        let next = self.nodes.len() as u32;
        let node = &mut self.nodes[open as usize];
        if node.kind != kind {
            return Err(Unreadable);
        }
        (node.end, node.next) = (at as u32 + 1, next);
        Ok(at + 1)
    }

    fn string(&mut self, text: &[u8], start: usize) -> Result<usize, Unreadable> {
        let mut kind = ValueKind::Plain;
        let mut at = start + 1;
        loop {
            let ends = |byte: &u8| *byte == b'"' || *byte == b'\\';
            at += text.get(at..).ok_or(Unreadable)?.iter().position(ends).ok_or(Unreadable)?;
            if text[at] == b'"' {
                break;
            }
            kind = ValueKind::Escaped;
            at += 2;
        }
        self.push(start, at + 1, kind);
        Ok(at + 1)
    }

    fn word(&mut self, text: &[u8], start: usize) -> Result<usize, Unreadable> {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let length = text[start..].iter().take_while(|byte| is_part(byte)).count();
        if length == 0 {
            return Err(Unreadable);
        }
        self.push(start, start + length, ValueKind::Word);
        Ok(start + length)
    }
}

/// A value of an outlined text.
#[derive(Clone, Copy, Debug)]
pub struct Json<'a> {
    text: &'a [u8],
    nodes: &'a [Node],
    at: u32,
}

impl<'a> Json<'a> {
    fn node(self) -> Node {
        self.nodes[self.at as usize]
    }

    /// Its text.
    pub fn raw(self) -> &'a [u8] {
        let node = self.node();
        &self.text[node.start as usize..node.end as usize]
    }

    /// Its number in the outline, for [`Json::other`].
    pub fn number(self) -> u32 {
        self.at
    }

    /// The value with a number that a value of the same text had.
    pub fn other(self, number: u32) -> Self {
        Self { at: number, ..self }
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.raw() == b"null"
    }

    /// Whether it is a string.
    pub fn is_string(self) -> bool {
        matches!(self.node().kind, ValueKind::Plain | ValueKind::Escaped)
    }

    /// Whether it is a list.
    pub fn is_list(self) -> bool {
        self.node().kind == ValueKind::List
    }

    /// Whether it is an object.
    pub fn is_object(self) -> bool {
        self.node().kind == ValueKind::Object
    }

    /// A boolean.
    pub fn as_bool(self) -> Option<bool> {
        match self.raw() {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }

    /// A number, if it is one of this type.
    pub fn as_number<T: std::str::FromStr>(self) -> Option<T> {
        let is_number = matches!(self.raw().first(), Some(b'-' | b'0'..=b'9'));
        std::str::from_utf8(self.raw()).ok().filter(|_| is_number)?.parse().ok()
    }

    /// The bytes of a string that has no escapes.
    pub fn plain(self) -> Option<&'a [u8]> {
        let node = self.node();
        (node.kind == ValueKind::Plain).then(|| &self.text[node.start as usize + 1..node.end as usize - 1])
    }

    /// A string.
    pub fn as_text(self) -> Option<Cow<'a, str>> {
        if let Some(plain) = self.plain() {
            return Some(String::from_utf8_lossy(plain));
        }
        self.is_string().then(|| serde_json::from_slice(self.raw()).map(Cow::Owned).unwrap_or_default())
    }

    /// The items of a list; nothing if it is none.
    pub fn items(self) -> impl Iterator<Item = Json<'a>> {
        self.inside(ValueKind::List)
    }

    /// The keys and values of an object; nothing if it is none.
    pub fn members(self) -> impl Iterator<Item = (Json<'a>, Json<'a>)> {
        let mut inside = self.inside(ValueKind::Object);
        std::iter::from_fn(move || Some((inside.next()?, inside.next()?)))
    }

    /// The value of an object's key.
    pub fn member(self, key: &str) -> Option<Json<'a>> {
        self.members().find(|(own, _)| own.plain() == Some(key.as_bytes())).map(|(_, value)| value)
    }

    fn inside(self, kind: ValueKind) -> impl Iterator<Item = Json<'a>> {
        let node = self.node();
        let end = if node.kind == kind { node.next } else { 0 };
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            let here = self.other(at);
            (at < end).then(|| {
                at = here.node().next;
                here
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    /// The tree of an outlined value.
    fn tree(json: Json) -> Value {
        if json.is_object() {
            let entries =
                json.members().map(|(key, value)| (key.as_text().unwrap().into_owned(), tree(value)));
            return Value::Object(entries.collect::<Map<_, _>>());
        }
        if json.is_list() {
            return json.items().map(tree).collect();
        }
        match (json.as_text(), json.as_bool(), json.as_number::<i64>(), json.as_number::<f64>()) {
            (Some(text), ..) => Value::from(text),
            (_, Some(boolean), ..) => Value::from(boolean),
            (_, _, Some(number), _) => Value::from(number),
            (.., Some(number)) => Value::from(number),
            _ if json.is_null() => Value::Null,
            _ => panic!("what is {:?}", std::str::from_utf8(json.raw())),
        }
    }

    #[test]
    fn every_value_is_found() {
        let values = [
            json!({"a": {"b": [1, -2, [3.5, {}], "x\"y\\", "\u{1f600}\n", true, false, null]}, "c": "", "d": []}),
            json!([[], [[]], {"": {}}]),
            json!("text"),
            json!(7),
        ];
        let mut outline = Outline::default();
        for value in values {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let json = outline.read(text.as_bytes()).unwrap();
                assert_eq!(tree(json), value);
                assert_eq!(json.raw(), text.as_bytes());
            }
        }
    }

    #[test]
    fn one_member_is_found_by_its_key() {
        let mut outline = Outline::default();
        let json = outline.read(br#"{"a":{"metadata":1},"metadata":{"name":"n"},"b":2}"#).unwrap();
        assert_eq!(json.member("metadata").map(Json::raw), Some(br#"{"name":"n"}"#.as_slice()));
        assert!(json.member("c").is_none());
    }

    #[test]
    fn malformed_texts_are_refused() {
        let deep = "[".repeat(300);
        for text in ["", "{", "}", "[}", "{]", "{}{}", "\"", "\"\\", "\"\\\"", "1 2", "?", "[\u{e9}]", &deep]
        {
            assert_eq!(Outline::default().read(text.as_bytes()).err(), Some(Unreadable), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[\\[\\]{}\",:\\\\0-9a-z -]{0,60}") {
            if let Ok(json) = Outline::default().read(text.as_bytes()) {
                json.members().for_each(|(key, value)| drop((key.as_text(), value.raw())));
                json.items().for_each(|item| drop((item.as_number::<i64>(), item.as_text())));
            }
        }
    }
}
