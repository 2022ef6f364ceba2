//! Lists by labels and fields.

use model::selector::{Requirement, Target, Test};

use super::Factory;
use super::kit::*;
use crate::ListQuery;

/// The values of the key `k` in the sample objects.
const SAMPLES: [(&str, Option<&str>); 5] =
    [("a", Some("x")), ("b", Some("y")), ("c", Some("")), ("d", None), ("e", Some("7"))];

fn sample(target: Target, name: &str, value: Option<&str>) -> Object {
    let object = object(&format!("ns/{name}"));
    match (target, value) {
        (_, None) => object,
        (Target::Label, Some(value)) => object.label("k", value),
        (Target::Field, Some(value)) => object.field("k", value),
    }
}

/// Each operator with the names that it selects.
fn operators() -> Vec<(Test, &'static [&'static str])> {
    vec![
        (one_of(&["x"]), &["ns/a"]),
        (one_of(&["x", "y", "x", "z"]), &["ns/a", "ns/b"]),
        (one_of(&[""]), &["ns/c"]),
        (one_of(&["z"]), &[]),
        (one_of(&[]), &[]),
        (none_of(&["x"]), &["ns/b", "ns/c", "ns/d", "ns/e"]),
        (none_of(&["x", "y"]), &["ns/c", "ns/d", "ns/e"]),
        (Test::Exists, &["ns/a", "ns/b", "ns/c", "ns/e"]),
        (Test::NotExists, &["ns/d"]),
        (Test::GreaterThan(6), &["ns/e"]),
        (Test::LessThan(7), &[]),
    ]
}

async fn every_operator_selects(factory: &Factory, target: Target) {
    let kit = Kit::new(factory).await;
    for (name, value) in SAMPLES {
        kit.write(sample(target, name, value).create()).await;
        // The same in another namespace, under another key, and as another target, must not be mixed up with it.
        kit.write(object(&format!("other/{name}")).label("other", value.unwrap_or("x")).create()).await;
    }
    let then = kit.revision().await;
    let check = async |at| {
        for (test, expected) in operators() {
            let mut query = selected(vec![requirement(target, "k", test.clone())]);
            query.namespace = Some("ns".to_owned());
            query.at = at;
            assert_eq!(kit.names(&query).await, expected, "{test:?} at {at:?}");
        }
    };
    check(None).await;
    // Afterwards everything has other values, and the older revision still has these.
    for (name, _) in SAMPLES {
        kit.write(sample(target, name, Some("later")).put()).await;
    }
    check(Some(then)).await;
}

pub(super) async fn every_operator_selects_by_labels(factory: Factory) {
    every_operator_selects(&factory, Target::Label).await;
}

pub(super) async fn every_operator_selects_by_fields(factory: Factory) {
    every_operator_selects(&factory, Target::Field).await;
}

pub(super) async fn requirements_have_to_hold_together(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let label = |key, test| requirement(Target::Label, key, test);
    let phase = requirement(Target::Field, "status.phase", one_of(&["Running"]));
    let app = |name: &str, tier: &str, phase: &str| {
        object(name).label("app", "web").label("tier", tier).field("status.phase", phase).create()
    };
    let writes =
        vec![app("m/a", "front", "Running"), app("m/b", "back", "Running"), app("n/a", "front", "Pending")];
    kit.store.write(writes).await.expect("all are new");
    let front = label("tier", one_of(&["front"]));
    let cases: Vec<(Vec<Requirement>, &[&str])> = vec![
        (vec![label_is("app", "web"), front.clone()], &["m/a", "n/a"]),
        (vec![label_is("app", "web"), front.clone(), phase.clone()], &["m/a"]),
        (vec![label("app", Test::Exists), label("tier", none_of(&["front"]))], &["m/b"]),
        (vec![label("app", Test::NotExists), front], &[]),
        (vec![phase, label("app", one_of(&["web", "db"]))], &["m/a", "m/b"]),
    ];
    for (requirements, expected) in cases {
        assert_eq!(kit.names(&selected(requirements.clone())).await, expected, "{requirements:?}");
    }
}

pub(super) async fn selection_as_of_an_older_revision_uses_the_attributes_of_then(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let a = |value: &str| object("ns/a").label("k", value);
    let red = kit.write(a("red").create()).await.revision;
    let blue = kit.write(a("blue").put()).await.revision;
    let gone = kit.write(a("blue").remove()).await.revision;
    let again = kit.write(a("red").create()).await.revision;
    for (at, of_red, of_blue) in [(red, 1, 0), (blue, 0, 1), (gone, 0, 0), (again, 1, 0)] {
        let count = async |value| {
            let query = ListQuery { at: Some(at), ..selected(vec![label_is("k", value)]) };
            kit.names(&query).await.len()
        };
        assert_eq!((count("red").await, count("blue").await), (of_red, of_blue), "at {at}");
    }
}

