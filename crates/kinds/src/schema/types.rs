//! The table in memory: types by number, their fields by name and by protobuf tag.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::lines::{self, Source};

/// A text that is mostly a slice of the built-in table, and owned where it was made at run time.
pub type Name = Cow<'static, str>;

/// The number of a type in its [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub(super) u32);

/// An immutable set of types that refer to each other by number.
#[derive(Debug)]
pub struct Schema {
    types: Vec<Type>,
    names: Arc<Names>,
    kinds: HashMap<Kind, TypeId>,
}

/// Group, version and kind; stars where it is a kind in every group and version.
pub(super) type Kind = (&'static str, &'static str, &'static str);

/// The numbers of the types of a table.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The alias of each package, and where its OpenAPI names begin.
    pub packages: Vec<(&'static str, &'static str)>,
    /// By the alias of the package and the name of the type.
    pub ids: HashMap<(&'static str, &'static str), TypeId>,
}

/// A struct of the API.
#[derive(Debug)]
pub struct Type {
    /// Where its OpenAPI name begins: `io.k8s.api.core.v1`.
    pub package: Name,
    /// Its name in the package, which is the kind if it is one.
    pub name: Name,
    /// Group and version if it is a kind; the group of the core group is empty.
    pub group_version: Option<(Name, Name)>,
    /// Whether it is a kind in every group and version, as `DeleteOptions` is.
    pub everywhere: bool,
    /// Whether apply owns it as a whole (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// The kind that is a list of it, if there is one.
    pub list: Option<TypeId>,
    /// What is known only once somebody looks at it: no program needs most of the types.
    body: OnceLock<Body>,
    source: Source,
}

/// The fields of a type, and two orders of them.
#[derive(Debug)]
pub(super) struct Body {
    fields: Box<[Field]>,
    written: Box<[u16]>,
    wire: Wire,
}

/// A field of a [`Type`].
#[derive(Debug)]
pub struct Field {
    /// As JSON spells it.
    pub name: Name,
    /// The Go struct that embeds it and whose name error texts mention; empty for a field of the type itself.
    pub embedded: Name,
    /// What its value is.
    pub shape: Shape,
    /// The Go type that error texts mention, where it is a list or map type with a name of its own.
    pub go: Option<Name>,
    /// Whether OpenAPI lists it as required.
    pub required: bool,
    /// Whether Go writes it also when it is empty (no `omitempty`).
    pub written: bool,
    /// Whether Go omits it when it is empty although it is required or a struct.
    pub omitted: bool,
    /// Whether it is a pointer in Go, so that an empty value differs from none.
    pub pointer: bool,
    /// How apply and patches see the items of a list, or the entries of a map.
    pub list: Option<ListKind>,
    /// How a strategic merge patch treats it.
    pub patch: Option<Patch>,
    /// The default that OpenAPI publishes, as JSON.
    pub default: Option<Name>,
    pub(super) tags: Tags,
}

/// The protobuf tag of a field, after those of the structs that embed it; none if the field is not in protobuf.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tags {
    tags: [u32; Self::DEPTH_MAX],
    length: usize,
}

impl Tags {
    /// Kubernetes embeds two levels deep.
    pub const DEPTH_MAX: usize = 3;

    /// With one more tag further in; `None` if there are too many.
    pub fn then(mut self, tag: u32) -> Option<Self> {
        *self.tags.get_mut(self.length)? = tag;
        self.length += 1;
        Some(self)
    }

    /// From the outside in.
    pub fn path(&self) -> &[u32] {
        &self.tags[..self.length]
    }
}

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A string, with the Go type that error texts mention and the values that OpenAPI lists.
    String {
        /// `string` or the name of a Go type, such as `types.UID`.
        go: Name,
        /// Empty where any value will do.
        values: Box<[Name]>,
    },
    /// `true` or `false`.
    Bool,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A floating point number.
    Double,
    /// Bytes, in JSON as base64.
    Bytes,
    /// An RFC 3339 time in seconds.
    Time,
    /// An RFC 3339 time in microseconds.
    MicroTime,
    /// An amount such as `100m` or `2Gi`.
    Quantity,
    /// A 32-bit integer or a string.
    IntOrString,
    /// An object of any kind (`RawExtension`).
    Raw,
    /// A set of fields, as apply records it (`FieldsV1`).
    Fields,
    /// Any JSON value.
    Json,
    /// A struct.
    Object(TypeId),
    /// A list.
    List(Box<Shape>),
    /// A map with string keys.
    Map(Box<Shape>),
    /// A list that is a message of its own in protobuf.
    Wrapped(Box<Shape>),
    /// A struct, or something else that stands for it.
    Or(TypeId, Or),
}

/// What may stand in the place of a struct, which is a schema within a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Or {
    /// `true` or `false`.
    Bool,
    /// A list of such structs.
    List,
    /// A list of strings.
    Strings,
}

/// What identifies an item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Nothing: it is owned and replaced as a whole.
    Atomic,
    /// Its value.
    Set,
    /// The values of these fields.
    Map(Box<[Name]>),
    /// No list but a map or struct, whose entries are owned one by one even if its type is atomic.
    Granular,
}

/// The directives of a strategic merge patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// `merge`, `replace`, `retainKeys`, or two of them with a comma.
    pub strategy: Name,
    /// Which field identifies an item of a merged list of objects.
    pub key: Option<Name>,
}

/// The fields of a protobuf message, sorted by tag.
#[derive(Debug, Default)]
pub struct Wire {
    pub(super) entries: Vec<(u32, Entry)>,
}

