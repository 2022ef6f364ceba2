//! Parses the lines of one type: its embedded structs and its fields.

use std::sync::Arc;

use super::types::{Body, Field, ListKind, Name, Names, Or, Patch, Shape, Tags, TypeId};

/// A malformed line, or one that refers to an unknown type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TableError {
    /// Counted from one.
    pub line: usize,
    /// The error.
    pub problem: String,
}

/// The source of a type's fields.
#[derive(Debug)]
pub(super) enum Source {
    /// Lines of the table.
    Lines(Lines),
    /// The fields of every list: items of the first type, metadata of the second.
    List(TypeId, TypeId),
}

/// The lines of a type.
#[derive(Debug)]
pub(super) struct Lines {
    pub text: &'static str,
    /// The number of the first line.
    pub first: usize,
    /// The alias of the type's package.
    pub alias: &'static str,
    pub is_kind: bool,
    pub names: Arc<Names>,
}

/// Parses the fields of a type.
pub(super) fn read(source: &Source) -> Result<Body, TableError> {
    let mut fields = match source {
        Source::List(item, metadata) => list_of(*item, *metadata),
        Source::Lines(lines) => lines.fields()?,
    };
    if !matches!(source, Source::Lines(Lines { is_kind: false, .. })) {
        fields.extend(type_meta());
    }
    Ok(Body::new(fields))
}

impl Lines {
    fn fields(&self) -> Result<Vec<Field>, TableError> {
        let (mut embedded, mut fields) = (Vec::new(), Vec::new());
        for (line, text) in (self.first..).zip(self.text.lines()) {
            self.line(text, &mut embedded, &mut fields).map_err(|problem| TableError { line, problem })?;
        }
        Ok(fields)
    }

