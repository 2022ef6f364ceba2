//! Reads the text form of the table; its notation is described at the head of the file in `schema/`.
//!
//! One pass: a reference to a type that comes later gets the number that the type will have. List kinds are not in the
//! file, because all of them look alike; each kind with object metadata brings its own.

use std::collections::HashMap;

use super::types::{Field, ListKind, Name, Or, Patch, Schema, Shape, Tags, Type, TypeId};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// A line that is not in the notation, or a reference to a type that is not in the table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TableError {
    /// Counted from one; zero where no single line is to blame.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// Reads a table.
pub fn parse(text: &'static str) -> Result<Schema, TableError> {
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(text.lines()) {
        reader.line(line).map_err(|problem| TableError { line: number, problem })?;
    }
    reader.finish().map_err(|problem| TableError { line: 0, problem })
}

/// A type's name as its alias and name.
type Key = (&'static str, &'static str);

#[derive(Default)]
struct Reader {
    packages: HashMap<&'static str, &'static str>,
    alias: &'static str,
    ids: HashMap<Key, TypeId>,
    types: Vec<Option<Type>>,
    open: Option<Open>,
}

/// The type whose fields are being read.
struct Open {
    id: TypeId,
    name: &'static str,
    kind: Option<&'static str>,
    atomic: bool,
    single: bool,
    embedded: Vec<(Tags, &'static str)>,
    fields: Vec<Field>,
}

impl Reader {
    fn line(&mut self, line: &'static str) -> Result<(), String> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(embedded) = line.strip_prefix(" +") {
            let (name, tags) = embedded.split_once(" #").ok_or("an embedded struct needs a tag")?;
            let tags = parse_tags(tags)?;
            self.open()?.embedded.push((tags, name));
            return Ok(());
        }
        if let Some(field) = line.strip_prefix(' ') {
            let field = self.field(field)?;
            self.open()?.fields.push(field);
            return Ok(());
        }
        self.close()?;
        if let Some(package) = line.strip_prefix("package ") {
            let (alias, prefix) = package.split_once(' ').ok_or("a package needs an alias and a prefix")?;
            self.packages.insert(alias, prefix);
            self.alias = alias;
            return Ok(());
        }
        self.header(line)
    }

    fn header(&mut self, line: &'static str) -> Result<(), String> {
        let mut words = line.split(' ');
        let name = words.next().ok_or("a type needs a name")?;
        let id = self.id((self.alias, name));
        let mut open = Open {
            id,
            name,
            kind: None,
            atomic: false,
            single: false,
            embedded: Vec::new(),
            fields: Vec::new(),
        };
        for word in words {
            match word {
                "atomic" => open.atomic = true,
                "single" => open.single = true,
                kind => open.kind = Some(kind),
            }
        }
        self.open = Some(open);
        Ok(())
    }

    fn open(&mut self) -> Result<&mut Open, String> {
        self.open.as_mut().ok_or_else(|| "no type to belong to".to_owned())
    }

    /// The number of a type, which may not have been read yet.
    fn id(&mut self, key: Key) -> TypeId {
        *self.ids.entry(key).or_insert_with(|| {
            self.types.push(None);
            TypeId(u32::try_from(self.types.len() - 1).expect("far fewer types than 2^32"))
        })
    }

    fn field(&mut self, line: &'static str) -> Result<Field, String> {
        let mut words = line.split(' ');
        let (name, marks) = split_marks(words.next().unwrap_or_default());
        let shape = self.shape(words.next().ok_or("a field needs a shape")?)?;
        let mut field = Field {
            name: name.into(),
            embedded: Name::default(),
            shape,
            go: None,
            required: marks.contains('!'),
            written: marks.contains(['!', '+']) && !marks.contains('-'),
            omitted: marks.contains('-'),
            pointer: marks.contains('?'),
            list: None,
            patch: None,
            default: None,
            tags: Tags::default(),
        };
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

    fn shape(&mut self, text: &'static str) -> Result<Shape, String> {
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

    fn reference(&mut self, text: &'static str) -> Result<TypeId, String> {
        let (alias, name) = text.rsplit_once('.').unwrap_or((self.alias, text));
        if !name.starts_with(|c: char| c.is_ascii_uppercase()) {
            return Err(format!("{text:?} is not a shape"));
        }
        Ok(self.id((alias, name)))
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        for field in &mut open.fields {
            if field.tags.path().len() > 1 {
                field.embedded = embedded_name(&open.embedded, field.tags.path())?.into();
            }
        }
        if open.kind.is_some() {
            open.fields.extend(type_meta());
        }
        let package = *self.packages.get(self.alias).ok_or("a type outside of any package")?;
        let mut built = Type::new(package.into(), open.name.into(), open.fields);
        built.atomic = open.atomic;
        built.single = open.single;
        built.everywhere = open.kind == Some("*");
        if let Some(kind) = open.kind.filter(|kind| *kind != "*") {
            let (group, version) = kind.split_once('/').unwrap_or(("", kind));
            built.group_version = Some((group.into(), version.into()));
        }
        if self.types[open.id.0 as usize].replace(built).is_some() {
            return Err(format!("{} is there twice", open.name));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Schema, String> {
        self.close()?;
        let missing = self.ids.iter().find(|(_, id)| self.types[id.0 as usize].is_none());
        if let Some(((alias, name), _)) = missing {
            return Err(format!("{alias}.{name} is referred to, but not there"));
        }
        let mut types: Vec<Type> = self.types.into_iter().flatten().collect();
        let find = |name: &str| types.iter().position(|t| t.package == META && t.name == name);
        let id = |at: usize| TypeId(u32::try_from(at).expect("far fewer types than 2^32"));
        if let (Some(object_meta), Some(list_meta)) = (find("ObjectMeta").map(id), find("ListMeta").map(id)) {
            let is_kind = |t: &Type| {
                t.group_version.is_some()
                    && !t.single
                    && t.field("metadata").is_some_and(|f| f.shape == Shape::Object(object_meta))
            };
            let lists: Vec<Type> = (0..types.len())
                .filter(|at| is_kind(&types[*at]))
                .map(|at| list_of(&types[at], id(at), list_meta))
                .collect();
            types.extend(lists);
        }
        Ok(Schema::new(types))
    }
}

/// Where JSON and OpenAPI have the group, version and kind; protobuf has them in the envelope.
fn type_meta() -> [Field; 2] {
    let text = || Shape::String { go: "string".into(), values: Box::default() };
    [plain("apiVersion", text(), None), plain("kind", text(), None)]
}

fn list_of(item: &Type, id: TypeId, list_meta: TypeId) -> Type {
    let [api_version, kind] = type_meta();
    let mut items = plain("items", Shape::List(Box::new(Shape::Object(id))), Some(2));
    (items.required, items.written) = (true, true);
    let fields = vec![api_version, items, kind, plain("metadata", Shape::Object(list_meta), Some(1))];
    let mut list = Type::new(item.package.clone(), format!("{}List", item.name).into(), fields);
    list.group_version = item.group_version.clone();
    list
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