/// What a tag stands for.
#[derive(Debug)]
pub enum Entry {
    /// The field with this index in [`Type::fields`].
    Field(u16),
    /// A message whose fields JSON has one level higher: a struct embedded in Go.
    Embedded(Wire),
}

impl Schema {
    /// Types that refer to others do so by their position in `types`.
    pub(super) fn new(types: Vec<Type>, names: Arc<Names>, kinds: HashMap<Kind, TypeId>) -> Self {
        Self { types, names, kinds }
    }

    /// The type with this number; the number must be of this schema.
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// All types.
    pub fn types(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        (0u32..).map(TypeId).zip(&self.types)
    }

    /// The type with this OpenAPI name, such as `io.k8s.api.core.v1.ConfigMap`.
    pub fn by_name(&self, name: &str) -> Option<TypeId> {
        let (package, name) = name.rsplit_once('.')?;
        let (alias, _) = self.names.packages.iter().find(|(_, prefix)| *prefix == package)?;
        self.or_list(name, |name| self.names.ids.get(&(*alias, name)).copied())
    }

    /// The type of a kind; kinds that exist everywhere are found in any group and version.
    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<TypeId> {
        let own = self.or_list(kind, |kind| self.kinds.get(&(group, version, kind)).copied());
        own.or_else(|| self.kinds.get(&("*", "*", kind)).copied())
    }

    /// What is found by a name, or the list of what is found by the name without its ending.
    fn or_list(&self, name: &str, find: impl Fn(&str) -> Option<TypeId>) -> Option<TypeId> {
        find(name).or_else(|| self.get(find(name.strip_suffix("List")?)?).list)
    }
}

impl Body {
    pub(super) fn new(mut fields: Vec<Field>) -> Self {
        if !fields.is_sorted_by(|a, b| a.name < b.name) {
            fields.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let mut wire = Wire { entries: Vec::with_capacity(fields.len()) };
        let mut written = Vec::new();
        for (index, field) in (0u16..).zip(&fields) {
            wire.insert(field.tags.path(), index);
            if field.always_written() {
                written.push(index);
            }
        }
        Self { fields: fields.into(), written: written.into(), wire }
    }
}

impl Type {
    /// A type whose fields come from a source.
    pub(super) fn new(package: Name, name: Name, source: Source) -> Self {
        Self {
            package,
            name,
            group_version: None,
            everywhere: false,
            atomic: false,
            list: None,
            body: OnceLock::new(),
            source,
        }
    }

    fn body(&self) -> &Body {
        self.body.get_or_init(|| {
            lines::read(&self.source)
                .expect("`parse` has read every line, and so has a test of the built-in table")
        })
    }

    /// Reads its fields.
    pub(super) fn load(&self) -> Result<(), lines::TableError> {
        let body = lines::read(&self.source)?;
        self.body.get_or_init(|| body);
        Ok(())
    }

    /// The OpenAPI name.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.package, self.name)
    }

    /// The name that Go's error texts have for it: the last segment of the package and the name.
    pub fn go_name(&self) -> String {
        let package = self.package.rsplit('.').next().unwrap_or_default();
        format!("{package}.{}", self.name)
    }

    /// Its fields, sorted by name.
    pub fn fields(&self) -> &[Field] {
        &self.body().fields
    }

    /// The field with this JSON name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let fields = self.fields();
        let at = fields.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        Some(&fields[at])
    }

    /// The fields that are there in every object that Go writes.
    pub fn written(&self) -> impl Iterator<Item = &Field> {
        let body = self.body();
        body.written.iter().map(|index| &body.fields[usize::from(*index)])
    }

    /// Its protobuf message.
    pub fn wire(&self) -> &Wire {
        &self.body().wire
    }
}

impl Field {
    /// Its tag in protobuf, after those of the structs that embed it; nothing if it is not in protobuf.
    pub fn tags(&self) -> &[u32] {
        self.tags.path()
    }

    /// Whether the field is there in every object that Go writes: Go omits no struct, whatever its tag says.
    pub fn always_written(&self) -> bool {
        let is_struct = !matches!(
            self.shape,
            Shape::String { .. }
                | Shape::Bool
                | Shape::Int32
                | Shape::Int64
                | Shape::Double
                | Shape::Bytes
                | Shape::List(_)
                | Shape::Map(_)
                | Shape::Wrapped(_)
        );
        self.written || (is_struct && !self.pointer && !self.omitted)
    }
}

impl Wire {
    /// What a tag stands for, if the message has it.
    pub fn get(&self, tag: u32) -> Option<&Entry> {
        // Most messages have all tags from one on.
        let expected = self.entries.get((tag as usize).wrapping_sub(1)).filter(|entry| entry.0 == tag);
        let search = || self.entries.binary_search_by_key(&tag, |entry| entry.0).ok();
        expected.or_else(|| search().map(|at| &self.entries[at])).map(|entry| &entry.1)
    }

    /// All tags in order.
    pub fn entries(&self) -> &[(u32, Entry)] {
        &self.entries
    }

    fn insert(&mut self, tags: &[u32], index: u16) {
        let Some((&tag, rest)) = tags.split_first() else { return };
        let found = self.entries.binary_search_by_key(&tag, |entry| entry.0);
        let at = found.unwrap_or_else(|at| at);
        if rest.is_empty() {
            self.entries.insert(at, (tag, Entry::Field(index)));
            return;
        }
        if found.is_err() {
            self.entries.insert(at, (tag, Entry::Embedded(Self::default())));
        }
        if let Entry::Embedded(inner) = &mut self.entries[at].1 {
            inner.insert(rest, index);
        }
    }
}
