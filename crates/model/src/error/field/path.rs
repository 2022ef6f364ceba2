//! The path of a field in an object, formatted only when an error needs it.

use std::fmt;

/// A path in an object, as a list from the inside out: it costs nothing until it is formatted.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    segment: Segment<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Segment<'a> {
    /// One field, or several with dots between them.
    Field(&'a str),
    /// A key of a map, in brackets.
    Key(&'a str),
    Index(usize),
    /// An item of the list in a field.
    Item(&'a str, usize),
}

impl Path<'static> {
    /// The object itself.
    pub const OBJECT: Self = Self::root("");
    /// The field `metadata` of an object.
    pub const METADATA: Self = Self::root("metadata");
    /// The field `spec` of an object.
    pub const SPEC: Self = Self::root("spec");
    /// The field `status` of an object.
    pub const STATUS: Self = Self::root("status");
}

impl<'a> Path<'a> {
    /// A path whose text is known.
    pub const fn root(text: &'a str) -> Self {
        Self { parent: None, segment: Segment::Field(text) }
    }

    /// A field below this path, or a nested one: `a.b`.
    pub const fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), segment: Segment::Field(name) }
    }

    /// A key of the map at this path.
    pub const fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), segment: Segment::Key(key) }
    }

    /// An item of the list here.
    pub const fn at(&'a self, index: usize) -> Self {
        Self { parent: Some(self), segment: Segment::Index(index) }
    }

    /// An item of the list in a field.
    pub const fn item(&'a self, list: &'a str, index: usize) -> Self {
        Self { parent: Some(self), segment: Segment::Item(list, index) }
    }

    /// Its text; for the object itself the text that Go writes for no path.
    pub fn shown(&self) -> String {
        if self.is_object() { "<nil>".to_owned() } else { self.to_string() }
    }

    /// Whether this is the object itself.
    pub const fn is_object(&self) -> bool {
        self.parent.is_none() && matches!(self.segment, Segment::Field(text) if text.is_empty())
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        let dot = if self.parent.is_none_or(Path::is_object) { "" } else { "." };
        match self.segment {
            Segment::Field(name) => write!(f, "{dot}{name}"),
            Segment::Key(key) => write!(f, "[{key}]"),
            Segment::Index(index) => write!(f, "[{index}]"),
            Segment::Item(list, index) => write!(f, "{dot}{list}[{index}]"),
        }
    }
}

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> Self {
        path.to_string()
    }
}

impl From<&Path<'_>> for String {
    fn from(path: &Path<'_>) -> Self {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_written_from_the_object_inwards() {
        let spec = Path::SPEC;
        let (containers, labels) = (spec.field("containers"), Path::METADATA.field("labels"));
        let (first, port) = (containers.at(0), spec.item("containers", 1));
        for (path, text) in [
            (Path::OBJECT, ""),
            (Path::OBJECT.field("spec"), "spec"),
            (Path::OBJECT.field("spec.nodeName"), "spec.nodeName"),
            (Path::OBJECT.item("ports", 2), "ports[2]"),
            (Path::OBJECT.key("a"), "[a]"),
            (Path::OBJECT.at(3), "[3]"),
            (spec, "spec"),
            (containers, "spec.containers"),
            (first.field("name"), "spec.containers[0].name"),
            (port.item("ports", 1), "spec.containers[1].ports[1]"),
            (spec.field("template.spec"), "spec.template.spec"),
            (labels.key("a.b/c"), "metadata.labels[a.b/c]"),
            (Path::root("spec.rules[7]").field("host"), "spec.rules[7].host"),
            (spec.field(""), "spec."),
        ] {
            assert_eq!(path.to_string(), text);
            assert_eq!(String::from(path), text);
            assert_eq!(path.shown(), if text.is_empty() { "<nil>" } else { text });
            assert_eq!(path.is_object(), text.is_empty());
        }
    }
}
