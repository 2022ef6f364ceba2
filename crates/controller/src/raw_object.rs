//! An object as an informer received it: its key is found without parsing all of it, and every view of it is parsed once.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::{Error, ObjectKey};

type View = Arc<dyn Any + Send + Sync>;

/// The bytes of an object, shared by all handlers of an informer.
pub struct RawObject<'a> {
    form: Form<'a>,
    views: RefCell<Vec<(TypeId, View)>>,
}

#[derive(Clone, Copy)]
enum Form<'a> {
    /// A line of a watch, which has the object in its field `object`.
    Event(&'a [u8]),
    /// An item of a list. Servers leave out its `kind` and `apiVersion`.
    Item(&'a [u8]),
}

impl<'a> RawObject<'a> {
    pub(crate) fn of_event(line: &'a [u8]) -> Self {
        Self { form: Form::Event(line), views: RefCell::default() }
    }

    pub(crate) fn of_item(item: &'a [u8]) -> Self {
        Self { form: Form::Item(item), views: RefCell::default() }
    }

    /// Parses the object for one handler alone.
    ///
    /// # Errors
    /// When it does not fit `T`.
    pub fn parse<T: Deserialize<'a>>(&self) -> Result<T, Error> {
        Ok(match self.form {
            Form::Event(line) => serde_json::from_slice::<Envelope<T>>(line)?.object,
            Form::Item(item) => serde_json::from_slice(item)?,
        })
    }

    /// The object as a view of it. Handlers with the same view share one parsed value.
    ///
    /// # Errors
    /// When it does not fit `T`.
    pub fn view<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<Arc<T>, Error> {
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

impl fmt::Debug for RawObject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The object may be a Secret.
        let (Form::Event(bytes) | Form::Item(bytes)) = self.form;
        write!(f, "RawObject({} bytes)", bytes.len())
    }
}

#[derive(Deserialize)]
struct Envelope<T> {
    object: T,
}

/// The type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

/// The part of a watch event that the informer itself needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub event: EventType,
    pub key: ObjectKey,
    /// Empty for an error.
    pub resource_version: String,
}

impl Head {
    /// Parses a line up to the end of the metadata, which servers write early.
    pub fn of(line: &[u8]) -> Result<Self, Error> {
        let mut found = Found::default();
        let read = InEvent(&mut found).deserialize(&mut serde_json::Deserializer::from_slice(line));
        match (found, read) {
            (Found { event: Some(event), metadata: Some(metadata), .. }, _) => {
                let key = ObjectKey { namespace: metadata.namespace, name: metadata.name };
                Ok(Self { event, key, resource_version: metadata.resource_version })
            }
            (_, Err(error)) => Err(error.into()),
            (_, Ok(())) => Err(Error::other("a watch event has no type, or no object with metadata")),
        }
    }
}

/// The key of an item of a list, parsed up to the end of the metadata.
pub(crate) fn key_of_item(item: &[u8]) -> Result<ObjectKey, Error> {
    let mut found = Found { is_item: true, ..Found::default() };
    let read = InObject(&mut found).deserialize(&mut serde_json::Deserializer::from_slice(item));
    match (found.metadata, read) {
        (Some(metadata), _) => Ok(ObjectKey { namespace: metadata.namespace, name: metadata.name }),
        (None, Err(error)) => Err(error.into()),
        (None, Ok(())) => Err(Error::other("an item of a list has no metadata")),
    }
}

#[derive(Default)]
struct Found {
    event: Option<EventType>,
    metadata: Option<HeadMetadata>,
    /// There is no event around the object.
    is_item: bool,
}

impl Found {
    /// An error ends the parsing: nothing else stops a deserializer in the middle.
    fn is_enough<E: serde::de::Error>(&self) -> Result<(), E> {
        let has_event = self.is_item || self.event.is_some();
        if has_event && self.metadata.is_some() { Err(E::custom("enough")) } else { Ok(()) }
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
enum EventField {
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

struct InEvent<'a>(&'a mut Found);

impl<'de> DeserializeSeed<'de> for InEvent<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for InEvent<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event of a watch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key()? {
            match field {
                EventField::Type => self.0.event = Some(map.next_value()?),
                EventField::Object => map.next_value_seed(InObject(self.0))?,
                EventField::Other => drop(map.next_value::<IgnoredAny>()?),
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
    fn the_head_is_found_wherever_it_is_and_parsing_ends_there() {
        let head = |event, namespace: &str| {
            let key = ObjectKey::new(namespace, "a");
            Head { event, key, resource_version: "7".to_owned() }
        };
        let metadata = r#""metadata":{"name":"a","namespace":"n","resourceVersion":"7","labels":{"x":"y"}}"#;
        for (line, expected) in [
            (
                format!(r#"{{"type":"ADDED","object":{{"kind":"K",{metadata},cut"#),
                head(EventType::Added, "n"),
            ),
            (
                format!(r#"{{"object":{{"spec":[{{}}],{metadata}}},"x":1,"type":"DELETED"cut"#),
                head(EventType::Deleted, "n"),
            ),
            (
                r#"{"type":"BOOKMARK","object":{"metadata":{"name":"a","resourceVersion":"7"}}}"#.to_owned(),
                head(EventType::Bookmark, ""),
            ),
        ] {
            assert_eq!(Head::of(line.as_bytes()).unwrap(), expected, "{line}");
        }
        for line in ["", "{}", "[]", r#"{"type":"ADDED"}"#, r#"{"type":"ADDED","object":{"metadata":{"na"#] {
            assert!(Head::of(line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn handlers_with_the_same_view_share_one_parsed_value() {
        let raw = RawObject::of_event(br#"{"type":"ADDED","object":{"a":1}}"#);
        let first: Arc<serde_json::Value> = raw.view().unwrap();
        assert!(Arc::ptr_eq(&first, &raw.view().unwrap()));
        assert!(raw.view::<String>().is_err());
        assert_eq!(raw.view::<std::collections::BTreeMap<String, i32>>().unwrap()["a"], 1);
    }

    #[test]
    fn an_item_of_a_list_is_the_object_itself() {
        let item = br#"{"spec":{"a":[]},"metadata":{"name":"a","namespace":"n"},"cut"#;
        assert_eq!(key_of_item(item).unwrap(), ObjectKey::new("n", "a"));
        assert!(key_of_item(b"{}").is_err());
        let raw = RawObject::of_item(br#"{"a":1}"#);
        assert_eq!(raw.view::<std::collections::BTreeMap<String, i32>>().unwrap()["a"], 1);
    }
}
