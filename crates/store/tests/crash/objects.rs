//! Objects whose content is derived from a seed, so that the seed alone proves whether a value is intact.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use model::{Attributes, Encoded, ObjectKey, Resource, Revision, Selector, Uid};
use serde_json::{Value, json};
use store::{
    FileOptions, ListQuery, Metrics, Options, Precondition, Sqlite, Store, Stored, WatchScope, Write,
};

/// The values of the label `shade`.
pub const SHADES: [&str; 3] = ["red", "green", "blue"];

/// The values of the field `spec.tier`.
pub const TIERS: [&str; 2] = ["low", "high"];

/// The one resource: so a watch of it sees every revision.
pub fn resource() -> Resource {
    Resource::new("", "configmaps")
}

/// The key of `namespace/name`.
pub fn key(path: &str) -> ObjectKey {
    let (namespace, name) = path.split_once('/').expect("a path has two parts");
    ObjectKey::new(&resource(), namespace, name)
}

/// The `namespace/name` of a key.
pub fn path(key: &ObjectKey) -> String {
    format!("{}/{}", key.namespace, key.name)
}

/// The uid of the life that the create with this seed began.
fn uid(life: u64) -> Uid {
    Uid(format!("life-{life}"))
}

/// The attributes of a seed's object.
pub fn attributes(seed: u64) -> Attributes {
    let mut labels = vec![("shade".to_owned(), shade(seed).to_owned())];
    if seed % 2 == 1 {
        labels.push(("odd".to_owned(), String::new()));
    }
    Attributes::new(labels, vec![("spec.tier".to_owned(), tier(seed).to_owned())])
}

fn shade(seed: u64) -> &'static str {
    SHADES[usize::try_from(seed % 3).expect("less than 3")]
}

fn tier(seed: u64) -> &'static str {
    TIERS[usize::try_from(seed / 5 % 2).expect("less than 2")]
}

/// The object of a seed. One in eight is longer than a page of the database.
fn body(path: &str, life: u64, seed: u64) -> Encoded {
    let (namespace, name) = path.split_once('/').expect("a path has two parts");
    let mut dice = Dice(seed);
    let length = if dice.roll(8) == 0 { 4_000 + dice.roll(9_000) } else { dice.roll(600) };
    let letters = (0..length).map(|_| char::from(b'a' + u8::try_from(dice.roll(26)).expect("less than 26")));
    let object = json!({
        "data": letters.collect::<String>(),
        "metadata": {"name": name, "namespace": namespace, "uid": uid(life).0},
        "life": life,
        "seed": seed,
    });
    Encoded::new(object.as_object().expect("the literal is an object"))
}

/// Begins a life.
pub fn create(path: &str, seed: u64) -> Write {
    let attributes = attributes(seed);
    Write::Create { key: key(path), uid: uid(seed), attributes, body: body(path, seed, seed) }
}

/// Replaces the version of this revision.
pub fn update(path: &str, life: u64, expect: u64, seed: u64) -> Write {
    let expect = Precondition { revision: Some(Revision(expect)), uid: Some(uid(life)) };
    Write::Update { key: key(path), expect, attributes: attributes(seed), body: body(path, life, seed) }
}

/// Ends the life whose last version has this revision and seed.
pub fn delete(path: &str, life: u64, expect: u64, seed: u64) -> Write {
    let expect = Precondition { revision: Some(Revision(expect)), uid: Some(uid(life)) };
    Write::Delete { key: key(path), expect, attributes: attributes(seed), body: body(path, life, seed) }
}

/// One version of an object, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The revision that wrote it.
    pub revision: u64,
    /// The seed of the create that began this life.
    pub life: u64,
    /// The seed of its content.
    pub seed: u64,
}

impl Version {
    /// Parses a value, and checks every byte of it.
    pub fn of(key: &ObjectKey, revision: Revision, value: &Bytes) -> Self {
        let object: Value = serde_json::from_slice(value)
            .unwrap_or_else(|error| panic!("the value of {key} at {revision} is damaged: {error}"));
        let number = |field: &str| object[field].as_u64().expect("the value has its numbers");
        let version = Self { revision: revision.0, life: number("life"), seed: number("seed") };
        let whole = body(&path(key), version.life, version.seed).at(revision);
        assert_eq!(&whole, value, "the value of {key} at {revision} is damaged");
        version
    }

    /// Parses an object, and checks every byte of it.
    pub fn stored(stored: &Stored) -> Self {
        let version = Self::of(&stored.key, stored.revision, &stored.value);
        assert_eq!(stored.uid, uid(version.life), "the uid of {} belongs to another life", stored.key);
        version
    }
}

/// A list of everything.
pub fn all() -> ListQuery {
    ListQuery {
        resource: resource(),
        namespace: None,
        selector: Selector::default(),
        at: None,
        after: None,
        limit: 100_000,
    }
}

/// A watch of everything.
pub fn everything() -> WatchScope {
    WatchScope { resource: resource(), namespace: None, name: None, selector: Selector::default() }
}

/// The database in a folder, with the defaults.
pub fn file(folder: &Path) -> FileOptions {
    FileOptions::new(folder.join("state.db"))
}

/// A store on a file, which compacts only on request.
pub async fn open(options: &FileOptions) -> Result<Store, store::Error> {
    let engine = Sqlite::open(options)?;
    Store::open(Arc::new(engine), quiet(Options::default()), &Metrics::unregistered()).await
}

fn quiet(mut options: Options) -> Options {
    options.compaction = None;
    options
}

/// A small random sequence.
pub struct Dice(pub u64);

impl Dice {
    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        // Knuth's constants; the high bits are the random ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}
