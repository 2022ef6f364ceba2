//! Reads as of an older revision.

use model::Revision;

use super::Factory;
use super::kit::*;
use crate::{Error, ListQuery};

pub(super) async fn a_get_at_an_older_revision_shows_the_object_as_it_was(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let a = object("ns/a");
    let before = kit.revision().await;
    let one = kit.write(a.clone().data("one").create()).await.revision;
    kit.write(object("ns/other").create()).await;
    let two = kit.write(a.clone().data("two").put()).await.revision;
    let gone = kit.write(a.remove()).await.revision;
    let again = kit.write(a.clone().data("again").create()).await.revision;
    let expected = [
        (before, None),
        (one, Some("one")),
        (one.next(), Some("one")),
        (two, Some("two")),
        (gone, None),
        (again, Some("again")),
    ];
    for (at, data) in expected {
        assert_eq!(kit.data(&a, Some(at)).await.as_deref(), data, "at {at}");
    }
}

pub(super) async fn a_list_at_an_older_revision_shows_the_objects_as_they_were(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let mut states: Vec<(Revision, Vec<String>)> = Vec::new();
    let writes = [
        object("m/b").data("1").create(),
        object("m/d").data("1").create(),
        object("n/a").data("1").create(),
        object("m/b").data("2").put(),
        object("m/c").data("1").create(),
        object("m/d").remove(),
        object("m/b").remove(),
        object("n/a").data("2").put(),
        object("m/d").data("2").create(),
        object("m/b").data("3").create(),
    ];
    let state = async |at: Option<Revision>, limit: usize| {
        let mut query = ListQuery { at, limit, ..all() };
        let mut state = Vec::new();
        loop {
            let page = kit.list(&query).await;
            state.extend(page.items.iter().map(|item| format!("{}={}", item.key, data_of(&item.value))));
            if !page.more {
                return (page.revision, state);
            }
            query.at = Some(page.revision);
            query.after = behind(&page);
        }
    };
    states.push(state(None, 100).await);
    for write in writes {
        kit.write(write).await;
        states.push(state(None, 100).await);
    }
    for (revision, expected) in states {
        for limit in [1, 2, 100] {
            assert_eq!(state(Some(revision), limit).await, (revision, expected.clone()), "limit {limit}");
        }
    }
}

pub(super) async fn pages_of_an_older_revision_join_while_others_write(factory: Factory) {
    let kit = Kit::new(&factory).await;
    for n in 0..20 {
        kit.write(object(&format!("ns/o{n:02}")).data("old").create()).await;
    }
    let mut query = ListQuery { limit: 3, ..all() };
    let mut joined = Vec::new();
    let mut turn = 0;
    loop {
        let page = kit.list(&query).await;
        assert!(page.items.iter().all(|item| data_of(&item.value) == "old"));
        joined.extend(names(&page));
        if !page.more {
            break;
        }
        query.at = Some(page.revision);
        query.after = behind(&page);
        // Before and behind the position: one goes, one changes, one comes.
        kit.write(object(&format!("ns/o{turn:02}")).remove()).await;
        kit.write(object(&format!("ns/o{:02}", 19 - turn)).data("new").put()).await;
        kit.write(object(&format!("ns/o{turn:02}-new")).create()).await;
        turn += 1;
    }
    let expected: Vec<String> = (0..20).map(|n| format!("ns/o{n:02}")).collect();
    assert_eq!(joined, expected);
}

pub(super) async fn a_read_ahead_of_the_clock_is_refused(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let written = kit.write(object("ns/a").create()).await;
    for requested in [written.revision.next(), Revision(u64::MAX)] {
        let future = Error::Future { requested, current: written.revision };
        let list = kit.store.list(&ListQuery { at: Some(requested), ..all() }).await;
        assert_eq!(list.expect_err("it has not happened yet"), future);
        let get = kit.store.get(&object("ns/a").key(), Some(requested)).await;
        assert_eq!(get.expect_err("it has not happened yet"), future);
    }
}
