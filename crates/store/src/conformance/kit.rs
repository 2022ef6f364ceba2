//! Helpers of the conformance cases.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use model::selector::{Requirement, Target, Test};
use model::{Attributes, Encoded, ObjectKey, Resource, Revision, Selector, Uid};
use serde_json::{Value, json};

use super::{Factory, Fixture};
use crate::{
    Error, Event, EventKind, ListQuery, Metrics, Options, Page, Position, Precondition, Store, Watch,
    WatchScope, Write, Written,
};

/// A store on an empty database.
pub struct Kit {
    pub store: Store,
    pub fixture: Fixture,
}

impl Kit {
    pub async fn new(factory: &Factory) -> Self {
        Self::with(factory, |_| {}).await
    }

    /// A store with options that differ from those of a quiet store.
    pub async fn with(factory: &Factory, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options { compaction: None, ..Options::default() };
        change(&mut options);
        let fixture = factory().await;
        let store =
            Store::open(fixture.engine.clone(), options, &Metrics::unregistered()).await.expect("it opens");
        Self { store, fixture }
    }

    /// Writes one step that has to succeed.
    pub async fn write(&self, write: Write) -> Written {
        let mut written = self.store.write(vec![write]).await.expect("the write succeeds");
        written.remove(0)
    }

    /// Writes one step that has to fail.
    pub async fn refused(&self, write: Write) -> Error {
        self.store.write(vec![write]).await.expect_err("the write is refused")
    }

    pub async fn revision(&self) -> Revision {
        self.store.clock().await.expect("the clock is readable").current
    }

    pub async fn list(&self, query: &ListQuery) -> Page {
        self.store.list(query).await.expect("the list is readable")
    }

    /// The names of a list, `namespace/name`.
    pub async fn names(&self, query: &ListQuery) -> Vec<String> {
        names(&self.list(query).await)
    }

    /// The data of an object, as of now or of a revision.
    pub async fn data(&self, object: &Object, at: Option<Revision>) -> Option<String> {
        let stored = self.store.get(&object.key(), at).await.expect("the object is readable")?;
        assert_eq!(version_of(&stored.value), stored.revision, "the value carries its revision");
        Some(data_of(&stored.value))
    }

    pub async fn watch(&self, scope: WatchScope, from: Revision) -> Watch {
        self.store.watch(scope, from).await.expect("the watch starts")
    }
}

/// An object to write.
#[derive(Clone, Debug)]
pub struct Object {
    resource: Resource,
    namespace: String,
    name: String,
    uid: String,
    labels: Vec<(String, String)>,
    fields: Vec<(String, String)>,
    data: String,
}

/// The resource of most objects here.
pub fn configmaps() -> Resource {
    Resource::new("", "configmaps")
}

/// An object by `namespace/name`.
pub fn object(path: &str) -> Object {
    let (namespace, name) = path.split_once('/').unwrap_or(("", path));
    Object {
        resource: configmaps(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: format!("uid-of-{path}"),
        labels: Vec::new(),
        fields: Vec::new(),
        data: String::new(),
    }
}

impl Object {
    pub fn of(mut self, resource: &Resource) -> Self {
        self.resource = resource.clone();
        self
    }

    pub fn uid(mut self, uid: &str) -> Self {
        self.uid = uid.to_owned();
        self
    }

    pub fn data(mut self, data: impl Into<String>) -> Self {
        self.data = data.into();
        self
    }

    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.push((key.to_owned(), value.to_owned()));
        self
    }

    pub fn field(mut self, path: &str, value: &str) -> Self {
        self.fields.push((path.to_owned(), value.to_owned()));
        self
    }

    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.resource, &self.namespace, &self.name)
    }

    pub fn attributes(&self) -> Attributes {
        Attributes::new(self.labels.clone(), self.fields.clone())
    }

    fn body(&self) -> Encoded {
        let object = json!({
            "data": self.data,
            "metadata": {"name": self.name, "namespace": self.namespace, "uid": self.uid},
        });
        Encoded::new(object.as_object().expect("the literal is an object"))
    }

    pub fn create(&self) -> Write {
        let uid = Uid(self.uid.clone());
        Write::Create { key: self.key(), uid, attributes: self.attributes(), body: self.body() }
    }

    pub fn update(&self, expect: Precondition) -> Write {
        Write::Update { key: self.key(), expect, attributes: self.attributes(), body: self.body() }
    }

    pub fn delete(&self, expect: Precondition) -> Write {
        Write::Delete { key: self.key(), expect, attributes: self.attributes(), body: self.body() }
    }

    /// A requirement on the head, without a write.
    pub fn require(&self, expect: Precondition, requirements: Vec<Requirement>) -> Write {
        Write::Require { key: self.key(), expect, selector: Selector { requirements } }
    }

    /// An update whatever the head is.
    pub fn put(&self) -> Write {
        self.update(Precondition::default())
    }

    /// A delete whatever the head is.
    pub fn remove(&self) -> Write {
        self.delete(Precondition::default())
    }
}