    fn line(
        &self,
        text: &'static str,
        embedded: &mut Vec<(Tags, &'static str)>,
        fields: &mut Vec<Field>,
    ) -> Result<(), String> {
        if let Some(text) = text.strip_prefix(" +") {
            let (name, tags) = text.split_once(" #").ok_or("an embedded struct needs a tag")?;
            embedded.push((parse_tags(tags)?, name));
        } else if let Some(text) = text.strip_prefix(' ') {
            let mut field = self.field(text)?;
            if field.tags().len() > 1 {
                field.embedded = embedded_name(embedded, field.tags())?.into();
            }
            fields.push(field);
        }
        Ok(())
    }

    fn field(&self, line: &'static str) -> Result<Field, String> {
        let mut words = line.split(' ');
        let (name, marks) = split_marks(words.next().unwrap_or_default());
        let shape = self.shape(words.next().ok_or("a field needs a shape")?)?;
        let mut field = plain(name, shape, None);
        field.required = marks.contains('!');
        field.written = marks.contains(['!', '+']) && !marks.contains('-');
        field.omitted = marks.contains('-');
        field.pointer = marks.contains('?');
        for word in words {
            match word.split_at_checked(1).ok_or("two spaces in a row")? {
                (":", rest) => field.go = Some(rest.into()),
                ("#", rest) => field.tags = parse_tags(rest)?,
                ("~", rest) => field.patch = Some(parse_patch(rest)),
                ("=", rest) => field.default = Some(rest.into()),
                _ => field.list = Some(parse_list(word)?),
            }
        }
        Ok(field)
    }

    fn shape(&self, text: &'static str) -> Result<Shape, String> {
        let inner =
            |open: char, close: char| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        if let Some(item) = inner('[', ']') {
            return Ok(Shape::List(Box::new(self.shape(item)?)));
        }
        if let Some(value) = inner('{', '}') {
            return Ok(Shape::Map(Box::new(self.shape(value)?)));
        }
        if let Some(item) = inner('<', '>') {
            return Ok(Shape::Wrapped(Box::new(self.shape(item)?)));
        }
        Ok(match text {
            "bool" => Shape::Bool,
            "int32" => Shape::Int32,
            "int64" => Shape::Int64,
            "double" => Shape::Double,
            "bytes" => Shape::Bytes,
            "time" => Shape::Time,
            "microtime" => Shape::MicroTime,
            "quantity" => Shape::Quantity,
            "intstr" => Shape::IntOrString,
            "raw" => Shape::Raw,
            "fields" => Shape::Fields,
            "json" => Shape::Json,
            "string" => Shape::String { go: "string".into(), values: Box::default() },
            other => match (other.strip_prefix("string:"), other.split_once('|')) {
                (Some(go), _) => parse_string(go)?,
                (None, Some((object, or))) => Shape::Or(self.reference(object)?, parse_or(object, or)?),
                (None, None) => Shape::Object(self.reference(other)?),
            },
        })
    }

    fn reference(&self, text: &'static str) -> Result<TypeId, String> {
        let (alias, name) = text.rsplit_once('.').unwrap_or((self.alias, text));
        if !name.starts_with(|c: char| c.is_ascii_uppercase()) {
            return Err(format!("{text:?} is not a shape"));
        }
        let id = self.names.ids.get(&(alias, name)).copied();
        id.ok_or_else(|| format!("{alias}.{name} is referred to, but not there"))
    }
}

/// `apiVersion` and `kind`, which JSON and OpenAPI have in the object, and protobuf in the envelope.
fn type_meta() -> [Field; 2] {
    let text = || Shape::String { go: "string".into(), values: Box::default() };
    [plain("apiVersion", text(), None), plain("kind", text(), None)]
}

fn list_of(item: TypeId, metadata: TypeId) -> Vec<Field> {
    let mut items = plain("items", Shape::List(Box::new(Shape::Object(item))), Some(2));
    (items.required, items.written) = (true, true);
    vec![items, plain("metadata", Shape::Object(metadata), Some(1))]
}

fn plain(name: &'static str, shape: Shape, tag: Option<u32>) -> Field {
    Field {
        name: name.into(),
        embedded: Name::default(),
        shape,
        go: None,
        required: false,
        written: false,
        omitted: false,
        pointer: false,
        list: None,
        patch: None,
        default: None,
        tags: tag.and_then(|tag| Tags::default().then(tag)).unwrap_or_default(),
    }
}

fn split_marks(word: &'static str) -> (&'static str, &'static str) {
    word.split_at(word.trim_end_matches(['!', '+', '-', '?']).len())
}

fn parse_tags(text: &str) -> Result<Tags, String> {
    let bad = || format!("{text:?} is not a tag");
    let mut tags = Tags::default();
    for tag in text.split('.') {
        tags = tag.parse().ok().and_then(|tag| tags.then(tag)).ok_or_else(bad)?;
    }
    Ok(tags)
}

fn parse_string(text: &'static str) -> Result<Shape, String> {
    let Some((go, values)) = text.split_once('(') else {
        return Ok(Shape::String { go: text.into(), values: Box::default() });
    };
    let values = values.strip_suffix(')').ok_or("values without an end")?;
    let value = |value: &'static str| match value.contains('_') {
        true => value.replace('_', " ").into(),
        false => Name::from(value),
    };
    Ok(Shape::String { go: go.into(), values: values.split('|').map(value).collect() })
}

fn parse_or(object: &str, text: &str) -> Result<Or, String> {
    let item = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match (text, item) {
        ("bool", _) => Ok(Or::Bool),
        (_, Some("string")) => Ok(Or::Strings),
        (_, Some(item)) if item == object => Ok(Or::List),
        _ => Err(format!("{object} cannot be {text:?} as well")),
    }
}

fn parse_list(text: &'static str) -> Result<ListKind, String> {
    match text {
        "atomic" => Ok(ListKind::Atomic),
        "granular" => Ok(ListKind::Granular),
        "set" => Ok(ListKind::Set),
        other => {
            let keys = other.strip_prefix("map(").and_then(|rest| rest.strip_suffix(')'));
            let keys = keys.ok_or_else(|| format!("{other:?} is not a kind of list"))?;
            Ok(ListKind::Map(keys.split(',').map(Name::from).collect()))
        }
    }
}

fn parse_patch(text: &'static str) -> Patch {
    let (strategy, key) = text.split_once('(').unwrap_or((text, ""));
    let key = key.strip_suffix(')').map(Name::from);
    Patch { strategy: strategy.into(), key }
}

/// The Go names of the structs between a type and a field of it, joined by dots.
fn embedded_name(embedded: &[(Tags, &'static str)], tags: &[u32]) -> Result<String, String> {
    let mut names = Vec::new();
    for length in 1..tags.len() {
        let found = embedded.iter().find(|(path, _)| path.path() == &tags[..length]);
        names.push(found.ok_or_else(|| format!("no embedded struct has the tag {:?}", &tags[..length]))?.1);
    }
    Ok(names.join("."))
}
