//! Parses a schema node by node: the JSON tree of a whole schema would be many times its text. The schema may be
//! invalid: properties of the wrong type are ignored.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::compile;
use super::node::{Node, Values};

/// The raw properties of one schema node.
#[derive(Default)]
pub(super) struct RawNode {
    /// The properties other than nested schemas.
    pub rest: Map<String, Value>,
    pub fields: Vec<(Box<str>, Node)>,
    pub values: Values,
    pub items: Option<Node>,
    pub all_of: Vec<Node>,
    pub any_of: Vec<Node>,
    pub one_of: Vec<Node>,
    pub not: Option<Node>,
}

impl RawNode {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "properties" => self.fields = map.next_value::<Fields>()?.0,
            "additionalProperties" => {
                self.values = match map.next_value()? {
                    SchemaOrFlag::Schema(node) => Values::Of(node),
                    SchemaOrFlag::Flag(true) => Values::Any,
                    SchemaOrFlag::Flag(false) => Values::Forbidden,
                    SchemaOrFlag::Other => Values::Closed,
                }
            }
            "items" => self.items = map.next_value::<SchemaOrFlag>()?.node(),
            "not" => self.not = map.next_value::<SchemaOrFlag>()?.node(),
            "allOf" => self.all_of = map.next_value::<Nodes>()?.0,
            "anyOf" => self.any_of = map.next_value::<Nodes>()?.0,
            "oneOf" => self.one_of = map.next_value::<Nodes>()?.0,
            "description" | "title" | "example" | "externalDocs" => {
                map.next_value::<IgnoredAny>()?;
            }
            _ => {
                self.rest.insert(key.to_owned(), map.next_value()?);
            }
        }
        Ok(())
    }
}

/// The JSON at a place that allows a schema or a boolean.
pub(super) enum SchemaOrFlag {
    Schema(Box<Node>),
    Flag(bool),
    Other,
}

impl SchemaOrFlag {
    /// The schema, if it is one.
    pub fn node(self) -> Option<Node> {
        match self {
            Self::Schema(node) => Some(*node),
            Self::Flag(_) | Self::Other => None,
        }
    }
}

/// The fields of an object.
struct Fields(Vec<(Box<str>, Node)>);

/// A list of schemas.
struct Nodes(Vec<Node>);

/// A type that can be deserialized from any JSON.
trait Lenient: Sized {
    /// The value for JSON of another type.
    fn other() -> Self;

    fn flag(_value: bool) -> Self {
        Self::other()
    }

    fn of_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::other())
    }

    fn of_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::other())
    }
}

impl Lenient for SchemaOrFlag {
    fn other() -> Self {
        Self::Other
    }

    fn flag(value: bool) -> Self {
        Self::Flag(value)
    }

    fn of_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut place = RawNode::default();
        while let Some(key) = map.next_key::<String>()? {
            place.take(&key, &mut map)?;
        }
        Ok(Self::Schema(Box::new(compile::node(place))))
    }
}

impl Lenient for Fields {
    fn other() -> Self {
        Self(Vec::new())
    }

    fn of_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut fields = Vec::new();
        while let Some((name, given)) = map.next_entry::<Box<str>, SchemaOrFlag>()? {
            fields.extend(given.node().map(|node| (name, node)));
        }
        Ok(Self(fields))
    }
}

impl Lenient for Nodes {
    fn other() -> Self {
        Self(Vec::new())
    }

    fn of_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut nodes = Vec::new();
        while let Some(given) = list.next_element::<SchemaOrFlag>()? {
            nodes.extend(given.node());
        }
        Ok(Self(nodes))
    }
}

impl<'de> Deserialize<'de> for SchemaOrFlag {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Nodes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader(PhantomData))
    }
}

struct Reader<T>(PhantomData<T>);

impl<'de, T: Lenient> Visitor<'de> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<T, E> {
        Ok(T::flag(value))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_unit<E: Error>(self) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::of_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::of_map(map)
    }
}