/// Only a head of this revision.
pub fn at(revision: Revision) -> Precondition {
    Precondition { revision: Some(revision), uid: None }
}

/// A list of everything, in one page.
pub fn all() -> ListQuery {
    ListQuery {
        resource: configmaps(),
        namespace: None,
        selector: Selector::default(),
        at: None,
        after: None,
        limit: 100_000,
    }
}

/// A list of the objects that a selector matches.
pub fn selected(requirements: Vec<Requirement>) -> ListQuery {
    ListQuery { selector: Selector { requirements }, ..all() }
}

/// A watch of everything.
pub fn everything() -> WatchScope {
    WatchScope { resource: configmaps(), namespace: None, name: None, selector: Selector::default() }
}

/// A watch of the objects that a selector matches.
pub fn watching(requirements: Vec<Requirement>) -> WatchScope {
    WatchScope { selector: Selector { requirements }, ..everything() }
}

pub fn requirement(target: Target, key: &str, test: Test) -> Requirement {
    Requirement { target, key: key.to_owned(), test }
}

/// One of these values.
pub fn one_of(values: &[&str]) -> Test {
    Test::In(values.iter().map(|value| (*value).to_owned()).collect())
}

/// None of these values.
pub fn none_of(values: &[&str]) -> Test {
    Test::NotIn(values.iter().map(|value| (*value).to_owned()).collect())
}

/// The label has this value.
pub fn label_is(key: &str, value: &str) -> Requirement {
    requirement(Target::Label, key, one_of(&[value]))
}

pub fn names(page: &Page) -> Vec<String> {
    page.items.iter().map(|item| format!("{}/{}", item.key.namespace, item.key.name)).collect()
}

/// The position at which the next page begins.
pub fn behind(page: &Page) -> Option<Position> {
    let key = &page.items.last()?.key;
    Some(Position { namespace: key.namespace.clone(), name: key.name.clone() })
}

fn parse(value: &Bytes) -> Value {
    serde_json::from_slice(value).expect("a value is JSON")
}

pub fn data_of(value: &Bytes) -> String {
    parse(value)["data"].as_str().expect("a value has data").to_owned()
}

pub fn version_of(value: &Bytes) -> Revision {
    let object = parse(value);
    object["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .expect("a value has a version")
}

/// An event in short: kind, name, data. The value has to carry the revision of the change.
pub type EventSummary = (EventKind, String, String);

pub fn seen(event: &Event) -> EventSummary {
    assert_eq!(
        version_of(&event.value()),
        event.change.revision,
        "the value carries the revision of the event"
    );
    (event.kind, event.change.key.name.clone(), data_of(&event.value()))
}

/// The next `count` events. There must be no further ones in between.
pub async fn next(watch: &mut Watch, count: usize) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < count {
        let more = watch.next().await.expect("the watch goes on");
        assert!(!more.is_empty(), "a watch never gives nothing");
        events.extend(more);
    }
    assert_eq!(events.len(), count, "more than was written: {events:?}");
    assert!(events.is_sorted_by(|a, b| a.change.revision < b.change.revision), "in revision order");
    events
}

pub async fn next_seen(watch: &mut Watch, count: usize) -> Vec<EventSummary> {
    next(watch, count).await.iter().map(seen).collect()
}

pub fn added(name: &str, data: &str) -> EventSummary {
    (EventKind::Added, name.to_owned(), data.to_owned())
}

pub fn modified(name: &str, data: &str) -> EventSummary {
    (EventKind::Modified, name.to_owned(), data.to_owned())
}

pub fn deleted(name: &str, data: &str) -> EventSummary {
    (EventKind::Deleted, name.to_owned(), data.to_owned())
}

/// Waits until a condition holds. The case's own time limit ends the wait.
pub async fn until<F: Future<Output = bool>>(mut holds: impl FnMut() -> F) {
    while !holds().await {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A small random sequence, the same in every run.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        // Knuth's constants; the high bits are the random ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}
