//! The table in memory: types by ID, their fields by name and by protobuf tag.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::lines::{self, Source};

/// A text that is usually a slice of the built-in table, and owned if created at run time.
pub type Name = Cow<'static, str>;

/// The index of a type in its [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub(super) u32);

/// An immutable set of types that refer to each other by ID.
#[derive(Debug)]
pub struct Schema {
    types: Vec<Type>,
    names: Arc<Names>,
    kinds: HashMap<GroupVersionKind, TypeId>,
}

/// Group, version and kind; `*` for a kind of every group and version.
pub(super) type GroupVersionKind = (&'static str, &'static str, &'static str);

/// The IDs of the types of a table.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The alias and the OpenAPI prefix of each package.
    pub packages: Vec<(&'static str, &'static str)>,
    /// By package alias and type name.
    pub ids: HashMap<(&'static str, &'static str), TypeId>,
}

/// A struct of the API.
#[derive(Debug)]
pub struct Type {
    /// The prefix of its OpenAPI name: `io.k8s.api.core.v1`.
    pub package: Name,
    /// Its name in the package, which is the kind if it is one.
    pub name: Name,
    /// Group and version if it is a kind; the core group is empty.
    pub group_version: Option<(Name, Name)>,
    /// Whether it is a kind in every group and version, as `DeleteOptions` is.
    pub everywhere: bool,
    /// Whether apply treats it as atomic (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// Its list kind, if there is one.
    pub list: Option<TypeId>,
    /// Its fields, parsed on first use: no program needs most of the types.
    body: OnceLock<Body>,
    source: Source,
}

/// The fields of a type, in two orders.
#[derive(Debug)]
pub(super) struct Body {
    fields: Box<[Field]>,
    written: Box<[u16]>,
    wire: Wire,
}

/// A field of a [`Type`].
#[derive(Debug)]
pub struct Field {
    /// The name in JSON.
    pub name: Name,
    /// The embedded Go struct that error messages name; empty for a field of the type itself.
    pub embedded: Name,
    /// The shape of its value.
    pub shape: Shape,
    /// The Go type that error messages name, if it is a named list or map type.
    pub go: Option<Name>,
    /// Whether OpenAPI lists it as required.
    pub required: bool,
    /// Whether Go encodes it even if it is empty (no `omitempty`).
    pub written: bool,
    /// Whether Go omits it if it is empty although it is required or a struct.
    pub omitted: bool,
    /// Whether it is a pointer in Go: an empty value differs from nil.
    pub pointer: bool,
    /// The merge semantics of a list or map for apply.
    pub list: Option<ListKind>,
    /// The directives for a strategic merge patch.
    pub patch: Option<Patch>,
    /// The default that OpenAPI publishes, as JSON.
    pub default: Option<Name>,
    pub(super) tags: Tags,
}

/// The protobuf tag of a field, after those of the structs that embed it; empty if the field is not in protobuf.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tags {
    tags: [u32; Self::DEPTH_MAX],
    length: usize,
}

impl Tags {
    /// The deepest embedding; Kubernetes has two levels.
    pub const DEPTH_MAX: usize = 3;

    /// Adds an inner tag; `None` if there are too many.
    pub fn then(mut self, tag: u32) -> Option<Self> {
        *self.tags.get_mut(self.length)? = tag;
        self.length += 1;
        Some(self)
    }

    /// From the outermost struct to the field.
    pub fn path(&self) -> &[u32] {
        &self.tags[..self.length]
    }
}

/// The shape of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A string, with the Go type that error messages name and the enum values of OpenAPI.
    String {
        /// `string` or the name of a Go type, such as `types.UID`.
        go: Name,
        /// Empty if any value is allowed.
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
    /// A quantity such as `100m` or `2Gi`.
    Quantity,
    /// A 32-bit integer or a string.
    IntOrString,
    /// An object of any kind (`RawExtension`).
    Raw,
    /// A field set of apply (`FieldsV1`).
    Fields,
    /// Any JSON value.
    Json,
    /// A struct.
    Object(TypeId),
    /// A list.
    List(Box<Shape>),
    /// A map with string keys.
    Map(Box<Shape>),
    /// A list that is a message in protobuf.
    Wrapped(Box<Shape>),
    /// A struct, or an alternative to it.
    Or(TypeId, Or),
}

