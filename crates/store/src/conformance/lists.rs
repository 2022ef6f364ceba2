//! Lists as of now: order, pages, totals.

use super::Factory;
use super::kit::*;
use crate::{ListQuery, Position};

async fn fill(kit: &Kit, paths: &[&str]) {
    let writes = paths.iter().map(|path| object(path).create()).collect();
    kit.store.write(writes).await.expect("all are new");
}

/// All pages of a list, each as of the revision of the first.
async fn pages(kit: &Kit, mut query: ListQuery) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    loop {
        let page = kit.list(&query).await;
        pages.push(names(&page));
        if !page.more {
            return pages;
        }
        query.at = Some(page.revision);
        query.after = behind(&page);
    }
}

pub(super) async fn a_list_is_in_byte_order_of_its_keys(factory: Factory) {
    let kit = Kit::new(&factory).await;
    // Locale-aware collations sort these otherwise: they ignore punctuation, and put small letters before
    // capitals.
    let sorted = ["a-b/x", "a.b/x", "a/B", "a/a-b", "a/a.b", "a/a0", "a/aa", "a/b", "aa/a", "b/a"];
    // The namespace ends before its name begins, so `a` comes before `a-b`.
    let mut expected = sorted.to_vec();
    expected.sort_by_key(|path| path.split_once('/'));
    let mut shuffled = sorted.to_vec();
    shuffled.reverse();
    fill(&kit, &shuffled).await;
    assert_eq!(kit.names(&all()).await, expected);
}

pub(super) async fn pages_join_to_the_whole_list(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let paths: Vec<String> = (0..25).map(|n| format!("n{}/o{n:02}", n % 3)).collect();
    fill(&kit, &paths.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let whole = kit.names(&all()).await;
    assert_eq!(whole.len(), 25);
    for limit in [1, 7, 25, 100] {
        assert_eq!(pages(&kit, ListQuery { limit, ..all() }).await.concat(), whole, "limit {limit}");
    }
}

pub(super) async fn more_is_exact(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let mut writes: Vec<_> = (0..6).map(|n| object(&format!("ns/o{n}")).label("k", "v").create()).collect();
    writes.extend((6..20).map(|n| object(&format!("ns/o{n:02}")).label("k", "w").create()));
    kit.store.write(writes).await.expect("all are new");
    for query in [all(), selected(vec![label_is("k", "v")])] {
        let matches = kit.names(&query).await.len();
        for limit in 1..=matches + 1 {
            let page = kit.list(&ListQuery { limit, ..query.clone() }).await;
            assert_eq!(page.more, limit < matches, "limit {limit} of {matches}");
            assert_eq!(page.items.len(), limit.min(matches));
        }
    }
}

pub(super) async fn a_page_is_bounded_in_bytes(factory: Factory) {
    let kit = Kit::new(&factory).await;
    for n in 0..12 {
        kit.write(object(&format!("ns/o{n:02}")).data("x".repeat(1 << 20)).create()).await;
    }
    let pages = pages(&kit, all()).await;
    assert!(pages.iter().all(|page| page.len() == 1), "{pages:?}");
    assert_eq!(pages.concat().len(), 12);
}

pub(super) async fn large_objects_among_small_ones_are_listed_in_order(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let names: Vec<_> = (0..24).map(|n| format!("ns/o{n:02}")).collect();
    for (n, name) in names.iter().enumerate() {
        let size = if n % 5 == 3 { 1 << 20 } else { 10 };
        kit.write(object(name).data("x".repeat(size)).create()).await;
    }
    for limit in [1, 4, 500] {
        let pages = pages(&kit, ListQuery { limit, ..all() }).await;
        assert!(pages.iter().all(|page| page.len() <= limit), "{pages:?}");
        assert_eq!(pages.concat(), names, "in pages of {limit}");
    }
}

pub(super) async fn the_total_follows_creates_and_deletes(factory: Factory) {
    let kit = Kit::new(&factory).await;
    fill(&kit, &["m/a", "m/b", "n/a"]).await;
    kit.write(object("m/a").data("x").put()).await;
    kit.write(object("n/a").remove()).await;
    let total = async |namespace: Option<&str>| {
        let query = ListQuery { namespace: namespace.map(str::to_owned), limit: 1, ..all() };
        kit.list(&query).await.total
    };
    assert_eq!(total(None).await, Some(2));
    assert_eq!(total(Some("m")).await, Some(2));
    assert_eq!(total(Some("n")).await, Some(0));
    let older = kit.list(&ListQuery { at: Some(model::Revision(2)), ..all() }).await;
    assert_eq!(older.total, None, "nobody counted then");
}

pub(super) async fn a_namespace_is_listed_alone(factory: Factory) {
    let kit = Kit::new(&factory).await;
    fill(&kit, &["m-/a", "m/a", "m/b", "m/c", "m0/a", "x"]).await;
    let of = |namespace: &str| ListQuery { namespace: Some(namespace.to_owned()), limit: 2, ..all() };
    assert_eq!(pages(&kit, of("m")).await, [vec!["m/a", "m/b"], vec!["m/c"]]);
    assert_eq!(pages(&kit, of("nowhere")).await.concat().len(), 0);
    assert_eq!(pages(&kit, of("")).await.concat(), ["/x"]);
}

pub(super) async fn a_position_outside_of_the_namespace_is_honoured(factory: Factory) {
    let kit = Kit::new(&factory).await;
    fill(&kit, &["m/a", "m/b"]).await;
    let after = async |namespace: &str| {
        let after = Some(Position { namespace: namespace.to_owned(), name: "a".to_owned() });
        kit.names(&ListQuery { namespace: Some("m".to_owned()), after, ..all() }).await.len()
    };
    assert_eq!((after("l").await, after("m").await, after("n").await), (2, 1, 0));
}

pub(super) async fn an_empty_database_has_a_version(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let page = kit.list(&all()).await;
    assert!(page.revision.0 > 0, "to clients version 0 means any");
    assert_eq!((page.items.len(), page.more, page.total), (0, false, Some(0)));
    assert_eq!(kit.revision().await, page.revision);
}

pub(super) async fn concurrent_reads_of_many_objects_each_return_their_own(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let objects: Vec<Object> = (0..100).map(|number| object(&format!("ns/{number}"))).collect();
    for (number, object) in objects.iter().enumerate().filter(|(number, _)| number % 3 > 0) {
        kit.write(object.clone().data(number.to_string()).create()).await;
    }
    let found = futures::future::join_all(objects.iter().map(|object| kit.data(object, None))).await;
    let expected = (0..100).map(|number| (number % 3 > 0).then(|| number.to_string()));
    assert_eq!(found, expected.collect::<Vec<_>>());
}
