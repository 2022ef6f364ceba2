//! One line of a watch: what stands at its front is found without reading all of it, and every view of it is made once.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::Error;
use crate::watch::ObjectKey;

type View = Arc<dyn Any + Send + Sync>;

/// The bytes of an event, for all who listen to its watch.
pub struct Line<'a> {
    bytes: &'a [u8],
    views: RefCell<Vec<(TypeId, View)>>,
}

impl<'a> Line<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, views: RefCell::default() }
    }

    /// The object of the event, for one alone.
    ///
    /// # Errors
    /// When it does not fit `T`.
    pub fn parse<T: Deserialize<'a>>(&self) -> Result<T, Error> {
        Ok(serde_json::from_slice::<Envelope<T>>(self.bytes)?.object)
    }

    /// The object of the event. Those who see it in the same way share what is read.
    ///
    /// # Errors
    /// When it does not fit `T`.
    pub fn read<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<Arc<T>, Error> {
        let mut views = self.views.borrow_mut();
        let known = views.iter().find(|(of, _)| *of == TypeId::of::<T>());
        if let Some(view) = known.and_then(|(_, view)| Arc::clone(view).downcast().ok()) {
            return Ok(view);
        }
        let view = Arc::new(self.parse::<T>()?);
        views.push((TypeId::of::<T>(), Arc::clone(&view) as View));
        Ok(view)
    }
}

impl fmt::Debug for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.bytes))
    }
}

#[derive(Deserialize)]
struct Envelope<T> {
    object: T,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Name {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

/// What a watch itself has to know of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub name: Name,
    pub key: ObjectKey,
    /// Empty for an error.
    pub revision: String,
}

impl Head {
    /// Reads up to the end of the metadata, which servers write early.
    pub fn of(line: &[u8]) -> Result<Self, Error> {
        let mut found = Found::default();
        let read = InLine(&mut found).deserialize(&mut serde_json::Deserializer::from_slice(line));
        match (found, read) {
            (Found { name: Some(name), metadata: Some(metadata) }, _) => {
                let key = ObjectKey { namespace: metadata.namespace, name: metadata.name };
                Ok(Self { name, key, revision: metadata.resource_version })
            }
            (_, Err(error)) => Err(error.into()),
            (_, Ok(())) => Err(Error::other("a line of a watch has no type, or no object with metadata")),
        }
    }
}

#[derive(Default)]
struct Found {
    name: Option<Name>,
    metadata: Option<HeadMetadata>,
}

impl Found {
    /// An error ends the reading: nothing else stops a deserializer in the middle.
    fn is_enough<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.name.is_some() && self.metadata.is_some() { Err(E::custom("enough")) } else { Ok(()) }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeadMetadata {
    name: String,
    namespace: String,
    resource_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum LineField {
    Type,
    Object,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ObjectField {
    Metadata,
    #[serde(other)]
    Other,
}

struct InLine<'a>(&'a mut Found);

impl<'de> DeserializeSeed<'de> for InLine<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for InLine<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event of a watch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key()? {
            match field {
                LineField::Type => self.0.name = Some(map.next_value()?),
                LineField::Object => map.next_value_seed(InObject(self.0))?,
                LineField::Other => drop(map.next_value::<IgnoredAny>()?),
            }
            self.0.is_enough()?;
        }
        Ok(())
    }
}

struct InObject<'a>(&'a mut Found);

impl<'de> DeserializeSeed<'de> for InObject<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for InObject<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key()? {
            match field {
                ObjectField::Metadata => self.0.metadata = Some(map.next_value()?),
                ObjectField::Other => drop(map.next_value::<IgnoredAny>()?),
            }
            self.0.is_enough()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_is_found_wherever_it_is_and_nothing_behind_it_is_read() {
        let head = |name, namespace: &str| {
            let key = ObjectKey::new(namespace, "a");
            Head { name, key, revision: "7".to_owned() }
        };
        let metadata = r#""metadata":{"name":"a","namespace":"n","resourceVersion":"7","labels":{"x":"y"}}"#;
        for (line, expected) in [
            (format!(r#"{{"type":"ADDED","object":{{"kind":"K",{metadata},cut"#), head(Name::Added, "n")),
            (
                format!(r#"{{"object":{{"spec":[{{}}],{metadata}}},"x":1,"type":"DELETED"cut"#),
                head(Name::Deleted, "n"),
            ),
            (
                r#"{"type":"BOOKMARK","object":{"metadata":{"name":"a","resourceVersion":"7"}}}"#.to_owned(),
                head(Name::Bookmark, ""),
            ),
        ] {
            assert_eq!(Head::of(line.as_bytes()).unwrap(), expected, "{line}");
        }
        for line in ["", "{}", "[]", r#"{"type":"ADDED"}"#, r#"{"type":"ADDED","object":{"metadata":{"na"#] {
            assert!(Head::of(line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn those_who_see_an_object_in_the_same_way_share_it() {
        let line = Line::new(br#"{"type":"ADDED","object":{"a":1}}"#);
        let first: Arc<serde_json::Value> = line.read().unwrap();
        assert!(Arc::ptr_eq(&first, &line.read().unwrap()));
        assert!(line.read::<String>().is_err());
        assert_eq!(line.read::<std::collections::BTreeMap<String, i32>>().unwrap()["a"], 1);
    }
}