/// The alternative to a struct, in a JSON schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Or {
    /// `true` or `false`.
    Bool,
    /// A list of such structs.
    List,
    /// A list of strings.
    Strings,
}

/// The identity of the items of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// None: the list is owned and replaced as a whole.
    Atomic,
    /// The value.
    Set,
    /// The values of these fields.
    Map(Box<[Name]>),
    /// Not a list, but a map or struct: its entries are owned one by one even if its type is atomic.
    Granular,
}

/// The directives of a strategic merge patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// `merge`, `replace`, `retainKeys`, or two of them separated by a comma.
    pub strategy: Name,
    /// The merge key of a list of objects.
    pub key: Option<Name>,
}

/// The fields of a protobuf message, sorted by tag.
#[derive(Debug, Default)]
pub struct Wire {
    pub(super) entries: Vec<(u32, WireEntry)>,
}

/// The target of a tag.
#[derive(Debug)]
pub enum WireEntry {
    /// The field with this index in [`Type::fields`].
    Field(u16),
    /// A message for a struct that Go embeds: JSON has its fields one level up.
    Embedded(Wire),
}

impl Schema {
    /// References between types are positions in `types`.
    pub(super) fn new(types: Vec<Type>, names: Arc<Names>, kinds: HashMap<GroupVersionKind, TypeId>) -> Self {
        Self { types, names, kinds }
    }

    /// The type with this ID, which must be of this schema.
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

    /// The type of a kind; kinds of every group and version are found in any.
    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<TypeId> {
        let own = self.or_list(kind, |kind| self.kinds.get(&(group, version, kind)).copied());
        own.or_else(|| self.kinds.get(&("*", "*", kind)).copied())
    }

    /// The type of a name, or the list type of the name without its suffix `List`.
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
    /// A type with fields from a source.
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

    /// Parses its fields.
    pub(super) fn load(&self) -> Result<(), lines::TableError> {
        let body = lines::read(&self.source)?;
        self.body.get_or_init(|| body);
        Ok(())
    }

    /// The OpenAPI name.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.package, self.name)
    }

    /// Its name in Go's error messages: the last segment of the package and the name.
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

    /// The fields that Go always encodes.
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
    /// Its protobuf tag, after those of the structs that embed it; empty if it is not in protobuf.
    pub fn tags(&self) -> &[u32] {
        self.tags.path()
    }

    /// Whether Go always encodes the field: it omits no struct, whatever its tag.
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
    /// The target of a tag.
    pub fn get(&self, tag: u32) -> Option<&WireEntry> {
        // Most messages have consecutive tags from one on.
        let expected = self.entries.get((tag as usize).wrapping_sub(1)).filter(|entry| entry.0 == tag);
        let search = || self.entries.binary_search_by_key(&tag, |entry| entry.0).ok();
        expected.or_else(|| search().map(|at| &self.entries[at])).map(|entry| &entry.1)
    }

    /// All tags, sorted.
    pub fn entries(&self) -> &[(u32, WireEntry)] {
        &self.entries
    }

    fn insert(&mut self, tags: &[u32], index: u16) {
        let Some((&tag, rest)) = tags.split_first() else { return };
        let found = self.entries.binary_search_by_key(&tag, |entry| entry.0);
        let at = found.unwrap_or_else(|at| at);
        if rest.is_empty() {
            self.entries.insert(at, (tag, WireEntry::Field(index)));
            return;
        }
        if found.is_err() {
            self.entries.insert(at, (tag, WireEntry::Embedded(Self::default())));
        }
        if let WireEntry::Embedded(inner) = &mut self.entries[at].1 {
            inner.insert(rest, index);
        }
    }
}
