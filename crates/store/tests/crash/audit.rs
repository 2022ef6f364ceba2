//! Consistency of a store: objects, counts, indexes, older revisions and the log agree.

use std::collections::BTreeMap;

use model::selector::{Requirement, Target, Test};
use model::{Revision, Selector};
use store::{EventKind, ListQuery, Store};

use crate::objects::{SHADES, TIERS, Version, all, attributes, everything, key, path};

/// Content of a store.
#[derive(Debug)]
pub struct Audit {
    /// The newest revision.
    pub current: u64,
    /// The compaction mark.
    pub compacted: u64,
    /// The objects by path.
    pub heads: BTreeMap<String, Version>,
}

/// Reads everything in every way. There must be no concurrent writes.
pub async fn audit(store: &Store) -> Audit {
    let clock = store.clock().await.expect("the clock is readable");
    let heads = listed(store, &all()).await;
    for (path, version) in &heads {
        let stored = store.get(&key(path), None).await.expect("an object is readable");
        let stored = stored.unwrap_or_else(|| panic!("{path} is listed and cannot be got"));
        assert_eq!(Version::stored(&stored), *version, "{path} as got and as listed");
    }
    counts(store, &heads).await;
    indexes(store, &heads).await;
    log(store, clock.compacted, clock.current, &heads).await;
    let again = store.clock().await.expect("the clock is readable");
    assert_eq!(again, clock, "reading does not move the clock");
    Audit { current: clock.current.0, compacted: clock.compacted.0, heads }
}

async fn listed(store: &Store, query: &ListQuery) -> BTreeMap<String, Version> {
    let page = store.list(query).await.expect("a list is readable");
    assert!(!page.more, "there are not that many objects");
    assert!(page.items.is_sorted_by(|a, b| a.key < b.key), "a list is in key order");
    page.items.iter().map(|stored| (path(&stored.key), Version::stored(stored))).collect()
}

/// The counts that are kept beside the objects.
async fn counts(store: &Store, heads: &BTreeMap<String, Version>) {
    let mut by_namespace: BTreeMap<String, u64> = BTreeMap::new();
    for path in heads.keys() {
        *by_namespace.entry(key(path).namespace).or_default() += 1;
    }
    let total = store.list(&ListQuery { limit: 1, ..all() }).await.expect("a list is readable").total;
    assert_eq!(total, Some(heads.len() as u64), "the count of all objects");
    for (namespace, count) in by_namespace {
        let query = ListQuery { namespace: Some(namespace.clone()), limit: 1, ..all() };
        let total = store.list(&query).await.expect("a list is readable").total;
        assert_eq!(total, Some(count), "the count of objects in {namespace}");
    }
}

/// Lists that the indexes drive, against a filter over all objects.
async fn indexes(store: &Store, heads: &BTreeMap<String, Version>) {
    let label = |key: &str, test| Requirement { target: Target::Label, key: key.to_owned(), test };
    let field = |key: &str, test| Requirement { target: Target::Field, key: key.to_owned(), test };
    let one = |value: &str| Test::In(vec![value.to_owned()]);
    let mut requirements = vec![label("odd", Test::Exists), label("odd", Test::NotExists)];
    requirements.extend(SHADES.map(|shade| label("shade", one(shade))));
    requirements.extend(TIERS.map(|tier| field("spec.tier", one(tier))));
    requirements.push(label("shade", Test::In(vec!["red".to_owned(), "blue".to_owned()])));
    requirements.push(label("shade", Test::NotIn(vec!["red".to_owned()])));
    for requirement in requirements {
        let selector = Selector { requirements: vec![requirement] };
        let mut expected = heads.clone();
        expected.retain(|path, version| selector.matches(&key(path), &attributes(version.seed)));
        let selected = listed(store, &ListQuery { selector: selector.clone(), ..all() }).await;
        assert_eq!(selected, expected, "selected by {selector:?}");
    }
}

/// The oldest kept state and every change since lead to the present objects.
async fn log(store: &Store, from: Revision, to: Revision, heads: &BTreeMap<String, Version>) {
    let mut state = listed(store, &ListQuery { at: Some(from), ..all() }).await;
    let middle = Revision(from.0.midpoint(to.0));
    let mut watch = store.watch(everything(), from).await.expect("the mark can be watched from");
    // A database begins with revision 1 and nothing in it.
    let mut seen = from.max(Revision(1));
    while seen < to {
        for event in watch.next().await.expect("the log is readable") {
            assert_eq!(event.change.revision, seen.next(), "the log has neither gaps nor repetitions");
            seen = event.change.revision;
            let path = path(&event.change.key);
            let version = Version::of(&event.change.key, seen, &event.value());
            let known = match event.kind {
                EventKind::Deleted => state.remove(&path),
                EventKind::Added | EventKind::Modified => state.insert(path.clone(), version),
            };
            let previous = known.map_or(Revision::ZERO, |version| Revision(version.revision));
            assert_eq!(event.change.previous, previous, "{seen} says what it replaced");
            assert_eq!(event.kind == EventKind::Added, known.is_none(), "{seen} says what it did to {path}");
            if seen == middle {
                let then = listed(store, &ListQuery { at: Some(middle), ..all() }).await;
                assert_eq!(then, state, "the list at {middle} and the log up to it");
            }
        }
    }
    assert_eq!(&state, heads, "the objects and the log");
}