pub(super) async fn the_index_follows_updates_and_deletes(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let count = async |key: &str, value: &str| kit.names(&selected(vec![label_is(key, value)])).await.len();
    let a = object("ns/a");
    kit.write(a.clone().label("k", "1").label("stays", "x").create()).await;
    assert_eq!((count("k", "1").await, count("stays", "x").await), (1, 1));
    kit.write(a.clone().label("k", "2").label("stays", "x").put()).await;
    assert_eq!((count("k", "1").await, count("k", "2").await, count("stays", "x").await), (0, 1, 1));
    kit.write(a.clone().put()).await;
    assert_eq!((count("k", "2").await, count("stays", "x").await), (0, 0));
    kit.write(a.clone().label("k", "1").put()).await;
    kit.write(a.remove()).await;
    assert_eq!(count("k", "1").await, 0);
}

pub(super) async fn names_and_namespaces_are_fields(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let paths = ["m/a", "m/b", "n/a", "n/c", "a"];
    kit.store.write(paths.iter().map(|path| object(path).create()).collect()).await.expect("all are new");
    let name = |test| requirement(Target::Field, "metadata.name", test);
    let namespace = |test| requirement(Target::Field, "metadata.namespace", test);
    let cases: Vec<(Vec<Requirement>, &[&str])> = vec![
        (vec![name(one_of(&["a"]))], &["/a", "m/a", "n/a"]),
        (vec![name(one_of(&["c", "a"]))], &["/a", "m/a", "n/a", "n/c"]),
        (vec![name(none_of(&["a"]))], &["m/b", "n/c"]),
        (vec![namespace(one_of(&["m"]))], &["m/a", "m/b"]),
        (vec![namespace(none_of(&["m"]))], &["/a", "n/a", "n/c"]),
        (vec![name(one_of(&["a"])), namespace(one_of(&["n"]))], &["n/a"]),
        (vec![name(one_of(&["a"])), name(none_of(&["a"]))], &[]),
    ];
    let then = kit.revision().await;
    for (requirements, expected) in &cases {
        assert_eq!(kit.names(&selected(requirements.clone())).await, *expected, "{requirements:?}");
    }
    let mut one = selected(vec![name(one_of(&["a"]))]);
    one.namespace = Some("n".to_owned());
    assert_eq!(kit.names(&one).await, ["n/a"]);
    kit.write(object("n/a").remove()).await;
    kit.write(object("m/a").data("changed").put()).await;
    for (requirements, expected) in cases {
        let query = ListQuery { at: Some(then), ..selected(requirements.clone()) };
        assert_eq!(kit.names(&query).await, expected, "{requirements:?} at {then}");
    }
}

pub(super) async fn a_common_value_is_listed_in_pages(factory: Factory) {
    let kit = Kit::new(&factory).await;
    // More than the index counts, so that the plan has to read in key order.
    let count = usize::try_from(crate::listing::COUNT_CAP).expect("it is small") + 100;
    let rare = |n: usize| if n.is_multiple_of(1000) { "rare" } else { "common" };
    for chunk in (0..count).collect::<Vec<_>>().chunks(1000) {
        let create = |n: &usize| {
            object(&format!("n{}/o{n:05}", n % 2)).label("all", "x").label("k", rare(*n)).create()
        };
        kit.store.write(chunk.iter().map(create).collect()).await.expect("all are new");
    }
    let mut query = ListQuery { limit: 4000, ..selected(vec![label_is("all", "x")]) };
    let mut total = 0;
    loop {
        let page = kit.list(&query).await;
        assert!(page.items.is_sorted_by(|a, b| a.key < b.key));
        total += page.items.len();
        if !page.more {
            break;
        }
        query.at = Some(page.revision);
        query.after = behind(&page);
    }
    assert_eq!(total, count);
    let both = selected(vec![label_is("all", "x"), label_is("k", "rare")]);
    assert_eq!(kit.names(&both).await.len(), count.div_ceil(1000));
    let one = ListQuery { namespace: Some("n0".to_owned()), ..both };
    assert_eq!(kit.names(&one).await.len(), count.div_ceil(1000));
}
